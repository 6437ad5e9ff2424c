//! Whom a drifted trait concerns, and what follows from types by itself.

use super::*;
use crate::catalog::TraitState;
use crate::catalog::resolve::{Resolution, Resolved};
use crate::config::Automatic;
use crate::model::Request;
use crate::model::{FaultKind, TypeIdentity};
use crate::plan::capacity::{Booked, ParentCapacity, capacity};
use crate::plan::pick::{Refusal, Wishes, pick};
use crate::plan::traits::{add_traits, explained};

const CARD: &str = "0000:3b:00.0";

fn card() -> HostScan {
    let types = vec![mdev_type("nvidia-1", 8, 2048, 8), mdev_type("nvidia-2", 4, 4096, 4)];
    HostScan { parents: vec![parent(CARD, None, types)], ..HostScan::default() }
}

/// Gold is bound to, or was and has become, the type with this id.
fn gold(scan: &HostScan, state: TraitState, id: &str) -> Resolution {
    let parent = &scan.parents[0];
    let found = parent.mdev_type(&id.parse().unwrap()).unwrap();
    let identity = TypeIdentity::of(parent, found);
    let mut resolved = Resolved {
        state,
        identity: Some(identity.clone()),
        local: BTreeMap::new(),
        instead: BTreeMap::new(),
        reason: "it drifted".to_owned(),
    };
    match state {
        TraitState::Drift => drop(resolved.instead.insert(parent.addr.clone(), identity)),
        TraitState::Ok | TraitState::Unavailable | TraitState::Ambiguous => {
            drop(resolved.local.insert(parent.addr.clone(), found.id.clone()));
        }
    }
    [("CUSTOM_GOLD".parse().unwrap(), resolved)].into()
}

/// The card serves nvidia-1 and offers nvidia-2 beside it.
fn with<T>(state: TraitState, id: &str, look: impl FnOnce(&ParentCapacity<'_>) -> T) -> T {
    let (scan, config) = (card(), config(vec![rule("nvidia-1")]));
    let mapping = mapping(&config, &scan);
    let mut parents = capacity(&mapping, &scan, Booked::default());
    add_traits(&mut parents, &gold(&scan, state, id), &BTreeSet::new());
    look(&parents[0])
}

#[test]
fn a_trait_is_on_the_parents_that_serve_its_type() {
    let gold = |cap: &ParentCapacity<'_>| cap.traits.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(with(TraitState::Ok, "nvidia-1", gold), ["CUSTOM_GOLD"]);
    assert_eq!(with(TraitState::Ok, "nvidia-2", gold), [""; 0]);
}

#[test]
fn drift_takes_out_what_serves_the_type_and_nothing_beside_it() {
    let state =
        |cap: &ParentCapacity<'_>| (cap.reserved, cap.free, cap.quarantine.as_ref().map(|(kind, _)| *kind));
    assert_eq!(with(TraitState::Drift, "nvidia-1", state), (8, 0, Some(FaultKind::TraitDrift)));
    assert_eq!(with(TraitState::Drift, "nvidia-2", state), (0, 8, None));
}

#[test]
fn what_follows_from_a_type_is_the_operators_choice() {
    let (mut scan, config) = (card(), config(vec![rule("nvidia-1")]));
    scan.parents[0].types[0].name = Some("GRID T4-2Q".into());
    scan.parents[0].types[0].facts.heads = Some(4);
    let mapping = mapping(&config, &scan);
    let traits = |automatic: &[Automatic]| {
        let mut parents = capacity(&mapping, &scan, Booked::default());
        add_traits(&mut parents, &Resolution::new(), &automatic.iter().copied().collect());
        parents[0].traits.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(traits(&[]), [""; 0]);
    assert_eq!(
        traits(&[Automatic::Series, Automatic::TypeName]),
        ["CUSTOM_GRID_T4_2Q", "CUSTOM_VGPU_SERIES_Q"]
    );
    assert!(traits(&[Automatic::Capabilities]).contains(&"HW_GPU_MAX_DISPLAY_HEADS_4".to_owned()));
}

/// The card serves nvidia-1; gold is something else.
#[test]
fn who_asks_for_a_trait_that_nothing_has_is_told_what_is_known_of_it() {
    let refused = |state, id| -> Refusal {
        let (scan, config) = (card(), config(vec![rule("nvidia-1")]));
        let mapping = mapping(&config, &scan);
        let mut parents = capacity(&mapping, &scan, Booked::default());
        let resolution = gold(&scan, state, id);
        add_traits(&mut parents, &resolution, &BTreeSet::new());
        let request = Request::parse("resources:VGPU=1,trait:CUSTOM_GOLD=required").unwrap();
        explained(
            pick(&request, &parents, &BTreeMap::new(), &Wishes::default()).unwrap_err(),
            &request,
            &resolution,
        )
    };
    for (state, kind, words) in [
        (TraitState::Ok, FaultKind::TraitUnmapped, "NVIDIA nvidia-2"),
        (TraitState::Drift, FaultKind::TraitDrift, "it drifted"),
        (TraitState::Ambiguous, FaultKind::TraitUnmapped, "it drifted"),
    ] {
        let refusal = refused(state, "nvidia-2");
        assert_eq!(refusal.kind, kind, "{state}");
        assert!(refusal.message.contains(words), "{}", refusal.message);
        assert_eq!(refusal.reasons.len(), 1);
    }
}
