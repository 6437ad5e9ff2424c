//! Nothing but a change of the books, where no effect on the host goes with it.

use async_trait::async_trait;
use serde_json::Value;

use crate::saga::{Seen, Step, StepError};
use crate::store::Change;

/// See the head of the file.
#[derive(Debug)]
pub struct Record {
    name: &'static str,
    changes: Vec<Change>,
    back: Vec<Change>,
}

impl Record {
    /// The last step of an operation.
    pub fn new(changes: Vec<Change>) -> Self {
        Self { name: "record", changes, back: Vec::new() }
    }

    /// The step in the middle of one that decides which side is kept; it stands before what cannot be taken back.
    pub fn decision(changes: Vec<Change>) -> Self {
        Self { name: "record_decision", changes, back: Vec::new() }
    }

    /// The first step of an operation, and how it is taken back.
    pub fn both_ways(changes: Vec<Change>, back: Vec<Change>) -> Self {
        Self { name: "record", changes, back }
    }
}

#[async_trait]
impl Step for Record {
    fn name(&self) -> &'static str {
        self.name
    }

    /// The journal knows, nobody else: both ways may be gone again.
    async fn seen(&self) -> Result<Seen, StepError> {
        Ok(Seen::Partial)
    }

    async fn run(&self) -> Result<Value, StepError> {
        Ok(Value::Null)
    }

    async fn undo(&self, _out: Option<&Value>) -> Result<(), StepError> {
        Ok(())
    }

    fn done_changes(&self, _out: &Value) -> Vec<Change> {
        self.changes.clone()
    }

    fn undone_changes(&self) -> Vec<Change> {
        self.back.clone()
    }
}
