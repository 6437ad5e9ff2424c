//! Who is told to be different, and from what.

use std::collections::BTreeMap;

use super::*;
use crate::catalog::{Lock, TraitState};
use crate::model::DeviceApi;

fn identity(name: &str, mib: u32) -> TypeIdentity {
    TypeIdentity {
        vendor_id: Some(0x10de),
        device_id: None,
        name: Some(name.to_owned()),
        type_id: None,
        device_api: DeviceApi::VfioPci,
        framebuffer_mib: Some(mib),
        heads: None,
        max_resolution: None,
    }
}

type Meant<'a> = (&'a str, TraitState, Option<TypeIdentity>);

fn host(name: &str, locked: bool, traits: &[Meant<'_>]) -> Export {
    let all: BTreeMap<TraitName, _> = traits
        .iter()
        .map(|(name, state, identity)| (name.parse().unwrap(), (*state, identity.clone())))
        .collect();
    let known = all.iter().filter_map(|(n, (_, i))| Some((n.clone(), i.clone()?))).collect();
    let lock = locked.then(|| Lock::of(None, &known));
    Export::of(name, lock.as_ref(), &all)
}

fn ok(name: &str, mib: u32) -> Meant<'static> {
    ("CUSTOM_A", TraitState::Ok, Some(identity(name, mib)))
}

fn lines(exports: &[Export]) -> Vec<String> {
    let verdict = verify(exports);
    assert_eq!((verdict.agree, verdict.hosts), (verdict.differences.is_empty(), exports.len()));
    let line = |d: Difference| format!("{} {}: {}, not {}", d.name, d.host, d.type_name, d.expected);
    verdict.differences.into_iter().map(line).collect()
}

#[test]
fn hosts_that_mean_the_same_agree() {
    assert_eq!(lines(&[]), [""; 0]);
    let all = ["a", "b", "c"].map(|name| host(name, true, &[ok("T4-2Q", 2048)]));
    assert_eq!(lines(&all), [""; 0]);
}

#[test]
fn the_few_are_told_apart_from_the_many() {
    let all = [
        host("a", false, &[ok("T4-4Q", 4096)]),
        host("b", false, &[ok("T4-2Q", 2048)]),
        host("c", false, &[ok("T4-2Q", 2048)]),
        host("d", false, &[]),
        host("e", false, &[("CUSTOM_A", TraitState::Ambiguous, None)]),
        host("f", false, &[("CUSTOM_A", TraitState::Drift, Some(identity("T4-2Q", 2048)))]),
    ];
    assert_eq!(
        lines(&all),
        [
            "CUSTOM_A a: T4-4Q, not T4-2Q",
            "CUSTOM_A d: not in its traits.toml, not T4-2Q",
            "CUSTOM_A e: ambiguous, not T4-2Q",
            "CUSTOM_A f: T4-2Q, drift, not T4-2Q",
        ]
    );
}

#[test]
fn one_name_with_two_sizes_is_a_difference_with_both_in_full() {
    let all = [host("a", false, &[ok("T4-2Q", 2048)]), host("b", false, &[ok("T4-2Q", 1024)])];
    let found = verify(&all).differences;
    assert_eq!(
        (found.len(), found[0].host.as_str()),
        (1, "b"),
        "the first host's counts where nothing is more common"
    );
    assert_eq!(found[0].identity, Some(identity("T4-2Q", 1024)));
    assert_eq!(found[0].expected_identity, Some(identity("T4-2Q", 2048)));
}

#[test]
fn locks_are_compared_by_what_they_pin() {
    let all = [
        host("a", true, &[ok("T4-2Q", 2048)]),
        host("b", true, &[ok("T4-2Q", 2048)]),
        host("c", false, &[ok("T4-2Q", 2048)]),
    ];
    let found = lines(&all);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("traits.lock c: no lock, not "), "{found:?}");
}
