//! Traits, the lock and the plan as callers see them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::catalog::TraitState;
use crate::model::{Finding, ParentAddr, Shift, ShiftKind, TraitName, TypeId, TypeIdentity, Usec};

/// A trait of this host (`trait list --json`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraitView {
    /// Its name.
    pub name: TraitName,
    /// Vendor name of the type that it is bound to, as `traits.toml` or the lock has it.
    pub type_name: String,
    /// What it is bound to; `null` while that is not known, or not one.
    pub identity: Option<TypeIdentity>,
    /// The types of this host that are it.
    pub local_types: Vec<LocalType>,
    /// Where it stands.
    pub state: TraitState,
    /// Why it is not `ok`, and what to do; of an `ok` one, what makes it less safe than others. Empty otherwise.
    pub reason: String,
    /// Whether the lock has it.
    pub locked: bool,
    /// What became of it, oldest first.
    pub history: Vec<HistoryLine>,
}

/// A type by its id on one parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalType {
    /// Where.
    pub parent: ParentAddr,
    /// Its id there.
    pub id: TypeId,
}

/// One line of a trait's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryLine {
    /// When it was noticed.
    pub at_usec: Usec,
    /// Where.
    pub parent: ParentAddr,
    /// What happened.
    pub kind: ShiftKind,
    /// A local id, a name or an identity.
    pub was: String,
    /// The same afterwards.
    pub now: String,
    /// The operator's reason, empty otherwise.
    pub reason: String,
}

impl From<Shift> for HistoryLine {
    fn from(shift: Shift) -> Self {
        let Shift { at_usec, parent, kind, was, now, reason, .. } = shift;
        Self { at_usec, parent, kind, was, now, reason }
    }
}

/// The lock of this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockView {
    /// Where it is, or was written.
    pub path: PathBuf,
    /// Counted up with each change.
    pub revision: u64,
    /// SHA-256 over what it pins.
    pub digest: String,
    /// How many traits it pins.
    pub traits: usize,
    /// Traits of `traits.toml` that it does not pin, with the reason.
    pub left_out: Vec<LeftOut>,
}

/// A trait that is not pinned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Which.
    #[serde(rename = "trait")]
    pub name: TraitName,
    /// Why.
    pub reason: String,
}

/// How this host compares with its lock (`trait check --json`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraitCheck {
    /// Whether nothing differs.
    pub agree: bool,
    /// The lock; `null` without one.
    pub lock: Option<LockView>,
    /// What differs.
    pub differences: Vec<CheckDifference>,
}

/// A trait that is not as its lock or `traits.toml` has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckDifference {
    /// Which.
    #[serde(rename = "trait")]
    pub name: TraitName,
    /// Where it stands on this host.
    pub state: TraitState,
    /// What the lock pins it to.
    pub locked: Option<TypeIdentity>,
    /// What this host has in its place.
    pub found: Vec<TypeIdentity>,
    /// What is wrong and what to do.
    pub reason: String,
}

/// `trait accept`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptRequest {
    /// A trait, or a key of `enabled_mdev_types`.
    pub word: String,
    /// Why, for the history.
    pub reason: String,
    /// The parent whose type is taken, where parents differ.
    #[serde(default)]
    pub parent: Option<ParentAddr>,
}

/// What would change (`plan --json`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanView {
    /// Providers and traits that would not be what they are.
    pub changes: Vec<PlanChange>,
    /// What of the new configuration has no effect, or is in the way.
    pub findings: Vec<Finding>,
}

/// One thing that would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanChange {
    /// `provider` or `trait`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What of it: `total`, `mdev_type`, `state`; empty when all of it comes or goes.
    pub field: String,
    /// What it is; `null` for what comes.
    pub from: Option<String>,
    /// What it would be; `null` for what goes.
    pub to: Option<String>,
}
