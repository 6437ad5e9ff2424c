//! Requests that meet share a commit and nothing else; the copy of the books stays in step.

use std::sync::{Arc, mpsc};
use std::thread;

use proptest::prelude::*;

use super::fixture::*;
use crate::model::{ClaimEvent, Fault, FaultKind, SagaState};
use crate::store::tables::Turn;
use crate::store::{Begin, Books, Change, Entry, Store, StoreError};

type Call = Box<dyn FnOnce(&Store) -> Result<(), StoreError> + Send>;

fn begins(all: impl IntoIterator<Item = Begin>) -> Vec<Call> {
    all.into_iter().map(|begin| -> Call { Box::new(move |store| store.begin(begin)) }).collect()
}

/// Keeps the writer at work until all of these wait, so that they go in one transaction.
fn all_at_once(store: &Arc<Store>, calls: Vec<Call>) -> Vec<Result<(), StoreError>> {
    let count = calls.len();
    let (at_work, is_at_work) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let plug = move |_: &mut Turn<'_>| -> Result<(), StoreError> {
        at_work.send(()).unwrap();
        may_go.recv().unwrap();
        Err(StoreError::Corrupt("the plug leaves nothing".into()))
    };
    let writer = Arc::clone(store);
    let plugged = thread::spawn(move || writer.writer.write(plug));
    is_at_work.recv().unwrap();
    let start = |call: Call| {
        let store = Arc::clone(store);
        thread::spawn(move || call(&store))
    };
    let threads: Vec<_> = calls.into_iter().map(start).collect();
    while store.writer.waiting() < count {
        thread::yield_now();
    }
    go.send(()).unwrap();
    plugged.join().unwrap().unwrap_err();
    // A thread that panicked is the one that led.
    threads.into_iter().map(|t| t.join().unwrap_or(Err(StoreError::Corrupt("panic".into())))).collect()
}

fn fresh() -> (tempfile::TempDir, Arc<Store>) {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(open(dir.path()));
    (dir, store)
}

#[test]
fn many_sagas_share_a_commit() {
    let (_dir, store) = fresh();
    let ends = all_at_once(&store, begins((1..=16).map(spawn)));
    assert!(ends.iter().all(Result::is_ok));
    assert_eq!(store.commits(), 1);
    assert_eq!(store.books().claims().len(), 16);
    assert_eq!(*store.books(), store.read(Books::read).unwrap());
}

#[test]
fn one_that_is_refused_does_not_hurt_the_others() {
    let (_dir, store) = fresh();
    let no = |_: &Books| Err(Fault::new(FaultKind::NoCapacity, "full"));
    // Number 5 stumbles after its instance and device are written.
    let all = (1..=8).map(|n| match n {
        3 => Begin { recheck: Some(Box::new(no)), ..spawn(3) },
        5 => Begin { changes: vec![Change::ClaimGone(claim(5, 5).id)], ..spawn(5) },
        n => spawn(n),
    });
    let ends = all_at_once(&store, begins(all));
    let failed: Vec<_> = (1..=8).filter(|n| ends[n - 1].is_err()).collect();
    assert_eq!(failed, [3, 5]);
    assert_eq!(store.books().instances().len(), 6);
    assert_eq!(store.books().own_devices().len(), 6);
    assert_eq!(*store.books(), store.read(Books::read).unwrap());
    assert_eq!(store.open_sagas().unwrap().len(), 6);
}

#[test]
fn only_one_gets_the_last_place() {
    let (_dir, store) = fresh();
    let all = (1..=8).map(|n| {
        let recheck = |books: &Books| {
            if books.claims().len() < 3 { Ok(()) } else { Err(Fault::new(FaultKind::NoCapacity, "full")) }
        };
        Begin { recheck: Some(Box::new(recheck)), ..spawn(n) }
    });
    let ends = all_at_once(&store, begins(all));
    assert_eq!(ends.iter().filter(|end| end.is_ok()).count(), 3);
    assert_eq!(store.books().claims().len(), 3);
}

#[test]
fn a_panic_is_nobody_elses_success() {
    let (_dir, store) = fresh();
    let all = (1..=6).map(|n| match n {
        4 => Begin { recheck: Some(Box::new(|_| panic!("a fault of ours"))), ..spawn(4) },
        n => spawn(n),
    });
    let ends = all_at_once(&store, begins(all));
    assert!(ends.iter().all(Result::is_err), "{ends:?}");
    assert_eq!(store.read(Books::read).unwrap(), Books::default());
    // And the store goes on.
    store.begin(spawn(9)).unwrap();
    assert_eq!(*store.books(), store.read(Books::read).unwrap());
}

/// SQLite ends the whole transaction by itself when the disk is full at a bad moment.
#[test]
fn a_transaction_that_is_lost_is_lost_for_all() {
    let (_dir, store) = fresh();
    let lose = |turn: &mut Turn<'_>| -> Result<(), StoreError> { Ok(turn.conn.execute_batch("ROLLBACK")?) };
    let mut calls = begins((1..=4).map(spawn));
    calls.insert(2, Box::new(move |store| store.writer.write(lose)));
    let ends = all_at_once(&store, calls);
    assert!(ends.iter().all(|end| matches!(end, Err(StoreError::Unavailable(_)))), "{ends:?}");
    assert_eq!((store.commits(), store.books().instances().len()), (0, 0));
    store.begin(spawn(1)).unwrap();
}

fn change() -> impl Strategy<Value = Change> {
    let n = 1u32..4;
    prop_oneof![
        (n.clone(), prop::sample::select(ClaimEvent::ALL))
            .prop_map(|(n, event)| Change::Claim { claim: claim(n, n).id, event }),
        n.clone().prop_map(|n| Change::ClaimGone(claim(n, n).id)),
        n.clone().prop_map(|n| Change::DeviceRecorded(device(n))),
        n.clone().prop_map(|n| Change::DeviceForgotten { uuid: device(n).uuid, parent: device(n).parent }),
        n.prop_map(|n| Change::InstanceGone(instance_uuid(n))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Whatever is tried, allowed or not, the copy in memory is what is on disk.
    #[test]
    fn the_copy_is_the_tables(tries in prop::collection::vec(prop::collection::vec(change(), 1..4), 1..12)) {
        let (_dir, store) = fresh();
        for n in 1..4 {
            store.begin(spawn(n)).unwrap();
            store.advance(job_id(n), Entry::new().turn(SagaState::Done, None)).unwrap();
        }
        for changes in tries {
            let _ = store.observe(changes);
            prop_assert_eq!(&*store.books(), &store.read(Books::read).unwrap());
        }
    }
}

#[test]
fn who_sees_a_commit_in_the_journal_finds_it_in_the_books() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(open(dir.path()));
    for n in 1..=300 {
        let writing = thread::spawn({
            let store = Arc::clone(&store);
            move || store.begin(spawn(n)).unwrap()
        });
        while store.saga(job_id(n)).unwrap().is_none() {
            std::hint::spin_loop();
        }
        assert!(store.books().instance(instance_uuid(n)).is_some(), "{n}");
        writing.join().unwrap();
    }
}
