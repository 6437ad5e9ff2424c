//! What the lines of one saga add up to. Writing and recovery read the journal through this alone.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::journal::IllegalEvent;
use crate::model::{SagaEventRow, StepEvent, StepStatus};

/// One line for the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Index of the step.
    pub step: u32,
    /// Its name in the journal.
    pub name: String,
    /// What happened.
    pub event: StepEvent,
    /// Result or error.
    pub payload: Option<Value>,
}

/// Where one step stands.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRecord {
    /// Its name in the journal.
    pub name: String,
    /// What its events add up to.
    pub status: StepStatus,
    /// What it returned, `null` for nothing, if it was done at any time.
    pub out: Option<Value>,
    /// Its error, if it failed.
    pub failure: Option<Value>,
}

/// All steps of one saga that the journal names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ledger {
    steps: BTreeMap<u32, StepRecord>,
    last_seq: u32,
}

/// The lines of a saga do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// An event that cannot follow.
    #[error("step {step} {name:?}")]
    Event {
        /// Index of the step.
        step: u32,
        /// Its name.
        name: String,
        /// The pair.
        #[source]
        err: IllegalEvent,
    },
    /// One step under two names.
    #[error("step {step} is called {was:?} and then {is:?}")]
    Renamed {
        /// Index of the step.
        step: u32,
        /// The earlier name.
        was: String,
        /// The later name.
        is: String,
    },
    /// A line is missing or double.
    #[error("line {found} follows line {last}")]
    Gap {
        /// The last good one.
        last: u32,
        /// The next one.
        found: u32,
    },
}

impl Ledger {
    /// Adds up the lines of a saga in the order of their numbers.
    ///
    /// # Errors
    /// The first line that does not fit.
    pub fn read(events: &[SagaEventRow]) -> Result<Self, LedgerError> {
        let mut ledger = Self::default();
        for row in events {
            if row.seq != ledger.next_seq() {
                return Err(LedgerError::Gap { last: ledger.last_seq, found: row.seq });
            }
            ledger.add(row.step, &row.name, row.event, row.payload.as_ref())?;
        }
        Ok(ledger)
    }

    /// Adds one line.
    ///
    /// # Errors
    /// It does not fit; the ledger is as before.
    pub fn add(
        &mut self,
        step: u32,
        name: &str,
        event: StepEvent,
        payload: Option<&Value>,
    ) -> Result<(), LedgerError> {
        let mut record = match self.steps.get(&step) {
            Some(record) if record.name != name => {
                return Err(LedgerError::Renamed { step, was: record.name.clone(), is: name.to_owned() });
            }
            Some(record) => record.clone(),
            None => StepRecord { name: name.to_owned(), status: StepStatus::Never, out: None, failure: None },
        };
        record.status = record.status.after(event).map_err(|err| LedgerError::Event {
            step,
            name: name.to_owned(),
            err,
        })?;
        let payload = payload.cloned().unwrap_or_default();
        match event {
            StepEvent::Done => record.out = Some(payload),
            StepEvent::Failed => record.failure = Some(payload),
            StepEvent::Started | StepEvent::UndoStarted | StepEvent::Undone => {}
        }
        self.steps.insert(step, record);
        self.last_seq = self.next_seq();
        Ok(())
    }

    /// The number of the next line.
    pub fn next_seq(&self) -> u32 {
        self.last_seq.saturating_add(1)
    }

    /// The step's record, `None` if nothing was written of it.
    pub fn step(&self, index: u32) -> Option<&StepRecord> {
        self.steps.get(&index)
    }

    /// Every step that the journal names, by index.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = (u32, &StepRecord)> {
        self.steps.iter().map(|(index, record)| (*index, record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(seq: u32, step: u32, name: &str, event: StepEvent) -> SagaEventRow {
        SagaEventRow { seq, step, name: name.into(), event, payload: Some(seq.into()), at_usec: 0 }
    }

    #[test]
    fn lines_add_up() {
        use StepEvent as E;
        let ledger = Ledger::read(&[
            row(1, 0, "a", E::Started),
            row(2, 0, "a", E::Done),
            row(3, 1, "b", E::Started),
            row(4, 1, "b", E::Failed),
            row(5, 0, "a", E::UndoStarted),
        ])
        .unwrap();
        assert_eq!(ledger.step(0).unwrap().status, StepStatus::Undoing);
        assert_eq!(ledger.step(0).unwrap().out, Some(2.into()));
        assert_eq!(ledger.step(1).unwrap().failure, Some(4.into()));
        assert_eq!((ledger.step(2), ledger.next_seq()), (None, 6));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        use StepEvent as E;
        for (rows, text) in [
            (vec![row(1, 0, "a", E::Done)], "step 0 \"a\""),
            (vec![row(1, 0, "a", E::Started), row(2, 0, "b", E::Done)], "called \"a\" and then \"b\""),
            (vec![row(1, 0, "a", E::Started), row(3, 0, "a", E::Done)], "line 3 follows line 1"),
            (vec![row(1, 0, "a", E::Started), row(1, 0, "a", E::Done)], "line 1 follows line 1"),
        ] {
            let err = Ledger::read(&rows).unwrap_err().to_string();
            assert!(err.contains(text), "{err}");
        }
    }
}
