//! A saga as the bus shows it.

use serde::{Deserialize, Serialize};

use super::id::{InstanceUuid, JobId, Usec};
use super::journal::{OpKind, SagaState};

/// One operation under way or ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Key.
    pub id: JobId,
    /// What it does.
    pub op: OpKind,
    /// Whose it is.
    pub instance: InstanceUuid,
    /// Where it stands.
    pub state: SagaState,
    /// Steps done so far.
    pub steps_done: u32,
    /// Steps in all.
    pub steps_total: u32,
    /// The step at work, for people.
    pub step: String,
    /// When it began.
    pub created_usec: Usec,
    /// Once it has ended: the result, or `{kind, message, details}` of the failure.
    pub result: Option<serde_json::Value>,
}
