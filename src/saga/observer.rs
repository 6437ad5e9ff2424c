//! What a job shows while it runs.

use serde_json::Value;

use crate::model::{JobId, SagaState};

/// Where a saga stands at this moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Which saga.
    pub job: JobId,
    /// Its state.
    pub state: SagaState,
    /// Steps whose effect is there.
    pub steps_done: u32,
    /// Steps in all.
    pub steps_total: u32,
    /// The step at work, for people (`create_device 2/3`), and what it waits for. Empty at the end.
    pub step: String,
    /// Once it has ended: the result, or the fault.
    pub result: Option<Value>,
}

/// Told of every move, after it is on disk.
pub trait Observer: Send + Sync {
    /// Takes note; must not wait.
    fn progress(&self, progress: Progress);
}
