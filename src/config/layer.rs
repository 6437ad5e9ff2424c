//! What one file says, with places, before anything is compared; and how a later file wins.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::model::{ParentAddr, ResourceClass, TraitName};
use crate::text::{At, Spot};

use super::{Automatic, OnRelease, OnStop, Packing, Unlisted};

/// One file; what it does not say is `None`.
#[derive(Debug, Default)]
pub(super) struct Layer {
    pub(super) libvirt_uri: Option<String>,
    pub(super) enabled: Option<Vec<At<String>>>,
    pub(super) unlisted: Option<Unlisted>,
    pub(super) traits_file: Option<PathBuf>,
    pub(super) traits_lock: Option<PathBuf>,
    pub(super) automatic: Option<BTreeSet<Automatic>>,
    pub(super) packing: Option<Packing>,
    pub(super) on_release: Option<OnRelease>,
    pub(super) on_stop: Option<OnStop>,
    pub(super) hook_start_budget_ms: Option<u32>,
    pub(super) restore_deadline_sec: Option<u32>,
    pub(super) live_deadline_sec: Option<u32>,
    /// By type, as the type is written.
    pub(super) types: BTreeMap<String, TypeTable>,
}

/// The table of one type.
#[derive(Debug)]
pub(super) struct TypeTable {
    /// Its head.
    pub(super) spot: Spot,
    pub(super) addresses: Option<Vec<At<ParentAddr>>>,
    pub(super) class: Option<ResourceClass>,
    pub(super) max_instances: Option<u32>,
    pub(super) reserved: Option<u32>,
    pub(super) traits: Option<BTreeSet<TraitName>>,
    pub(super) several_per_vm: Option<bool>,
}

impl TypeTable {
    /// A table that says nothing yet.
    pub(super) fn new(spot: Spot) -> Self {
        Self {
            spot,
            addresses: None,
            class: None,
            max_instances: None,
            reserved: None,
            traits: None,
            several_per_vm: None,
        }
    }

    fn under(self, later: Self) -> Self {
        Self {
            spot: later.spot,
            addresses: later.addresses.or(self.addresses),
            class: later.class.or(self.class),
            max_instances: later.max_instances.or(self.max_instances),
            reserved: later.reserved.or(self.reserved),
            traits: later.traits.or(self.traits),
            several_per_vm: later.several_per_vm.or(self.several_per_vm),
        }
    }
}

impl Layer {
    /// This layer with a later one above it: key by key, also inside the table of a type; a list replaces a list.
    pub(super) fn under(mut self, later: Self) -> Self {
        for (key, table) in later.types {
            let merged = match self.types.remove(&key) {
                Some(below) => below.under(table),
                None => table,
            };
            self.types.insert(key, merged);
        }
        Self {
            libvirt_uri: later.libvirt_uri.or(self.libvirt_uri),
            enabled: later.enabled.or(self.enabled),
            unlisted: later.unlisted.or(self.unlisted),
            traits_file: later.traits_file.or(self.traits_file),
            traits_lock: later.traits_lock.or(self.traits_lock),
            automatic: later.automatic.or(self.automatic),
            packing: later.packing.or(self.packing),
            on_release: later.on_release.or(self.on_release),
            on_stop: later.on_stop.or(self.on_stop),
            hook_start_budget_ms: later.hook_start_budget_ms.or(self.hook_start_budget_ms),
            restore_deadline_sec: later.restore_deadline_sec.or(self.restore_deadline_sec),
            live_deadline_sec: later.live_deadline_sec.or(self.live_deadline_sec),
            types: self.types,
        }
    }
}
