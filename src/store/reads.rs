//! Reading the journal and the facts; the books are in [`Books`](super::Books).

use rusqlite::{Connection, Params};

use super::Store;
use super::error::StoreError;
use super::rows::{self, EVENT, SAGA};
use crate::model::{InstanceUuid, JobId, SagaEventRow, SagaRow, SagaState};

/// Reads. Every one fails with `Unavailable` or `Corrupt` only; what is not there is `None` or empty.
impl Store {
    /// One saga.
    ///
    /// # Errors
    /// `Unavailable`, `Corrupt`.
    pub fn saga(&self, job: JobId) -> Result<Option<SagaRow>, StoreError> {
        self.read(|conn| Ok(sagas(conn, "WHERE id = ?1", [job.to_string()])?.pop()))
    }

    /// The saga that was begun with this operation id.
    ///
    /// # Errors
    /// `Unavailable`, `Corrupt`.
    pub fn saga_by_operation(&self, operation_id: &str) -> Result<Option<SagaRow>, StoreError> {
        self.read(|conn| saga_by_operation(conn, operation_id))
    }

    /// Sagas at work, oldest first.
    ///
    /// # Errors
    /// `Unavailable`, `Corrupt`.
    pub fn open_sagas(&self) -> Result<Vec<SagaRow>, StoreError> {
        self.read(|conn| sagas(conn, "WHERE state IN ('running', 'unwinding') ORDER BY nr", []))
    }

    /// The saga at work on an instance.
    ///
    /// # Errors
    /// `Unavailable`, `Corrupt`.
    pub fn live_saga(&self, instance: InstanceUuid) -> Result<Option<JobId>, StoreError> {
        self.read(|conn| live_saga(conn, instance))
    }

    /// Sagas that an operator has to look at, oldest first. One is settled, and not listed, when a later saga of the
    /// same instance is done.
    ///
    /// # Errors
    /// `Unavailable`, `Corrupt`.
    pub fn stuck_sagas(&self) -> Result<Vec<SagaRow>, StoreError> {
        let unsettled = "WHERE state = 'stuck' AND NOT EXISTS (SELECT 1 FROM saga AS later \
                         WHERE later.instance = saga.instance AND later.nr > saga.nr AND later.state = 'done') \
                         ORDER BY nr";
        self.read(|conn| sagas(conn, unsettled, []))
    }

    /// The last sagas to begin, newest first.
    ///
    /// # Errors
    /// `Unavailable`, `Corrupt`.
    pub fn recent_sagas(&self, limit: u32) -> Result<Vec<SagaRow>, StoreError> {
        self.read(|conn| sagas(conn, "ORDER BY nr DESC LIMIT ?1", [limit]))
    }

    /// The lines of one saga, in the order of their numbers.
    ///
    /// # Errors
    /// `Unavailable`, `Corrupt`.
    pub fn events(&self, job: JobId) -> Result<Vec<SagaEventRow>, StoreError> {
        let sql = format!("SELECT {EVENT} FROM saga_event WHERE saga_id = ?1 ORDER BY seq");
        self.read(|conn| rows::all(conn, &sql, [job.to_string()], rows::event))
    }

    /// What [`Store::set_fact`] remembered.
    ///
    /// # Errors
    /// `Unavailable`, `Corrupt`.
    pub fn fact(&self, key: &str) -> Result<Option<String>, StoreError> {
        self.read(|conn| rows::first(conn, "SELECT value FROM fact WHERE key = ?1", [key], |r| Ok(r.get(0)?)))
    }
}

fn sagas(conn: &Connection, rest: &str, params: impl Params) -> Result<Vec<SagaRow>, StoreError> {
    rows::all(conn, &format!("SELECT {SAGA} FROM saga {rest}"), params, rows::saga)
}

pub(super) fn saga_by_operation(conn: &Connection, id: &str) -> Result<Option<SagaRow>, StoreError> {
    Ok(sagas(conn, "WHERE operation_id = ?1", [id])?.pop())
}

pub(super) fn saga_state(conn: &Connection, job: JobId) -> Result<Option<SagaState>, StoreError> {
    rows::first(conn, "SELECT state FROM saga WHERE id = ?1", [job.to_string()], |r| rows::word(r, "state"))
}

/// The saga at work on an instance.
pub(super) fn live_saga(conn: &Connection, instance: InstanceUuid) -> Result<Option<JobId>, StoreError> {
    rows::first(
        conn,
        "SELECT id FROM saga WHERE instance = ?1 AND state IN ('running', 'unwinding')",
        [instance.to_string()],
        |row| rows::word(row, "id"),
    )
}

/// What the ledger needs to judge a new line; results can be large.
pub(super) fn events_without_payload(conn: &Connection, job: JobId) -> Result<Vec<SagaEventRow>, StoreError> {
    let sql = "SELECT seq, step, name, event, NULL AS payload, at_usec FROM saga_event WHERE saga_id = ?1 \
               ORDER BY seq";
    rows::all(conn, sql, [job.to_string()], rows::event)
}
