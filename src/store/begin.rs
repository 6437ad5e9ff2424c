//! The transaction with which every saga begins.

use std::fmt;

use rusqlite::{Connection, params};

use super::change::{self, Change};
use super::error::{Missing, StoreError};
use super::journal::{self, Entry};
use super::tables::Turn;
use super::{Books, Ledger, Store, reads, rows};
use crate::model::{
    Claim, ClaimState, Fault, Instance, JobId, OwnDevice, SagaRow, SagaState, StepEvent, Usec,
};

/// Ended sagas that are kept, with their operation ids; older ones leave when a new saga begins. Open and stuck ones
/// always stay.
pub(super) const KEPT_SAGAS: u32 = 5000;

/// A last look at the books inside the transaction, before anything of the new saga is in them.
pub type Recheck = Box<dyn FnOnce(&Books) -> Result<(), Fault> + Send>;

/// All that a saga begins with.
pub struct Begin {
    /// The saga, running, without a result.
    pub saga: SagaRow,
    /// Name of its first step in the journal.
    pub first_step: String,
    /// The instance, if it is new; else the saga's instance must be in the books.
    pub instance: Option<Instance>,
    /// Devices that are ours from now on, before they are made.
    pub devices: Vec<OwnDevice>,
    /// Reserved claims on them, or on idle devices of ours.
    pub claims: Vec<Claim>,
    /// Changes of what is in the books already.
    pub changes: Vec<Change>,
    /// Whether all this still fits; runs on the writer's turn, so it neither waits nor calls the store.
    pub recheck: Option<Recheck>,
}

impl fmt::Debug for Begin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begin")
            .field("saga", &self.saga.id)
            .field("op", &self.saga.op)
            .finish_non_exhaustive()
    }
}

impl Begin {
    /// A saga on an instance that is in the books, without any change.
    pub fn new(saga: SagaRow, first_step: impl Into<String>) -> Self {
        Self {
            saga,
            first_step: first_step.into(),
            instance: None,
            devices: Vec::new(),
            claims: Vec::new(),
            changes: Vec::new(),
            recheck: None,
        }
    }
}

impl Store {
    /// Begins a saga: checks, books, and writes `Started` of its first step, in one transaction.
    ///
    /// # Errors
    /// `OperationRepeated`, `InstanceExists`, `Busy`, `Refused` (by the re-check), `DeviceTaken`, `NotFound`,
    /// `IllegalBegin`, in this order of looking, and those of [`Change`] and of the disk.
    pub fn begin(&self, begin: Begin) -> Result<(), StoreError> {
        let now = self.clock.now_usec();
        self.writer.write(move |turn| write(turn, begin, now))
    }
}

fn write(turn: &mut Turn<'_>, begin: Begin, now: Usec) -> Result<(), StoreError> {
    check_form(&begin)?;
    check_operation(turn.conn, &begin.saga)?;
    check_instance(turn, &begin)?;
    if let Some(recheck) = begin.recheck {
        recheck(turn.books()).map_err(StoreError::Refused)?;
    }
    if let Some(instance) = begin.instance {
        turn.insert_instance(instance)?;
    }
    begin.devices.into_iter().try_for_each(|device| turn.upsert_device(device, now))?;
    begin.claims.into_iter().try_for_each(|claim| change::book(turn, claim))?;
    change::apply(turn, begin.changes, now)?;
    insert_saga(turn.conn, &begin.saga)?;
    let first = Entry::new().line(0, begin.first_step, StepEvent::Started, None);
    journal::append(turn.conn, begin.saga.id, &mut Ledger::default(), first.lines(), now)?;
    forget_old_sagas(turn.conn)
}

fn check_form(begin: &Begin) -> Result<(), StoreError> {
    let saga = &begin.saga;
    let illegal = |why| Err(StoreError::IllegalBegin { job: saga.id, why });
    if saga.state != SagaState::Running || saga.result.is_some() {
        return illegal("it has to be running and without a result");
    }
    if begin.instance.as_ref().is_some_and(|instance| instance.uuid != saga.instance) {
        return illegal("the new instance is not the saga's");
    }
    if begin.claims.iter().any(|c| c.state != ClaimState::Reserved || c.instance != saga.instance) {
        return illegal("a new claim has to be reserved and of the saga's instance");
    }
    Ok(())
}

fn check_operation(conn: &Connection, saga: &SagaRow) -> Result<(), StoreError> {
    let Some(id) = &saga.operation_id else { return Ok(()) };
    match reads::saga_by_operation(conn, id)? {
        None => Ok(()),
        Some(old) => Err(StoreError::OperationRepeated {
            job: old.id,
            // Not the instance: a domain without a UUID gets a new one with each try.
            same_request: old.op == saga.op && old.request_digest == saga.request_digest,
        }),
    }
}

fn check_instance(turn: &Turn<'_>, begin: &Begin) -> Result<(), StoreError> {
    let uuid = begin.saga.instance;
    match (&begin.instance, turn.books().instance(uuid)) {
        (Some(new), Some(old)) => {
            return Err(StoreError::InstanceExists {
                instance: uuid,
                same_request: new.request_digest == old.request_digest,
                job: newest_with_request(turn.conn, &begin.saga)?,
            });
        }
        (None, None) => return Err(StoreError::NotFound(Missing::Instance(uuid))),
        (Some(_), None) | (None, Some(_)) => {}
    }
    match reads::live_saga(turn.conn, uuid)? {
        None => Ok(()),
        Some(job) => Err(StoreError::Busy { instance: uuid, job }),
    }
}

fn newest_with_request(conn: &Connection, saga: &SagaRow) -> Result<Option<JobId>, StoreError> {
    rows::first(
        conn,
        "SELECT id FROM saga WHERE instance = ?1 AND op = ?2 AND request_digest = ?3 ORDER BY nr DESC LIMIT 1",
        params![saga.instance.to_string(), saga.op.as_str(), saga.request_digest],
        |row| rows::word(row, "id"),
    )
}

fn insert_saga(conn: &Connection, saga: &SagaRow) -> Result<(), StoreError> {
    conn.prepare_cached(
        "INSERT INTO saga (id, op, version, instance, state, operation_id, request_digest, params, created_usec)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![
        saga.id.to_string(),
        saga.op.as_str(),
        saga.version,
        saga.instance.to_string(),
        saga.state.as_str(),
        saga.operation_id,
        saga.request_digest,
        saga.params.to_string(),
        saga.created_usec,
    ])?;
    Ok(())
}

fn forget_old_sagas(conn: &Connection) -> Result<(), StoreError> {
    conn.prepare_cached(
        "DELETE FROM saga WHERE nr <= (SELECT max(nr) FROM saga) - ?1 AND state IN ('done', 'failed')",
    )?
    .execute([KEPT_SAGAS])?;
    Ok(())
}
