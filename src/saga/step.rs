//! One step of an operation.

use std::fmt::Debug;

use async_trait::async_trait;
use serde_json::Value;

use crate::model::Fault;
use crate::store::Change;

/// What a look at the host says about a step's effect.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// It is there, and this is what the step returns.
    Done(Value),
    /// It is not there.
    Absent,
    /// A part of it is there: the way forward does the step again, the way back takes the part away.
    Partial,
    /// Something of others is in its place; what and where.
    Foreign(String),
}

/// Why a step, an undo or a look did not succeed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StepError {
    /// It failed, for sure. Whether a part of the effect is there is looked up.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// It could not be found out, or the outcome was lost: what is missing, for people.
    #[error("{0}")]
    Unknown(String),
}

/// Which of several equal steps this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Counts from 0.
    pub index: u32,
    /// How many there are.
    pub of: u32,
}

/// One effect, with the look and the undo that belong to it.
#[async_trait]
pub trait Step: Send + Sync + Debug {
    /// Its name in the journal: lower case and underscores, never renamed.
    fn name(&self) -> &'static str;

    /// Which one it is, where an operation has the step several times (once per device).
    fn part(&self) -> Option<Part> {
        None
    }

    /// Looks whether the effect is there. Changes nothing.
    ///
    /// # Errors
    /// Whatever the error, the runner waits for the host and asks again.
    async fn seen(&self) -> Result<Seen, StepError>;

    /// Does it, also if it is done already.
    ///
    /// # Errors
    /// A definite failure, or an unknown outcome.
    async fn run(&self) -> Result<Value, StepError>;

    /// Takes it back, also if it is gone already. `out` is what the step returned, as far as that is known.
    ///
    /// # Errors
    /// A definite failure, or an unknown outcome.
    async fn undo(&self, out: Option<&Value>) -> Result<(), StepError>;

    /// What changes in the books when the effect is there.
    fn done_changes(&self, _out: &Value) -> Vec<Change> {
        Vec::new()
    }

    /// What changes in the books when an effect that was there is gone again: the way back of `done_changes`.
    fn undone_changes(&self) -> Vec<Change> {
        Vec::new()
    }
}
