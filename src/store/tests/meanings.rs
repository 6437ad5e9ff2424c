//! What words meant is kept, and what became of it.

use super::fixture::*;
use crate::model::{Lesson, Meaning, NewShift, OwnDevice, ShiftKind, TypeIdentity, Word, WordKind};
use crate::store::Change;
use crate::store::meanings::KEPT_SHIFTS;

fn meaning(kind: WordKind, text: &str, n: u32) -> Meaning {
    Meaning {
        word: Word { kind, text: text.into() },
        parent: device(n).parent,
        identity: identity(),
        type_id: "nvidia-746".parse().unwrap(),
        seen: identity(),
    }
}

fn shift(of: &Meaning, now: &str) -> NewShift {
    let (was, now) = ("nvidia-746".into(), now.into());
    NewShift { of: of.clone(), kind: ShiftKind::Renumbered, was, now, reason: String::new() }
}

#[test]
fn meanings_are_replaced_by_word_and_parent() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let first = meaning(WordKind::Trait, "CUSTOM_A", 1);
    let others = [meaning(WordKind::Trait, "CUSTOM_A", 2), meaning(WordKind::Type, "CUSTOM_A", 1)];
    let meanings = [&others[0], &others[1], &first].map(Clone::clone).to_vec();
    store.learn(Lesson { meanings, ..Lesson::default() }).unwrap();
    let seen = TypeIdentity { heads: Some(2), ..identity() };
    let moved = Meaning { type_id: "nvidia-1".parse().unwrap(), seen, ..first };
    store.learn(Lesson { meanings: vec![moved.clone()], ..Lesson::default() }).unwrap();
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.meanings().unwrap(), [moved.clone(), others[0].clone(), others[1].clone()]);
    store.learn(Lesson { forgotten: vec![moved.word], ..Lesson::default() }).unwrap();
    assert_eq!(store.meanings().unwrap(), [others[1].clone()]);
}

#[test]
fn the_history_of_a_word_is_in_order_and_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let (word, other) = (meaning(WordKind::Trait, "CUSTOM_A", 1), meaning(WordKind::Trait, "CUSTOM_B", 1));
    store.learn(Lesson { shifts: vec![shift(&other, "other")], ..Lesson::default() }).unwrap();
    for n in 0..KEPT_SHIFTS + 3 {
        store.learn(Lesson { shifts: vec![shift(&word, &n.to_string())], ..Lesson::default() }).unwrap();
    }
    let lines = store.shifts(&word.word).unwrap();
    let now: Vec<String> = lines.iter().map(|line| line.now.clone()).collect();
    assert_eq!(now, (3..KEPT_SHIFTS + 3).map(|n| n.to_string()).collect::<Vec<_>>());
    assert!(lines.is_sorted_by_key(|line| line.at_usec));
    assert_eq!(store.shifts(&other.word).unwrap().len(), 1);
}

#[test]
fn a_lesson_is_written_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    write_protect(&store);
    let meanings = vec![meaning(WordKind::Trait, "CUSTOM_A", 1)];
    store.learn(Lesson { meanings, ..Lesson::default() }).unwrap_err();
    assert_eq!(store.meanings().unwrap(), []);
}

#[test]
fn a_device_under_another_id_takes_its_claim_along() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.begin(spawn(1)).unwrap();
    let moved = OwnDevice { type_id: "nvidia-1746".parse().unwrap(), ..device(1) };
    store.advance(job_id(1), crate::store::Entry::new().changes([Change::DeviceRecorded(moved)])).unwrap();
    drop(store);
    let books = open(dir.path()).books();
    let claim = books.claims().next().unwrap();
    assert_eq!((claim.mdev_type.as_str(), claim.identity.as_ref()), ("nvidia-1746", Some(&identity())));
    assert_eq!(books.own_device(device(1).uuid, &device(1).parent).unwrap().type_id.as_str(), "nvidia-1746");
}
