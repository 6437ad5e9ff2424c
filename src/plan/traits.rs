//! Which traits each parent has, and which parents a drifted trait takes out of use.

use crate::catalog::resolve::{Resolution, Resolved};
use crate::model::{FaultKind, TraitName};

use super::capacity::ParentCapacity;

/// Adds what `traits.toml` says. A drifted trait stays on its parents, so that who asks for it is told why it is not given.
pub fn add_traits(parents: &mut [ParentCapacity<'_>], resolution: &Resolution) {
    for cap in parents {
        for (name, resolved) in resolution {
            if has(resolved, cap) {
                cap.traits.insert(name.clone());
                hold_back(name, resolved, cap);
            }
        }
    }
}

/// Whether the type that the parent serves is the one that the trait is, or was, bound to.
fn has(resolved: &Resolved, cap: &ParentCapacity<'_>) -> bool {
    let addr = &cap.assigned.parent.addr;
    let is = resolved.local.get(addr) == Some(&cap.assigned.mdev_type.id);
    is || resolved.quarantines(addr) && resolved.instead.contains_key(addr)
}

fn hold_back(name: &TraitName, resolved: &Resolved, cap: &mut ParentCapacity<'_>) {
    if resolved.quarantines(&cap.assigned.parent.addr) && cap.quarantine.is_none() {
        cap.quarantine(FaultKind::TraitDrift, format!("trait {name} drifted: {}", resolved.reason));
    }
}
