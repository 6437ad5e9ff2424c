//! Devices that are gone, and differences between books, hardware and domains, as callers see them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::{InstanceUuid, MdevUuid, ParentAddr};
use crate::plan::reconcile::{Action, DifferenceKind};

/// How far the devices are that a boot or an unplugged card took, in numbers of claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreView {
    /// All of them.
    pub total: usize,
    /// There again.
    pub restored: usize,
    /// Waited for, or being made.
    pub missing: usize,
    /// Not possible as things are.
    pub lost: usize,
}

impl fmt::Display for RestoreView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} restored", self.restored, self.total)?;
        if self.lost > 0 { write!(f, ", {} lost", self.lost) } else { Ok(()) }
    }
}

/// One difference, as `reconcile --json` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReconcileView {
    /// What kind it is.
    pub kind: DifferenceKind,
    /// Node-device name as in [`ClaimView`](super::ClaimView), the UUID where its place is not one; `null` if it is not
    /// about a device.
    pub device: Option<String>,
    /// UUID of the device.
    pub uuid: Option<MdevUuid>,
    /// Where it is.
    pub parent: Option<ParentAddr>,
    /// Whose it is.
    pub instance: Option<InstanceUuid>,
    /// What is to be done about it.
    pub action: Action,
    /// It was done.
    pub done: bool,
    /// What was found, why nothing was done, what to do.
    pub text: String,
}
