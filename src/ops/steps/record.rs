//! Nothing but a change of the books: the last step of an operation that may have no device to work on.

use async_trait::async_trait;
use serde_json::Value;

use crate::saga::{Seen, Step, StepError};
use crate::store::Change;

/// See the head of the file.
#[derive(Debug)]
pub struct Record {
    changes: Vec<Change>,
}

impl Record {
    /// The step that writes these changes.
    pub fn new(changes: Vec<Change>) -> Self {
        Self { changes }
    }
}

#[async_trait]
impl Step for Record {
    fn name(&self) -> &'static str {
        "record"
    }

    async fn seen(&self) -> Result<Seen, StepError> {
        Ok(Seen::Absent)
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
}
