//! What one parent has, and what may be said of it later: more traits, a quarantine.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::series::several_per_vm;
use crate::model::{Claim, DeviceApi, FaultKind, InventoryRecord, MdevUuid, TraitName};
use crate::plan::mapping::Assigned;

/// What one parent has.
#[derive(Debug, Clone)]
pub struct ParentCapacity<'a> {
    /// Parent, type and table.
    pub assigned: Assigned<'a>,
    /// NUMA node, that of its physical function if it has none itself; `None` when unknown.
    pub numa_node: Option<u32>,
    /// Its traits: those of the table at first, the caller may add others.
    pub traits: BTreeSet<TraitName>,
    /// Existing + available.
    pub total: u32,
    /// Operator's reserve + foreign, at most `total`.
    pub reserved: u32,
    /// Greatest number for one VM.
    pub max_unit: u32,
    /// Slices of this type that our instances hold, made or not.
    pub used: u32,
    /// Slices of others.
    pub foreign: u32,
    /// Our devices that no claim holds.
    pub idle: Vec<MdevUuid>,
    /// What a new claim can get now.
    pub free: u32,
    /// Why `free` is 0; empty otherwise.
    pub reason: String,
    /// Why a VM may have only one slice of this parent's card; `None` if it may have several.
    pub one_per_vm_reason: Option<String>,
    /// Set by [`ParentCapacity::quarantine`]: how a request fails that only this parent could serve, and why.
    pub quarantine: Option<(FaultKind, String)>,
}

impl ParentCapacity<'_> {
    /// Whether a VM may have only one slice of this parent's card.
    pub fn one_per_vm(&self) -> bool {
        self.one_per_vm_reason.is_some()
    }

    /// Takes the parent out of use for new claims: what exists stays counted, everything is reserved, nothing is free.
    pub fn quarantine(&mut self, kind: FaultKind, why: impl Into<String>) {
        let why = why.into();
        (self.reserved, self.free) = (self.total, 0);
        self.reason.clone_from(&why);
        self.quarantine = Some((kind, why));
    }

    /// Leaves devices that nobody holds out of what is free.
    pub fn without_idle(&mut self) {
        let idle = u32::try_from(self.idle.len()).unwrap_or(u32::MAX);
        self.idle.clear();
        self.free = self.free.saturating_sub(idle);
        if self.free == 0 && self.reason.is_empty() {
            "only an idle device is left, which has a UUID already".clone_into(&mut self.reason);
        }
    }

    /// The record as Placement would see it; `None` for a total of 0, which Placement refuses.
    pub fn record(&self, host: &str) -> Option<InventoryRecord> {
        let Assigned { parent, mdev_type, rule } = self.assigned;
        (self.total > 0).then(|| InventoryRecord {
            provider: format!("{host}_{}", parent.addr.node_name()),
            parent: parent.addr.clone(),
            resource_class: rule.class.clone(),
            mdev_type: mdev_type.id.clone(),
            type_name: mdev_type.label().to_owned(),
            total: self.total,
            reserved: self.reserved,
            max_unit: self.max_unit,
            used: self.used,
            foreign: self.foreign,
            traits: self.traits.clone(),
        })
    }
}

/// Records of parents that are away, or have no type at present, while claims wait for them: all of it is reserved.
pub fn awaited<'a>(
    claims: impl Iterator<Item = &'a Claim>,
    present: &[ParentCapacity<'_>],
    host: &str,
) -> Vec<InventoryRecord> {
    let shown = |c: &&Claim| !present.iter().any(|p| p.assigned.parent.addr == c.parent && p.total > 0);
    let mut records: BTreeMap<_, InventoryRecord> = BTreeMap::new();
    for claim in claims.filter(|c| c.is_gone()).filter(shown) {
        let key = (&claim.parent, &claim.resource_class, &claim.mdev_type);
        let record = records.entry(key).or_insert_with(|| InventoryRecord {
            provider: format!("{host}_{}", claim.parent.node_name()),
            parent: claim.parent.clone(),
            resource_class: claim.resource_class.clone(),
            mdev_type: claim.mdev_type.clone(),
            type_name: claim.type_name.clone(),
            total: 0,
            reserved: 0,
            max_unit: 1,
            used: 0,
            foreign: 0,
            traits: BTreeSet::new(),
        });
        record.total += 1;
        (record.reserved, record.used) = (record.total, record.total);
        record.traits.extend(claim.traits.iter().cloned());
    }
    records.into_values().collect()
}

/// The operator's word, else the vendor's, else the careful one; libvirt's own limit stands above all.
///
/// # Source
/// libvirt `qemu_validate.c`: one vfio-ap device per domain, whatever an operator wants.
pub(super) fn one_per_vm(assigned: Assigned<'_>) -> Option<String> {
    let Assigned { parent, mdev_type, rule } = assigned;
    if mdev_type.device_api == DeviceApi::VfioAp {
        return Some("libvirt takes one vfio-ap device per domain".to_owned());
    }
    let key = format!("[mdev.{:?}] several_per_vm", rule.key);
    if let Some(several) = rule.several_per_vm {
        return (!several).then(|| format!("{key} = false"));
    }
    let vendor = several_per_vm(parent, mdev_type);
    match vendor.allowed {
        Some(several) => (!several).then_some(vendor.reason),
        None => parent.one_size_per_card().then(|| format!("{}; {key} = true allows it", vendor.reason)),
    }
}
