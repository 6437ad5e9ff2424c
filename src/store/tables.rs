//! Every write to the tables of the books: the row and its copy in memory, together.

use std::sync::Arc;

use rusqlite::{Connection, params};

use super::books::Books;
use super::error::StoreError;
use super::rows;
use crate::model::{Claim, ClaimId, Instance, InstanceUuid, MdevUuid, OwnDevice, ParentAddr, Usec};

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
        let sql = "INSERT INTO instance (uuid, name, owner, request_digest, created_usec) \
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        self.conn.prepare_cached(sql)?.execute(params![
            instance.uuid.to_string(),
            instance.name,
            rows::owner_word(instance.owner),
            instance.request_digest,
            instance.created_usec
        ])?;
        self.books_mut().put_instance(instance);
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
                   device_api, resource_class, grp, traits, state, role, created_usec) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
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
            claim.role.as_str(),
            claim.created_usec,
        ])?;
        self.books_mut().put_claim(claim);
        Ok(())
    }

    /// Writes the state and the local type id of a claim that is in the books.
    pub(super) fn update_claim(&mut self, claim: Claim) -> Result<(), StoreError> {
        self.conn.prepare_cached("UPDATE claim SET state = ?2, mdev_type = ?3 WHERE id = ?1")?.execute([
            claim.id.to_string().as_str(),
            claim.state.as_str(),
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
