//! The journal's vocabulary: operations, step events, and the one table of legal pairs.
//!
//! Run time and recovery use the same table, so that a damaged journal is found when it is read.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::claim::text_enum;
use super::id::{InstanceUuid, InvalidName, JobId, Usec};

text_enum!(
    /// Operations. The words are on the bus and in the journal: never renamed.
    OpKind, "operation" {
        /// Book devices, make them, define and start a domain with them.
        Spawn = "spawn",
        /// Stop and undefine the domain, give the devices back.
        Destroy = "destroy",
        /// Start the domain of an instance.
        Start = "start",
        /// Stop it; the devices stay booked.
        Stop = "stop",
        /// Book and make devices for a domain that somebody else owns.
        Claim = "claim",
        /// Give those back.
        Release = "release",
        /// Save the guest's memory and switch it off; the devices stay booked.
        Suspend = "suspend",
        /// Go on where it was suspended.
        Resume = "resume",
        /// Stop and start at once.
        Reboot = "reboot",
        /// Start another definition with the same devices, for repair.
        Rescue = "rescue",
        /// Back to the definition before the rescue.
        Unrescue = "unrescue",
        /// Another definition with the same devices, for good.
        Rebuild = "rebuild",
        /// One more device, also into a running domain.
        Attach = "attach",
        /// One device out, also of a running domain.
        Detach = "detach",
        /// Make the devices of another flavor beside the old ones.
        ResizePrepare = "resize-prepare",
        /// Change over to them.
        ResizeFinish = "resize-finish",
        /// Give the old ones back.
        ResizeConfirm = "resize-confirm",
        /// Back to the old ones, exactly.
        ResizeRevert = "resize-revert",
        /// Source: switch the guest off and hand it out as a document.
        MigrateBegin = "migrate-begin",
        /// Target: book and make the devices for that document.
        MigratePrepare = "migrate-prepare",
        /// Target: define and start the domain.
        MigrateFinish = "migrate-finish",
        /// The instance stays on the target: the source gives everything back.
        MigrateConfirm = "migrate-confirm",
        /// It stays on the source: the target gives everything back.
        MigrateRevert = "migrate-revert",
        /// Target: book and make the devices for a guest that comes running.
        LivePrepare = "live-prepare",
        /// Source: move the running guest and give everything back. Target: it is here, and its own.
        LiveCommit = "live-commit",
        /// The guest stays on the source: the target gives everything back.
        LiveRollback = "live-rollback",
        /// Make the lost devices of an instance again.
        Restore = "restore",
    }
);

text_enum!(
    /// Where a saga stands.
    SagaState, "saga state" {
        /// Going forward.
        Running = "running",
        /// A step failed; effects are being undone, newest first.
        Unwinding = "unwinding",
        /// All steps are done.
        Done = "done",
        /// All effects are undone.
        Failed = "failed",
        /// Past its point of no return, or an undo failed: an operator has to look.
        Stuck = "stuck",
    }
);

impl SagaState {
    /// Whether something is still to be done.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Unwinding)
    }

    /// The table of legal turns: what has ended stays as it ended.
    ///
    /// # Errors
    /// The pair is not in the table.
    pub fn after(self, to: Self) -> Result<Self, IllegalTurn> {
        match (self, to) {
            (Self::Running, Self::Unwinding | Self::Done | Self::Failed | Self::Stuck)
            | (Self::Unwinding, Self::Failed | Self::Stuck) => Ok(to),
            (from, to) => Err(IllegalTurn { from, to }),
        }
    }
}

/// A saga cannot turn that way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a saga that is {from} cannot become {to}")]
pub struct IllegalTurn {
    /// Where it stands.
    pub from: SagaState,
    /// Where it was to go.
    pub to: SagaState,
}

text_enum!(
    /// What the journal says of a step.
    StepEvent, "step event" {
        /// Written before the effect.
        Started = "started",
        /// The effect happened; payload is the step's result.
        Done = "done",
        /// The step failed; payload is the error. Whether something is left of it is looked up before the undo.
        Failed = "failed",
        /// Written before the undo.
        UndoStarted = "undo-started",
        /// The effect is gone.
        Undone = "undone",
    }
);

