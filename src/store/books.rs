//! The books in memory: a copy of four tables that the writer keeps in step, so that looking costs no SQL and the
//! re-check of a new saga does not grow with the host.

use std::sync::Arc;

use rusqlite::Connection;

use super::error::StoreError;
use super::rows::{self, CLAIM, INSTANCE, MOVE, OWN_DEVICE};
use crate::model::{Claim, ClaimId, Instance, InstanceUuid, MdevUuid, Move, OwnDevice, ParentAddr};

/// Everything about instances and devices, as of one commit. A change makes a new copy, which shares what did not
/// change.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Books {
    instances: Vec<Arc<Instance>>,
    claims: Vec<Arc<Claim>>,
    own_devices: Vec<Arc<OwnDevice>>,
    moves: Vec<Arc<Move>>,
}

impl Books {
    /// Instances in the order of their UUIDs.
    pub fn instances(&self) -> impl ExactSizeIterator<Item = &Instance> + Clone {
        self.instances.iter().map(Arc::as_ref)
    }

    /// Claims in the order in which they were booked, those of one moment by group.
    pub fn claims(&self) -> impl ExactSizeIterator<Item = &Claim> + Clone {
        self.claims.iter().map(Arc::as_ref)
    }

    /// Devices that are ours, in the order of (UUID, parent).
    pub fn own_devices(&self) -> impl ExactSizeIterator<Item = &OwnDevice> + Clone {
        self.own_devices.iter().map(Arc::as_ref)
    }

    /// One instance.
    pub fn instance(&self, uuid: InstanceUuid) -> Option<&Instance> {
        let place = self.instances.binary_search_by_key(&uuid, |i| i.uuid).ok()?;
        Some(&self.instances[place])
    }

    /// The instances of that name; nothing keeps two domains from having had one name.
    pub fn instances_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Instance> + 'a {
        self.instances().filter(move |i| i.name == name)
    }

    /// One claim.
    pub fn claim(&self, id: ClaimId) -> Option<&Claim> {
        self.claims().find(|c| c.id == id)
    }

    /// The claims of one instance, in the order of [`Books::claims`].
    pub fn claims_of(&self, instance: InstanceUuid) -> impl Iterator<Item = &Claim> + Clone {
        self.claims().filter(move |c| c.instance == instance)
    }

    /// The claim that holds a device.
    pub fn holder(&self, uuid: MdevUuid, parent: &ParentAddr) -> Option<&Claim> {
        self.claims().find(|c| c.uuid == uuid && c.parent == *parent)
    }

    /// A device, if it is ours.
    pub fn own_device(&self, uuid: MdevUuid, parent: &ParentAddr) -> Option<&OwnDevice> {
        let place = self.own_devices.binary_search_by_key(&(uuid, parent), |d| (d.uuid, &d.parent)).ok()?;
        Some(&self.own_devices[place])
    }

    /// Moves that wait for their next operation, in the order of their instances.
    pub fn moves(&self) -> impl ExactSizeIterator<Item = &Move> + Clone {
        self.moves.iter().map(Arc::as_ref)
    }

    /// The move of an instance.
    pub fn move_of(&self, instance: InstanceUuid) -> Option<&Move> {
        self.moves().find(|m| m.instance == instance)
    }

    /// Reads the tables.
    pub(super) fn read(conn: &Connection) -> Result<Self, StoreError> {
        let mut books = Self {
            instances: shared(conn, &format!("SELECT {INSTANCE} FROM instance"), rows::instance)?,
            claims: shared(conn, &format!("SELECT {CLAIM} FROM claim"), rows::claim)?,
            own_devices: shared(conn, &format!("SELECT {OWN_DEVICE} FROM own_device"), rows::own_device)?,
            moves: shared(conn, &format!("SELECT {MOVE} FROM move ORDER BY instance"), rows::movement)?,
        };
        books.instances.sort_by_key(|i| i.uuid);
        books.claims.sort_by(|a, b| claim_key(a).cmp(&claim_key(b)));
        books.own_devices.sort_by(|a, b| (a.uuid, &a.parent).cmp(&(b.uuid, &b.parent)));
        Ok(books)
    }

    pub(super) fn put_instance(&mut self, instance: Instance) {
        let place = self.instances.binary_search_by_key(&instance.uuid, |i| i.uuid);
        put(&mut self.instances, place, instance);
    }

    pub(super) fn drop_instance(&mut self, uuid: InstanceUuid) {
        self.instances.retain(|i| i.uuid != uuid);
        self.drop_move(uuid);
    }

    pub(super) fn put_move(&mut self, moving: Move) {
        let place = self.moves.binary_search_by_key(&moving.instance, |m| m.instance);
        put(&mut self.moves, place, moving);
    }

    pub(super) fn drop_move(&mut self, instance: InstanceUuid) {
        self.moves.retain(|m| m.instance != instance);
    }

    pub(super) fn put_claim(&mut self, claim: Claim) {
        let place = self.claims.binary_search_by(|c| claim_key(c).cmp(&claim_key(&claim)));
        put(&mut self.claims, place, claim);
    }

    pub(super) fn drop_claim(&mut self, id: ClaimId) {
        self.claims.retain(|c| c.id != id);
    }

    pub(super) fn put_device(&mut self, device: OwnDevice) {
        let key = (device.uuid, &device.parent);
        let place = self.own_devices.binary_search_by(|d| (d.uuid, &d.parent).cmp(&key));
        put(&mut self.own_devices, place, device);
    }

    pub(super) fn drop_device(&mut self, uuid: MdevUuid, parent: &ParentAddr) {
        self.own_devices.retain(|d| d.uuid != uuid || d.parent != *parent);
    }
}

fn claim_key(claim: &Claim) -> (i64, &str, ClaimId) {
    (claim.created_usec, &claim.group, claim.id)
}

fn put<T>(list: &mut Vec<Arc<T>>, place: Result<usize, usize>, value: T) {
    match place {
        Ok(at) => list[at] = Arc::new(value),
        Err(at) => list.insert(at, Arc::new(value)),
    }
}

fn shared<T>(
    conn: &Connection,
    sql: &str,
    decode: fn(&rusqlite::Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<Arc<T>>, StoreError> {
    Ok(rows::all(conn, sql, [], decode)?.into_iter().map(Arc::new).collect())
}
