//! Traits: what a user asks for, bound to one type identity on every host (rank 1).
//!
//! ```text
//!   traits.toml --document--> Catalog (trait -> Binding) --+
//!   traits.lock --lock------> Lock (trait -> TypeIdentity) +--resolve(scan, what was meant before)--> per trait: state, local types
//!                                                          +--export--> document for other hosts --verify--> differences
//! ```
//! 1. A local type id never leaves the host, unless it stands in for a missing name.
//! 2. What a word meant once it means until an operator accepts another identity: nothing drifts in silence.
//! 3. What is known of types (`capability`, `series`) are rows of data files, each with its public source; what no row
//!    states is not claimed.
//! 4. Canonical form and digest do not depend on order, spelling or host.

pub mod accept;
mod canonical;
pub mod capability;
mod document;
mod export;
mod load;
mod lock;
pub mod memory;
mod names;
pub mod resolve;
pub mod sense;
pub mod series;
pub mod type_name;
mod verify;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::model::claim::text_enum;
use crate::model::{Framework, InvalidName, MdevType, Parent, TraitName, TypeIdentity};

pub use canonical::{Digest, canonical, digest, seal};
pub use export::{Export, Exported, LockMark, MAX_EXPORT_BYTES};
pub use lock::{Acceptance, Accepted, Lock, Locked, MAX_LOCK_BYTES};
pub use names::{standard_traits, trait_name};
pub use verify::{Difference, DifferenceKind, Verdict, verify};

/// Greatest number of traits in one file.
pub const MAX_TRAITS: usize = 10_000;

/// What `traits.toml` says of one trait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// Vendor name of the type, or its id where the driver gives no names.
    pub type_key: String,
    /// Only on parents of this PCI vendor.
    pub vendor_id: Option<u16>,
    /// Only on parents with this PCI device id.
    pub device_id: Option<u16>,
    /// Only on parents that make slices so.
    pub framework: Option<Framework>,
    /// Only types with a framebuffer of this size.
    pub framebuffer_mib: Option<u32>,
}

impl Binding {
    /// Whether the type that this parent offers is one that the operator means.
    pub fn fits(&self, parent: &Parent, mdev_type: &MdevType) -> bool {
        let identity = TypeIdentity::of(parent, mdev_type);
        let key = self.type_key.split_whitespace();
        identity.label().split(' ').eq(key)
            && self.is_about(parent)
            && (self.framebuffer_mib.is_none() || self.framebuffer_mib == identity.framebuffer_mib)
    }

    /// Whether the file's words, as they are, name this identity. After an acceptance they may not: then they are older.
    pub fn names(&self, identity: &TypeIdentity) -> bool {
        let is = |wanted: Option<u16>, found: Option<u16>| wanted.is_none() || wanted == found;
        identity.label().split(' ').eq(self.type_key.split_whitespace())
            && is(self.vendor_id, identity.vendor_id)
            && is(self.device_id, identity.device_id)
            && (self.framebuffer_mib.is_none() || self.framebuffer_mib == identity.framebuffer_mib)
    }

    /// Whether types of this parent may be meant at all.
    pub fn is_about(&self, parent: &Parent) -> bool {
        let is = |wanted: Option<u16>, found: Option<u16>| wanted.is_none() || wanted == found;
        is(self.vendor_id, parent.vendor_id)
            && is(self.device_id, parent.device_id)
            && (self.framework.is_none() || self.framework == parent.framework)
    }

    /// The identity of a type that fits: narrowed to one kind of card where the operator did so.
    pub fn identity(&self, parent: &Parent, mdev_type: &MdevType) -> TypeIdentity {
        let identity = TypeIdentity::of(parent, mdev_type);
        TypeIdentity { device_id: self.device_id.or(identity.device_id), ..identity }
    }
}

/// All of `traits.toml`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    /// Traits by name.
    pub bindings: BTreeMap<TraitName, Binding>,
}

text_enum!(
    /// How a trait stands on one host.
    TraitState, "state of a trait" {
        /// It has one identity, and this host offers it.
        Ok = "ok",
        /// What it was bound to has become something else; no new claims until an operator accepts.
        Drift = "drift",
        /// No parent of this host offers its identity.
        Unavailable = "unavailable",
        /// Types of two identities fit it.
        Ambiguous = "ambiguous",
    }
);

#[cfg(test)]
mod property_tests;
