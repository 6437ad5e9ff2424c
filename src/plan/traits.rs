//! Which traits each parent has, and which parents a drifted trait takes out of use.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::TraitState;
use crate::catalog::capability::standard_traits;
use crate::catalog::resolve::{Resolution, Resolved};
use crate::catalog::type_name::{licence_trait, shared_name_traits};
use crate::config::Automatic;
use crate::model::{FaultKind, Request, TraitName};

use super::capacity::ParentCapacity;
use super::pick::Refusal;

/// Adds what `traits.toml` says, and what follows from the types themselves as far as the operator wants it. A drifted trait
/// stays on its parents, so that who asks for it is told why it is not given.
pub fn add_traits(
    parents: &mut [ParentCapacity<'_>],
    resolution: &Resolution,
    automatic: &BTreeSet<Automatic>,
) {
    add_automatic(parents, automatic);
    for cap in parents {
        for (name, resolved) in resolution {
            if has(resolved, cap) {
                cap.traits.insert(name.clone());
                hold_back(name, resolved, cap);
            }
        }
    }
}

/// Whether the type that the parent serves is the one that the trait is bound to, or what that has become. A parent that only
/// offers such a type beside the one it serves has no part in it.
fn has(resolved: &Resolved, cap: &ParentCapacity<'_>) -> bool {
    let (parent, mdev_type) = (cap.assigned.parent, cap.assigned.mdev_type);
    let is = resolved.local.get(&parent.addr) == Some(&mdev_type.id);
    let instead = || resolved.instead.get(&parent.addr).is_some_and(|found| found.fits(parent, mdev_type));
    is || resolved.state == TraitState::Drift && instead()
}

fn hold_back(name: &TraitName, resolved: &Resolved, cap: &mut ParentCapacity<'_>) {
    if resolved.state == TraitState::Drift && cap.quarantine.is_none() {
        cap.quarantine(FaultKind::TraitDrift, format!("trait {name} drifted: {}", resolved.reason));
    }
}

/// The VFs of a card offer one type: what follows from it is worked out once.
fn add_automatic(parents: &mut [ParentCapacity<'_>], automatic: &BTreeSet<Automatic>) {
    let names: Vec<&str> = parents.iter().filter_map(|cap| cap.assigned.mdev_type.name.as_deref()).collect();
    let shared: BTreeSet<TraitName> = shared_name_traits(names).into_keys().collect();
    let mut known: BTreeMap<_, BTreeSet<TraitName>> = BTreeMap::new();
    for cap in parents {
        let (parent, mdev_type) = (cap.assigned.parent, cap.assigned.mdev_type);
        let kind = (parent.vendor_id, parent.device_id, &mdev_type.id, &mdev_type.name);
        let traits = known.entry(kind).or_insert_with(|| of_type(cap, automatic, &shared));
        cap.traits.extend(traits.iter().cloned());
    }
}

fn of_type(
    cap: &ParentCapacity<'_>,
    automatic: &BTreeSet<Automatic>,
    shared: &BTreeSet<TraitName>,
) -> BTreeSet<TraitName> {
    let (parent, mdev_type) = (cap.assigned.parent, cap.assigned.mdev_type);
    let name = || mdev_type.name.as_deref();
    let mut traits = BTreeSet::new();
    for kind in automatic {
        match kind {
            Automatic::Capabilities => traits.extend(standard_traits(parent, mdev_type)),
            Automatic::Series => traits.extend(name().and_then(licence_trait)),
            // Of two names that read alike neither has it, for it would mean two types.
            Automatic::TypeName => {
                traits
                    .extend(name().and_then(TraitName::for_type_name).filter(|word| !shared.contains(word)));
            }
        }
    }
    traits
}

/// The refusal of a request for a trait that no parent has, with what is known of that trait.
pub fn explained(refusal: Refusal, request: &Request, resolution: &Resolution) -> Refusal {
    let names = request.groups.iter().flat_map(|g| g.required.iter().chain(g.any_of.iter().flatten()));
    let known = names.filter_map(|name| Some((name, resolution.get(name)?)));
    let of_kind = |kind: FaultKind, reason: String| Refusal { kind, message: reason, ..refusal.clone() };
    for (name, resolved) in known.filter(|_| refusal.kind == FaultKind::TraitUnmapped) {
        match (resolved.state, &resolved.identity) {
            (TraitState::Drift, _) => return of_kind(FaultKind::TraitDrift, resolved.reason.clone()),
            (TraitState::Ambiguous | TraitState::Unavailable, _) => {
                return of_kind(FaultKind::TraitUnmapped, resolved.reason.clone());
            }
            (TraitState::Ok, Some(identity)) if refusal.message.contains(name.as_str()) => {
                let text = format!(
                    "{}: it is {identity}, which is offered here, and no parent is configured to serve it",
                    refusal.message
                );
                return of_kind(FaultKind::TraitUnmapped, text);
            }
            (TraitState::Ok, _) => {}
        }
    }
    refusal
}