/// Where one step stands: what its events add up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepStatus {
    /// Nothing happened yet.
    Never,
    /// The effect may or may not have happened.
    Running,
    /// It happened.
    Done,
    /// It failed; a part may have happened.
    Failed,
    /// The undo may or may not have happened.
    Undoing,
    /// It is gone again.
    Undone,
}

/// The journal holds a pair that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("journal: event {event} after {status:?}")]
pub struct IllegalEvent {
    /// Where the step stood.
    pub status: StepStatus,
    /// What came next.
    pub event: StepEvent,
}

impl StepStatus {
    /// The table of legal pairs.
    ///
    /// # Errors
    /// The pair is not in the table.
    pub fn after(self, event: StepEvent) -> Result<Self, IllegalEvent> {
        use StepEvent as E;
        match (self, event) {
            // A step may run twice: a restart in the middle writes Started again.
            (Self::Never | Self::Running, E::Started) => Ok(Self::Running),
            (Self::Running, E::Done) => Ok(Self::Done),
            (Self::Running, E::Failed) => Ok(Self::Failed),
            // An undo may run twice too; a step that failed half way or whose outcome is unknown is undone as if done.
            (Self::Done | Self::Failed | Self::Running | Self::Undoing, E::UndoStarted) => Ok(Self::Undoing),
            (Self::Undoing, E::Undone) => Ok(Self::Undone),
            (status, event) => Err(IllegalEvent { status, event }),
        }
    }
}

/// A saga as the journal holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct SagaRow {
    /// Its id, and the job's.
    pub id: JobId,
    /// What it does.
    pub op: OpKind,
    /// Version of the list of steps; the old list stays while a journal may hold it.
    pub version: u32,
    /// Whose it is.
    pub instance: InstanceUuid,
    /// Where it stands.
    pub state: SagaState,
    /// The caller's operation id, if one was given.
    pub operation_id: Option<String>,
    /// SHA-256 over the request, to tell a repeat from another request.
    pub request_digest: String,
    /// All that the steps need, fixed when the saga began.
    pub params: serde_json::Value,
    /// Result or error once it has ended.
    pub result: Option<serde_json::Value>,
    /// When it began.
    pub created_usec: Usec,
}

/// One line of the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct SagaEventRow {
    /// Counts from 1 within the saga.
    pub seq: u32,
    /// Index of the step.
    pub step: u32,
    /// Name of the step, for people and to catch a changed list.
    pub name: String,
    /// What happened.
    pub event: StepEvent,
    /// Result or error.
    pub payload: Option<serde_json::Value>,
    /// When.
    pub at_usec: Usec,
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUSES: [StepStatus; 6] = [
        StepStatus::Never,
        StepStatus::Running,
        StepStatus::Done,
        StepStatus::Failed,
        StepStatus::Undoing,
        StepStatus::Undone,
    ];

    #[test]
    fn only_listed_step_events_are_legal() {
        let legal: Vec<String> = STATUSES
            .iter()
            .flat_map(|s| StepEvent::ALL.iter().map(move |e| (*s, *e)))
            .filter_map(|(s, e)| s.after(e).ok().map(|to| format!("{s:?} {e} {to:?}")))
            .collect();
        assert_eq!(
            legal,
            [
                "Never started Running",
                "Running started Running",
                "Running done Done",
                "Running failed Failed",
                "Running undo-started Undoing",
                "Done undo-started Undoing",
                "Failed undo-started Undoing",
                "Undoing undo-started Undoing",
                "Undoing undone Undone",
            ]
        );
    }

    #[test]
    fn what_has_ended_stays() {
        let legal: Vec<String> = SagaState::ALL
            .iter()
            .flat_map(|s| SagaState::ALL.iter().map(move |to| (*s, *to)))
            .filter_map(|(s, to)| s.after(to).ok().map(|to| format!("{s} {to}")))
            .collect();
        assert_eq!(
            legal,
            [
                "running unwinding",
                "running done",
                "running failed",
                "running stuck",
                "unwinding failed",
                "unwinding stuck",
            ]
        );
    }
}
