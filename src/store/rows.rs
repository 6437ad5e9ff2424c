//! Rows to values. An unknown word or a value that cannot be is [`StoreError::Corrupt`], never a default.

use std::str::FromStr;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Params, Row};
use serde::de::DeserializeOwned;

use super::error::StoreError;
use crate::model::{
    Claim, DomainOwner, Instance, InvalidName, Move, OwnDevice, SagaEventRow, SagaRow, TypeIdentity,
};

pub(super) const INSTANCE: &str = "uuid, name, owner, plain, request_digest, flavor, created_usec";
pub(super) const MOVE: &str = "instance, kind, phase, baggage";
pub(super) const OWN_DEVICE: &str = "uuid, parent, type_id, type_name";
pub(super) const CLAIM: &str = "id, instance, uuid, parent, mdev_type, type_name, identity, card, device_api, \
                                resource_class, grp, traits, state, was_parked, role, created_usec";
pub(super) const SAGA: &str = "id, op, version, instance, state, operation_id, request_digest, params, result, \
                               created_usec";
pub(super) const EVENT: &str = "seq, step, name, event, payload, at_usec";

/// All rows of a query.
pub(super) fn all<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    decode: fn(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    conn.prepare_cached(sql)?.query_and_then(params, decode)?.collect()
}

/// The first row of a query.
pub(super) fn first<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    decode: fn(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    conn.prepare_cached(sql)?.query_and_then(params, decode)?.next().transpose()
}

/// A column that holds a word or an identifier.
pub(super) fn word<T: FromStr<Err = InvalidName>>(row: &Row<'_>, column: &str) -> Result<T, StoreError> {
    let text =
        row.get_ref(column)?.as_str().map_err(|err| StoreError::Corrupt(format!("{column}: {err}")))?;
    text.parse().map_err(|err| StoreError::column(column, &err))
}

/// A word or nothing.
fn word_or_null<T: FromStr<Err = InvalidName>>(row: &Row<'_>, column: &str) -> Result<Option<T>, StoreError> {
    if row.get_ref(column)? == ValueRef::Null { Ok(None) } else { word(row, column).map(Some) }
}

/// An identity as its column holds it.
pub(super) fn identity_text(identity: &TypeIdentity) -> String {
    serde_json::json!(identity).to_string()
}

pub(super) fn json<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> Result<T, StoreError> {
    let text =
        row.get_ref(column)?.as_str().map_err(|err| StoreError::Corrupt(format!("{column}: {err}")))?;
    serde_json::from_str(text).map_err(|err| StoreError::Corrupt(format!("column {column}: {err}")))
}

fn json_or_null<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> Result<Option<T>, StoreError> {
    if row.get_ref(column)? == ValueRef::Null { Ok(None) } else { json(row, column).map(Some) }
}

/// The column `owner`, and whether an outside one is a plain user of libvirt.
pub(super) fn owner_words(owner: DomainOwner) -> (&'static str, bool) {
    match owner {
        DomainOwner::Mdevirt => ("mdevirt", false),
        DomainOwner::Caller => ("caller", false),
        DomainOwner::Libvirt => ("caller", true),
    }
}

fn owner(row: &Row<'_>) -> Result<DomainOwner, StoreError> {
    let (text, plain): (String, bool) = (row.get("owner")?, row.get("plain")?);
    DomainOwner::ALL
        .iter()
        .copied()
        .find(|owner| owner_words(*owner) == (text.as_str(), plain))
        .ok_or_else(|| StoreError::column("owner", &InvalidName::new("domain owner", &text, "unknown word")))
}

pub(super) fn instance(row: &Row<'_>) -> Result<Instance, StoreError> {
    Ok(Instance {
        uuid: word(row, "uuid")?,
        name: row.get("name")?,
        owner: owner(row)?,
        request_digest: row.get("request_digest")?,
        flavor: row.get("flavor")?,
        created_usec: row.get("created_usec")?,
    })
}

pub(super) fn movement(row: &Row<'_>) -> Result<Move, StoreError> {
    Ok(Move {
        instance: word(row, "instance")?,
        kind: word(row, "kind")?,
        phase: word(row, "phase")?,
        baggage: json(row, "baggage")?,
    })
}

pub(super) fn own_device(row: &Row<'_>) -> Result<OwnDevice, StoreError> {
    Ok(OwnDevice {
        uuid: word(row, "uuid")?,
        parent: word(row, "parent")?,
        type_id: word(row, "type_id")?,
        type_name: row.get("type_name")?,
    })
}

pub(super) fn claim(row: &Row<'_>) -> Result<Claim, StoreError> {
    Ok(Claim {
        id: word(row, "id")?,
        instance: word(row, "instance")?,
        uuid: word(row, "uuid")?,
        parent: word(row, "parent")?,
        mdev_type: word(row, "mdev_type")?,
        type_name: row.get("type_name")?,
        identity: json_or_null(row, "identity")?,
        card: word_or_null(row, "card")?,
        device_api: word(row, "device_api")?,
        resource_class: word(row, "resource_class")?,
        group: row.get("grp")?,
        traits: json(row, "traits")?,
        state: word(row, "state")?,
        was_parked: row.get("was_parked")?,
        role: word(row, "role")?,
        created_usec: row.get("created_usec")?,
    })
}

pub(super) fn saga(row: &Row<'_>) -> Result<SagaRow, StoreError> {
    Ok(SagaRow {
        id: word(row, "id")?,
        op: word(row, "op")?,
        version: row.get("version")?,
        instance: word(row, "instance")?,
        state: word(row, "state")?,
        operation_id: row.get("operation_id")?,
        request_digest: row.get("request_digest")?,
        params: json(row, "params")?,
        result: json_or_null(row, "result")?,
        created_usec: row.get("created_usec")?,
    })
}

pub(super) fn event(row: &Row<'_>) -> Result<SagaEventRow, StoreError> {
    Ok(SagaEventRow {
        seq: row.get("seq")?,
        step: row.get("step")?,
        name: row.get("name")?,
        event: word(row, "event")?,
        payload: json_or_null(row, "payload")?,
        at_usec: row.get("at_usec")?,
    })
}
