//! Where hosts disagree, and which of them is said to differ.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::catalog::Lock;
use crate::model::DeviceApi;

fn named(name: &str, mib: u32) -> TypeIdentity {
    TypeIdentity {
        vendor_id: Some(0x10de),
        device_id: None,
        name: Some(name.to_owned()),
        type_id: None,
        device_api: DeviceApi::VfioPci,
        framebuffer_mib: Some(mib),
        heads: Some(4),
        max_resolution: None,
    }
}

/// A host with traits given as `NAME=TYPE`; `NAME` alone has no identity and is unavailable.
fn host(name: &str, traits: &[&str]) -> Export {
    let read = |text: &&str| {
        let (name, exported) = match text.split_once('=') {
            Some((name, type_name)) => {
                (name, Exported { state: TraitState::Ok, identity: Some(named(type_name, 4096)) })
            }
            None => (*text, Exported { state: TraitState::Unavailable, identity: None }),
        };
        (format!("CUSTOM_{name}").parse().unwrap(), exported)
    };
    Export { host: name.to_owned(), lock: None, traits: traits.iter().map(read).collect() }
}

/// `KIND HOST HAS EXPECTED`, of each difference.
fn said(exports: &[Export]) -> Vec<String> {
    let verdict = verify(exports);
    assert_eq!(verdict.agree, verdict.differences.is_empty());
    let line = |one: &Difference| {
        let shown = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
        format!("{:?} {} {} {}", one.kind, one.host, shown(&one.type_name), shown(&one.expected))
    };
    verdict.differences.iter().map(line).collect()
}

#[test]
fn hosts_that_say_the_same_agree() {
    for exports in
        [vec![], vec![host("a", &["X=x"])], vec![host("a", &["X=x", "Y"]), host("b", &["X=x", "Y"])]]
    {
        assert_eq!(said(&exports), [""; 0]);
    }
}

#[test]
fn most_hosts_are_right_and_of_a_tie_the_first() {
    let (x, y) = (host("a", &["X=x"]), host("b", &["X=y"]));
    assert_eq!(said(&[x.clone(), y.clone()]), ["Identity b y x"]);
    assert_eq!(said(&[y.clone(), x.clone()]), ["Identity a x y"]);
    let third = Export { host: "c".into(), ..y.clone() };
    assert_eq!(said(&[x, y, third]), ["Identity a x y"]);
}

#[test]
fn equal_names_are_not_equal_types() {
    let mut other = host("b", &["X=x"]);
    other.traits.values_mut().for_each(|exported| exported.identity = Some(named("x", 2048)));
    let verdict = verify(&[host("a", &["X=x"]), other]);
    let shown = serde_json::to_value(&verdict).unwrap();
    let difference = &shown["differences"][0];
    assert_eq!((&shown["agree"], &shown["hosts"], &shown["traits"]), (&json!(false), &json!(2), &json!(1)));
    assert_eq!((&difference["trait"], &difference["host"]), (&json!("CUSTOM_X"), &json!("b")));
    assert_eq!((&difference["type_name"], &difference["expected"]), (&json!("x"), &json!("x")));
    assert_eq!(difference["identity"]["framebuffer_mib"], 2048);
    assert_eq!(difference["expected_identity"]["vendor_id"], "0x10de");
}

#[test]
fn a_trait_is_missing_or_too_many_by_what_most_have() {
    let (with, without) = (host("a", &["X=x"]), host("b", &[]));
    assert_eq!(said(&[with.clone(), without.clone()]), ["Missing b - x"]);
    let third = Export { host: "c".into(), ..without.clone() };
    assert_eq!(said(&[without, with, third]), ["Extra a x -"]);
}

#[test]
fn a_host_without_the_card_is_said_to_differ_and_not_the_others() {
    let card = host("a", &["X=x"]);
    assert_eq!(said(&[host("b", &["X"]), host("c", &["X"]), card.clone()]), ["State b - x", "State c - x"]);
    let mut drifted = card.clone();
    drifted.traits.values_mut().for_each(|exported| exported.state = TraitState::Drift);
    let difference = &verify(&[card.clone(), drifted.clone()]).differences[0];
    assert_eq!(
        (difference.state, difference.expected_state),
        (Some(TraitState::Drift), Some(TraitState::Ok))
    );
    assert_eq!(said(&[drifted.clone(), drifted.clone()]), [""; 0]);
    drifted.traits.values_mut().for_each(|exported| exported.identity = None);
    let known = Export { traits: host("a", &["X=x"]).traits, ..card };
    let mut known = known;
    known.traits.values_mut().for_each(|exported| exported.state = TraitState::Drift);
    assert_eq!(said(&[known, drifted]), ["Identity a - x"]);
}

#[test]
fn locks_are_compared_by_revision_and_digest() {
    let empty = Lock::of(None, &BTreeMap::new());
    let mark = |revision| Some(LockMark { revision, digest: empty.digest() });
    let with = |name: &str, lock| Export { lock, ..host(name, &[]) };
    let exports = [with("a", mark(2)), with("b", mark(3)), with("c", mark(3)), with("d", None)];
    assert_eq!(said(&exports), ["Lock a - -", "Lock d - -"]);
    let shown = serde_json::to_value(&verify(&exports).differences[0]).unwrap();
    assert_eq!((&shown["trait"], &shown["lock"]["revision"]), (&json!(null), &json!(2)));
    assert_eq!(shown["expected_lock"]["revision"], 3);
}

proptest! {
    /// Whatever hosts say: they agree if and only if all say the same; and who differs does not depend on order
    /// unless there is a tie.
    #[test]
    fn agreement_is_equality(picks in prop::collection::vec((0..3usize, 0..3usize), 1..8)) {
        let choice = |n: usize, letter: &str| match n { 0 => vec![], 1 => vec![letter.to_owned()], _ => vec![format!("{letter}=t")] };
        let exports: Vec<Export> = picks.iter().map(|(x, y)| {
            let traits = [choice(*x, "X"), choice(*y, "Y")].concat();
            host("h", &traits.iter().map(String::as_str).collect::<Vec<_>>())
        }).collect();
        let same = exports.windows(2).all(|pair| pair[0] == pair[1]);
        prop_assert_eq!(verify(&exports).agree, same);
        let mut turned = exports.clone();
        turned.reverse();
        prop_assert_eq!(verify(&turned).differences.len(), verify(&exports).differences.len());
    }
}
