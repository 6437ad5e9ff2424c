//! What a provider has, as Placement would see it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::address::ParentAddr;
use super::mdev_type::TypeId;
use super::vocab::{ResourceClass, TraitName};

/// One inventory record; never made for a total of 0, which Placement refuses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InventoryRecord {
    /// `<host>_<node name>`, for example `h1_pci_0000_84_00_0`.
    pub provider: String,
    /// The parent.
    pub parent: ParentAddr,
    /// Class of the slices.
    pub resource_class: ResourceClass,
    /// Local id of the configured type.
    pub mdev_type: TypeId,
    /// Its vendor name, the id when it has none.
    pub type_name: String,
    /// Existing slices of the type, ours and foreign, plus what can still be made.
    pub total: u32,
    /// The operator's reserve plus the foreign ones.
    pub reserved: u32,
    /// Greatest number for one VM.
    pub max_unit: u32,
    /// Slices that instances of ours hold.
    pub used: u32,
    /// Slices that somebody else made.
    pub foreign: u32,
    /// Traits of the type.
    pub traits: BTreeSet<TraitName>,
}
