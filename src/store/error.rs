//! Why the books could not be read or changed. Whatever the error, nothing was changed.

use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::ErrorCode;

use super::ledger::LedgerError;
use crate::model::claim::IllegalMove;
use crate::model::journal::IllegalTurn;
use crate::model::{
    ClaimId, ClaimState, Fault, FaultKind, InstanceUuid, InvalidName, JobId, MdevUuid, ParentAddr,
};

/// A failed call of the store.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The disk is full, an I/O error, no permission, or somebody else has the lock: try later.
    #[error("the state database cannot be used; check the disk that holds it, nothing was changed")]
    Unavailable(#[source] Arc<rusqlite::Error>),
    /// The state directory or a file in it cannot be made, opened or locked.
    #[error("open {}", path.display())]
    Open {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        #[source]
        err: Arc<std::io::Error>,
    },
    /// Another daemon has this state directory.
    #[error("{} is locked by another mdevirtd; stop it or use another state directory", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// What was read is no database of ours, or holds a word or a value that cannot be.
    #[error("the state database is damaged: {0}; restore it from a backup")]
    Corrupt(String),
    /// A newer mdevirt wrote the database.
    #[error(
        "the state database has schema {found}, this mdevirtd knows up to {known}; install the newer version"
    )]
    SchemaTooNew {
        /// The number in the file.
        found: i64,
        /// The newest that is known here.
        known: i64,
    },
    /// A rule of the schema would be broken: a fault of ours.
    #[error("a rule of the state database would be broken")]
    Constraint(#[source] Arc<rusqlite::Error>),
    /// The named row is not there.
    #[error("{0} is not in the books")]
    NotFound(Missing),
    /// The claim cannot move that way.
    #[error("claim {claim} stays as it is")]
    IllegalMove {
        /// Which claim.
        claim: ClaimId,
        /// The move.
        #[source]
        err: IllegalMove,
    },
    /// A claim's row goes only after its release.
    #[error("claim {claim} is {state}, not releasing; its row stays")]
    ClaimStands {
        /// Which claim.
        claim: ClaimId,
        /// Where it stands.
        state: ClaimState,
    },
    /// The journal does not take this line.
    #[error("saga {job} does not take the line")]
    IllegalEvent {
        /// Which saga.
        job: JobId,
        /// The reason.
        #[source]
        err: LedgerError,
    },
    /// The saga cannot turn that way.
    #[error("saga {job} stays as it is")]
    IllegalTurn {
        /// Which saga.
        job: JobId,
        /// The turn.
        #[source]
        err: IllegalTurn,
    },
    /// What is to begin does not begin like that.
    #[error("saga {job} cannot begin: {why}")]
    IllegalBegin {
        /// Which saga.
        job: JobId,
        /// The reason.
        why: &'static str,
    },
    /// Another saga is at work on the instance.
    #[error("instance {instance} is busy with job {job}; wait for its end")]
    Busy {
        /// Whose saga.
        instance: InstanceUuid,
        /// The one at work.
        job: JobId,
    },
    /// The operation id was given before.
    #[error("the operation id was used before, by job {job}{}", if *same_request { "" } else { ", for another request" })]
    OperationRepeated {
        /// The saga that has it.
        job: JobId,
        /// Whether it is the same request, so that the old job is the answer.
        same_request: bool,
    },
    /// The instance is in the books already.
    #[error("instance {instance} exists{}", if *same_request { "" } else { ", made by another request" })]
    InstanceExists {
        /// Which.
        instance: InstanceUuid,
        /// Whether the same request made it.
        same_request: bool,
        /// The newest saga with this very request, if there is one: then it is the answer.
        job: Option<JobId>,
    },
    /// The device belongs to a claim.
    #[error("device {uuid} on {parent} belongs to claim {claim}")]
    DeviceTaken {
        /// The device.
        uuid: MdevUuid,
        /// Where it is.
        parent: ParentAddr,
        /// Who has it.
        claim: ClaimId,
    },
    /// The re-check inside the transaction said no.
    #[error("the request was refused")]
    Refused(#[source] Fault),
}

/// What is not in the books.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// An instance.
    #[error("instance {0}")]
    Instance(InstanceUuid),
    /// A saga.
    #[error("job {0}")]
    Job(JobId),
    /// A claim.
    #[error("claim {0}")]
    Claim(ClaimId),
}

impl StoreError {
    /// Whether the same call may succeed later, without a change of ours.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Open { .. } | Self::Locked { .. })
    }

    pub(super) fn column(column: &str, why: &InvalidName) -> Self {
        Self::Corrupt(format!("column {column}: {why}"))
    }

    /// The saga that is in the way.
    fn job(&self) -> Option<JobId> {
        if let Self::Busy { job, .. } | Self::OperationRepeated { job, .. } = self {
            return Some(*job);
        }
        None
    }

    fn kind(&self) -> FaultKind {
        match self {
            Self::Unavailable(_)
            | Self::Open { .. }
            | Self::Locked { .. }
            | Self::Corrupt(_)
            | Self::SchemaTooNew { .. } => FaultKind::StoreUnavailable,
            Self::NotFound(Missing::Instance(_)) => FaultKind::NoSuchInstance,
            Self::NotFound(Missing::Job(_)) => FaultKind::NoSuchJob,
            Self::Busy { .. } => FaultKind::InstanceBusy,
            Self::OperationRepeated { .. } => FaultKind::InvalidRequest,
            Self::InstanceExists { .. } => FaultKind::InstanceExists,
            Self::DeviceTaken { .. } => FaultKind::DeviceInUse,
            Self::Refused(fault) => fault.kind,
            Self::NotFound(Missing::Claim(_))
            | Self::Constraint(_)
            | Self::IllegalMove { .. }
            | Self::ClaimStands { .. }
            | Self::IllegalEvent { .. }
            | Self::IllegalTurn { .. }
            | Self::IllegalBegin { .. } => FaultKind::Internal,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(err: rusqlite::Error) -> Self {
        match err.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt(err.to_string()),
            Some(ErrorCode::ConstraintViolation) => Self::Constraint(Arc::new(err)),
            Some(_) => Self::Unavailable(Arc::new(err)),
            // Not SQLite's: a value of another type than the schema says.
            None => Self::Corrupt(err.to_string()),
        }
    }
}

impl From<StoreError> for Fault {
    fn from(err: StoreError) -> Self {
        if let StoreError::Refused(fault) = err {
            return fault;
        }
        let mut message = err.to_string();
        let mut cause = std::error::Error::source(&err);
        while let Some(inner) = cause {
            message = format!("{message}: {inner}");
            cause = inner.source();
        }
        let details = match err.job() {
            Some(job) => serde_json::json!({ "job": job }),
            None => serde_json::Value::Null,
        };
        Fault::new(err.kind(), message).with_details(details)
    }
}
