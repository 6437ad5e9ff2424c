//! Writing the journal: lines, the changes of the books that belong to them and the saga's turn, in one transaction.

use std::sync::Arc;

use rusqlite::{Connection, params};
use serde_json::Value;

use super::change::{self, Change};
use super::error::{Missing, StoreError};
use super::ledger::{Ledger, Line};
use super::tables::Turn;
use super::{Books, Store, reads};
use crate::model::{InstanceUuid, JobId, SagaState, StepEvent, Usec};

/// What one commit adds to a saga: `Done` of a step with its changes, `Started` of the next one, the saga's end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry {
    lines: Vec<Line>,
    changes: Vec<Change>,
    turn: Option<(SagaState, Option<Value>)>,
}

impl Entry {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a line of the journal.
    pub fn line(
        mut self,
        step: u32,
        name: impl Into<String>,
        event: StepEvent,
        payload: Option<Value>,
    ) -> Self {
        self.lines.push(Line { step, name: name.into(), event, payload });
        self
    }

    /// Adds changes of the books.
    pub fn changes(mut self, changes: impl IntoIterator<Item = Change>) -> Self {
        self.changes.extend(changes);
        self
    }

    /// Turns the saga; an end has a result.
    pub fn turn(mut self, state: SagaState, result: Option<Value>) -> Self {
        self.turn = Some((state, result));
        self
    }

    pub(super) fn lines(&self) -> &[Line] {
        &self.lines
    }
}

impl Store {
    /// Writes an entry of an open saga.
    ///
    /// # Errors
    /// `NotFound`, `IllegalTurn` (also for any entry of a saga that has ended), `IllegalEvent`, those of [`Change`]
    /// and of the disk.
    pub fn advance(&self, job: JobId, entry: Entry) -> Result<(), StoreError> {
        let now = self.clock.now_usec();
        self.writer.write(move |turn| write(turn, job, entry, now))
    }

    /// Books what the host did by itself, outside any saga (a guest that shut down).
    ///
    /// # Errors
    /// `Busy` while a saga is at work on an instance concerned: the saga will find out itself. Those of [`Change`] and
    /// of the disk.
    pub fn observe(&self, changes: Vec<Change>) -> Result<(), StoreError> {
        self.observe_with(changes, Vec::new())
    }

    /// As [`Store::observe`], and remembers facts with it, as [`Store::set_fact`] does.
    ///
    /// # Errors
    /// As [`Store::observe`].
    pub fn observe_with(
        &self,
        changes: Vec<Change>,
        facts: Vec<(&'static str, String)>,
    ) -> Result<(), StoreError> {
        let now = self.clock.now_usec();
        self.writer.write(move |turn| {
            for change in &changes {
                let Some(instance) = change::instance_of(turn, change)? else { continue };
                if let Some(job) = reads::live_saga(turn.conn, instance)? {
                    return Err(StoreError::Busy { instance, job });
                }
            }
            facts.iter().try_for_each(|(key, value)| put_fact(turn.conn, key, value))?;
            change::apply(turn, changes, now)
        })
    }

    /// As [`Store::observe`], if the claims of this instance are what they were in these books; else nothing is written, and
    /// what the changes rest on has to be looked at again. Whether it was written.
    ///
    /// # Errors
    /// Those of [`Store::observe`].
    pub fn observe_since(
        &self,
        seen: Arc<Books>,
        instance: InstanceUuid,
        changes: Vec<Change>,
    ) -> Result<bool, StoreError> {
        let now = self.clock.now_usec();
        self.writer.write(move |turn| {
            if let Some(job) = reads::live_saga(turn.conn, instance)? {
                return Err(StoreError::Busy { instance, job });
            }
            if !turn.books().claims_of(instance).eq(seen.claims_of(instance)) {
                return Ok(false);
            }
            change::apply(turn, changes, now).map(|()| true)
        })
    }

    /// Remembers one small thing, such as the boot id.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn set_fact(&self, key: &str, value: &str) -> Result<(), StoreError> {
        let (key, value) = (key.to_owned(), value.to_owned());
        self.writer.write(move |turn| put_fact(turn.conn, &key, &value))
    }
}

fn put_fact(conn: &Connection, key: &str, value: &str) -> Result<(), StoreError> {
    let sql = "INSERT INTO fact (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    conn.prepare_cached(sql)?.execute([key, value])?;
    Ok(())
}

fn write(turn: &mut Turn<'_>, job: JobId, entry: Entry, now: Usec) -> Result<(), StoreError> {
    let conn = turn.conn;
    let state = reads::saga_state(conn, job)?.ok_or(StoreError::NotFound(Missing::Job(job)))?;
    turn_saga(conn, job, state, entry.turn.as_ref())?;
    if !entry.lines.is_empty() {
        let events = reads::events_without_payload(conn, job)?;
        let mut ledger = Ledger::read(&events).map_err(|err| StoreError::IllegalEvent { job, err })?;
        append(conn, job, &mut ledger, &entry.lines, now)?;
    }
    change::apply(turn, entry.changes, now)
}

/// Checks that the saga is open, and turns it if the entry says so.
fn turn_saga(
    conn: &Connection,
    job: JobId,
    from: SagaState,
    turn: Option<&(SagaState, Option<Value>)>,
) -> Result<(), StoreError> {
    let (to, result) = match turn {
        None if from.is_open() => return Ok(()),
        None => (from, None),
        Some((to, result)) => (*to, result.as_ref()),
    };
    let state = from.after(to).map_err(|err| StoreError::IllegalTurn { job, err })?;
    conn.prepare_cached("UPDATE saga SET state = ?2, result = ?3 WHERE id = ?1")?.execute(params![
        job.to_string(),
        state.as_str(),
        result.map(ToString::to_string)
    ])?;
    Ok(())
}

/// Adds lines at the end of the ledger, which says whether they fit.
pub(super) fn append(
    conn: &Connection,
    job: JobId,
    ledger: &mut Ledger,
    lines: &[Line],
    now: Usec,
) -> Result<(), StoreError> {
    for line in lines {
        let seq = ledger.next_seq();
        ledger
            .add(line.step, &line.name, line.event, None)
            .map_err(|err| StoreError::IllegalEvent { job, err })?;
        conn.prepare_cached(
            "INSERT INTO saga_event (saga_id, seq, step, name, event, payload, at_usec)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            job.to_string(),
            seq,
            line.step,
            line.name,
            line.event.as_str(),
            line.payload.as_ref().map(ToString::to_string),
            now
        ])?;
    }
    Ok(())
}
