//! What Placement traits follow from what a type is and where it is: the table is `capabilities.toml`.
//!
//! A trait is a promise that a scheduler relies on (`trait:X=required`), never a description for people. So:
//! 1. **Display**: a type has the traits of all it can drive, not only of its maximum: with 7680x4320 it serves who
//!    requires `HW_GPU_RESOLUTION_W1920H1080`, with four heads who requires `HW_GPU_MAX_DISPLAY_HEADS_2`. The maximum alone
//!    is lost in no case: forbid the next greater trait. 5120x2880 has no standard trait, and would say nothing otherwise.
//! 2. **CUDA**: a type has its one compute capability. Programs are not compatible over major versions, and os-traits
//!    means the traits so (`compute_capabilities_supported()` gives the set to ask for: `trait:..=in:A,B`).
//! 3. A type has CUDA only where its series has: NVIDIA switches it off in A and B types, and on Maxwell in all but 8Q.
//! 4. What the standard set lacks is `CUSTOM_` with the same words: `CUSTOM_HW_GPU_CUDA_COMPUTE_CAPABILITY_V7_5`.
//! 5. Traits follow from description, vendor name and PCI ids, never from the type's id.

mod table;

use std::collections::BTreeSet;

pub use table::{Architecture, Card, Form};

use super::type_name::VgpuName;
use crate::model::{MdevType, Parent, TraitName, TypeFacts};

/// The traits of a type on this parent; empty when nothing is known of it.
///
/// # Source
/// os-traits `hw/gpu`; OpenStack nova specs queens `add-support-for-vgpu` and ussuri `vgpu-multiple-types` for what
/// operators ask of them; each fact's document in `capabilities.toml`.
pub fn standard_traits(parent: &Parent, mdev_type: &MdevType) -> BTreeSet<TraitName> {
    let mut traits = display_traits(&mdev_type.facts);
    traits.extend(compute_traits(parent, mdev_type));
    traits
}

/// Every trait that a row of the table can give, for those who check names.
pub fn known_traits() -> BTreeSet<&'static TraitName> {
    table::table().all_traits().collect()
}

/// The board that this parent is or is a function of, if the table has it.
pub fn card(parent: &Parent) -> Option<&'static Card> {
    table::table().cards.get(&(parent.vendor_id?, parent.device_id?))
}

fn display_traits(facts: &TypeFacts) -> BTreeSet<TraitName> {
    let table = table::table();
    let heads = table.heads.iter().filter(|(count, _)| facts.heads.is_some_and(|heads| *count <= heads));
    let mut traits: BTreeSet<TraitName> = heads.map(|(_, name)| name.clone()).collect();
    if let Some((width, height)) = resolution(facts) {
        let fitting = table.resolutions.iter().filter(|((w, h), _)| *w <= width && *h <= height);
        traits.extend(fitting.map(|(_, name)| name.clone()));
    }
    traits
}

/// Width and height of the greatest display. i915 has it in a line of its own.
///
/// # Source
/// Linux `drivers/gpu/drm/i915/gvt/kvmgt.c`, `description_show`: `resolution: 1920x1200`, that of the one virtual monitor.
fn resolution(facts: &TypeFacts) -> Option<(u32, u32)> {
    let line = || facts.description.iter().find_map(|line| line.strip_prefix("resolution:"));
    table::size(facts.max_resolution.as_deref().or_else(line)?.trim())
}

fn compute_traits(parent: &Parent, mdev_type: &MdevType) -> BTreeSet<TraitName> {
    let table = table::table();
    let name = mdev_type.name.as_deref().and_then(VgpuName::parse);
    let (Some(card), Some(name)) = (card(parent), name) else { return BTreeSet::new() };
    let cuda = table.cuda_series.contains(&name.series)
        && card.cuda_only.as_ref().is_none_or(|only| only.iter().any(|size| size == name.size));
    let mut traits = BTreeSet::new();
    if cuda {
        traits.insert(card.cuda.clone());
    }
    let apis = table.apis.iter().filter(|api| api.series.contains(&name.series) && (cuda || !api.needs_cuda));
    traits.extend(apis.flat_map(|api| &api.traits).cloned());
    traits
}

#[cfg(test)]
mod tests;
