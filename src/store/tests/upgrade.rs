//! A database of every released schema, with an open saga in it, still opens.

use super::fixture::*;
use crate::model::{ClaimRole, ClaimState, DomainOwner, MoveKind, MovePhase, OpKind, SagaState, StepEvent};

/// The dump of a state directory, one per schema; a file is never edited once its schema is released.
const SCHEMA_1: &str = include_str!("../../../tests/upgrade/0001_open_saga.sql");

#[test]
fn schema_1() {
    let dir = tempfile::tempdir().unwrap();
    restore(dir.path(), SCHEMA_1);
    let store = open(dir.path());
    let open_sagas = store.open_sagas().unwrap();
    assert_eq!(open_sagas.len(), 1);
    let row = &open_sagas[0];
    assert_eq!((row.op, row.version, row.state), (OpKind::Spawn, 1, SagaState::Running));
    assert_eq!(row.operation_id.as_deref(), Some("op-1"));
    let lines: Vec<_> = store.events(row.id).unwrap().into_iter().map(|l| (l.name, l.event)).collect();
    let name = |n: u32| format!("create_device.{n}");
    assert_eq!(
        lines,
        [(name(0), StepEvent::Started), (name(0), StepEvent::Done), (name(1), StepEvent::Started)]
    );
    let books = store.books();
    let states: Vec<_> = books.claims().map(|c| c.state).collect();
    assert_eq!(states, [ClaimState::Ready, ClaimState::Reserved]);
    assert_eq!(books.claims().next().unwrap().traits.len(), 2);
    assert_eq!(store.fact("boot_id").unwrap().as_deref(), Some("5a3c"));
    // It is a database like any other from here on.
    store.begin(spawn(9)).unwrap();
}

const SCHEMA_2: &str = include_str!("../../../tests/upgrade/0002_meanings.sql");

#[test]
fn schema_2() {
    let dir = tempfile::tempdir().unwrap();
    restore(dir.path(), SCHEMA_2);
    let store = open(dir.path());
    assert_eq!(store.open_sagas().unwrap().len(), 1);
    let books = store.books();
    let kept: Vec<bool> =
        books.claims().map(|c| c.identity == Some(identity()) && c.card.is_some()).collect();
    assert_eq!(kept, [true, false]);
    let meanings = store.meanings().unwrap();
    assert_eq!((meanings.len(), &meanings[0].identity), (1, &identity()));
    assert_eq!(store.shifts(&meanings[0].word).unwrap().len(), 1);
    store.begin(spawn(9)).unwrap();
}

const SCHEMA_3: &str = include_str!("../../../tests/upgrade/0003_open_resize.sql");

#[test]
fn schema_3() {
    let dir = tempfile::tempdir().unwrap();
    restore(dir.path(), SCHEMA_3);
    let store = open(dir.path());
    let open_sagas = store.open_sagas().unwrap();
    assert_eq!(open_sagas.iter().map(|s| s.op).collect::<Vec<_>>(), [OpKind::ResizeFinish]);
    let books = store.books();
    let of = books.claims_of(open_sagas[0].instance).map(|c| (c.state, c.role));
    assert_eq!(
        of.collect::<Vec<_>>(),
        [(ClaimState::Parked, ClaimRole::Primary), (ClaimState::Ready, ClaimRole::Incoming)]
    );
    let moving = books.move_of(open_sagas[0].instance).unwrap();
    assert_eq!((moving.kind, moving.phase), (MoveKind::Resize, MovePhase::Prepared));
    assert!(books.instances().all(|i| i.flavor.is_some()));
    store.begin(spawn(9)).unwrap();
}

const SCHEMA_4: &str = include_str!("../../../tests/upgrade/0004_plain.sql");

#[test]
fn schema_4() {
    let dir = tempfile::tempdir().unwrap();
    restore(dir.path(), SCHEMA_4);
    let store = open(dir.path());
    let owners: Vec<_> = store.books().instances().map(|i| (i.name.clone(), i.owner)).collect();
    assert_eq!(
        owners,
        [("web-01".to_owned(), DomainOwner::Mdevirt), ("web-02".to_owned(), DomainOwner::Libvirt)]
    );
    assert_eq!(store.open_sagas().unwrap().len(), 1);
    store.begin(spawn(9)).unwrap();
}

const SCHEMA_5: &str = include_str!("../../../tests/upgrade/0005_live.sql");

#[test]
fn schema_5() {
    let dir = tempfile::tempdir().unwrap();
    restore(dir.path(), SCHEMA_5);
    let store = open(dir.path());
    let kinds: Vec<_> = store.books().moves().map(|m| m.kind).collect();
    assert_eq!(kinds, [MoveKind::Resize, MoveKind::LiveIn]);
    assert_eq!(store.open_sagas().unwrap().len(), 1);
    store.begin(spawn(9)).unwrap();
}
