//! Every write to the tables of the books: the row and its copy in memory, together.

use std::sync::Arc;

use rusqlite::{Connection, params};

use super::books::Books;
use super::error::StoreError;
use super::rows;
use crate::model::{Claim, ClaimId, Instance, InstanceUuid, MdevUuid, Move, OwnDevice, ParentAddr, Usec};

/// What a piece of work may touch: the tables, and the copy of the books that it keeps in step with them.
pub(super) struct Turn<'a> {
    pub(super) conn: &'a Connection,
    books: Arc<Books>,
}

impl<'a> Turn<'a> {
    pub(super) fn new(conn: &'a Connection, books: Arc<Books>) -> Self {
        Self { conn, books }
    }

    pub(super) fn books(&self) -> &Books {
        &self.books
    }

    pub(super) fn keep_books(&self) -> Arc<Books> {
        Arc::clone(&self.books)
    }

    pub(super) fn put_back(&mut self, books: Arc<Books>) {
        self.books = books;
    }

    pub(super) fn into_books(self) -> Arc<Books> {
        self.books
    }

    fn books_mut(&mut self) -> &mut Books {
        Arc::make_mut(&mut self.books)
    }
}

impl Turn<'_> {
    pub(super) fn insert_instance(&mut self, instance: Instance) -> Result<(), StoreError> {
        let sql = "INSERT INTO instance (uuid, name, owner, plain, request_digest, flavor, created_usec) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let (owner, plain) = rows::owner_words(instance.owner);
        self.conn.prepare_cached(sql)?.execute(params![
            instance.uuid.to_string(),
            instance.name,
            owner,
            plain,
            instance.request_digest,
            instance.flavor,
            instance.created_usec
        ])?;
        self.books_mut().put_instance(instance);
        Ok(())
    }

    /// Writes the flavor of an instance that is in the books.
    pub(super) fn update_instance(&mut self, instance: Instance) -> Result<(), StoreError> {
        self.conn
            .prepare_cached("UPDATE instance SET flavor = ?2 WHERE uuid = ?1")?
            .execute(params![instance.uuid.to_string(), instance.flavor])?;
        self.books_mut().put_instance(instance);
        Ok(())
    }

    pub(super) fn upsert_move(&mut self, moving: Move) -> Result<(), StoreError> {
        let sql = "INSERT INTO move (instance, kind, phase, baggage) VALUES (?1, ?2, ?3, ?4) \
                   ON CONFLICT (instance) DO UPDATE \
                   SET kind = excluded.kind, phase = excluded.phase, baggage = excluded.baggage";
        self.conn.prepare_cached(sql)?.execute(params![
            moving.instance.to_string(),
            moving.kind.as_str(),
            moving.phase.as_str(),
            serde_json::json!(moving.baggage).to_string()
        ])?;
        self.books_mut().put_move(moving);
        Ok(())
    }

    pub(super) fn delete_move(&mut self, instance: InstanceUuid) -> Result<(), StoreError> {
        self.conn.prepare_cached("DELETE FROM move WHERE instance = ?1")?.execute([instance.to_string()])?;
        self.books_mut().drop_move(instance);
        Ok(())
    }

    pub(super) fn delete_instance(&mut self, uuid: InstanceUuid) -> Result<(), StoreError> {
        self.conn.prepare_cached("DELETE FROM instance WHERE uuid = ?1")?.execute([uuid.to_string()])?;
        self.books_mut().drop_instance(uuid);
        Ok(())
    }

    pub(super) fn insert_claim(&mut self, claim: Claim) -> Result<(), StoreError> {
        let traits: Vec<&str> = claim.traits.iter().map(|name| name.as_str()).collect();
        let sql = "INSERT INTO claim (id, instance, uuid, parent, mdev_type, type_name, identity, card, \
                   device_api, resource_class, grp, traits, state, was_parked, role, created_usec) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
        self.conn.prepare_cached(sql)?.execute(params![
            claim.id.to_string(),
            claim.instance.to_string(),
            claim.uuid.to_string(),
            claim.parent.to_string(),
            claim.mdev_type.as_str(),
            claim.type_name,
            claim.identity.as_ref().map(rows::identity_text),
            claim.card.as_ref().map(ToString::to_string),
            claim.device_api.as_str(),
            claim.resource_class.as_str(),
            claim.group,
            serde_json::json!(traits).to_string(),
            claim.state.as_str(),
            claim.was_parked,
            claim.role.as_str(),
            claim.created_usec,
        ])?;
        self.books_mut().put_claim(claim);
        Ok(())
    }

    /// Writes what may change of a claim that is in the books: state, role and local type id.
    pub(super) fn update_claim(&mut self, claim: Claim) -> Result<(), StoreError> {
        let sql = "UPDATE claim SET state = ?2, was_parked = ?3, role = ?4, mdev_type = ?5 WHERE id = ?1";
        self.conn.prepare_cached(sql)?.execute(params![
            claim.id.to_string(),
            claim.state.as_str(),
            claim.was_parked,
            claim.role.as_str(),
            claim.mdev_type.as_str(),
        ])?;
        self.books_mut().put_claim(claim);
        Ok(())
    }

    pub(super) fn delete_claim(&mut self, id: ClaimId) -> Result<(), StoreError> {
        self.conn.prepare_cached("DELETE FROM claim WHERE id = ?1")?.execute([id.to_string()])?;
        self.books_mut().drop_claim(id);
        Ok(())
    }

    pub(super) fn upsert_device(&mut self, device: OwnDevice, now: Usec) -> Result<(), StoreError> {
        let sql = "INSERT INTO own_device (uuid, parent, type_id, type_name, created_usec) \
                   VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (uuid, parent) DO UPDATE \
                   SET type_id = excluded.type_id, type_name = excluded.type_name";
        self.conn.prepare_cached(sql)?.execute(params![
            device.uuid.to_string(),
            device.parent.to_string(),
            device.type_id.as_str(),
            device.type_name,
            now
        ])?;
        self.books_mut().put_device(device);
        Ok(())
    }

    pub(super) fn delete_device(&mut self, uuid: MdevUuid, parent: &ParentAddr) -> Result<(), StoreError> {
        self.conn
            .prepare_cached("DELETE FROM own_device WHERE uuid = ?1 AND parent = ?2")?
            .execute([uuid.to_string(), parent.to_string()])?;
        self.books_mut().drop_device(uuid, parent);
        Ok(())
    }
}
