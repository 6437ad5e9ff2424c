//! What may begin, and that what may not changes nothing.

use std::sync::Arc;

use super::fixture::*;
use crate::model::{ClaimEvent, ClaimState, Fault, FaultKind, InstanceUuid, OpKind, SagaState, StepEvent};
use crate::store::{Begin, Books, Change, Entry, Missing, Store, StoreError};

fn fresh() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    (dir, store)
}

/// The error, and proof that it changed nothing.
fn refused(store: &Store, begin: Begin) -> StoreError {
    let before = (store.books(), store.recent_sagas(99).unwrap(), store.commits());
    let err = store.begin(begin).unwrap_err();
    assert_eq!((store.books(), store.recent_sagas(99).unwrap(), store.commits()), before, "{err}");
    assert_eq!(*store.books(), store.read(Books::read).unwrap());
    err
}

#[test]
fn all_of_it_is_there() {
    let (dir, store) = fresh();
    store.begin(Begin { changes: vec![], ..spawn(1) }).unwrap();
    drop(store);
    let store = open(dir.path());
    let books = store.books();
    assert_eq!(books.instances().collect::<Vec<_>>(), [&instance(1)]);
    assert_eq!(books.claims().collect::<Vec<_>>(), [&claim(1, 1)]);
    assert_eq!(books.own_devices().collect::<Vec<_>>(), [&device(1)]);
    assert_eq!(store.saga(job_id(1)).unwrap(), Some(saga(OpKind::Spawn, 1, 1)));
    assert_eq!(store.open_sagas().unwrap().len(), 1);
    let events = store.events(job_id(1)).unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].step, events[0].event), (0, StepEvent::Started));
    assert_eq!((events[0].seq, events[0].name.as_str()), (1, "create_device"));
}

#[test]
fn books_can_be_searched() {
    let (_dir, store) = fresh();
    store.begin(spawn(1)).unwrap();
    store
        .begin(Begin {
            instance: Some(crate::model::Instance { name: "vm-1".into(), ..instance(2) }),
            ..spawn(2)
        })
        .unwrap();
    let books = store.books();
    assert_eq!(books.instance(instance_uuid(2)).unwrap().name, "vm-1");
    assert_eq!(books.instance(instance_uuid(3)), None);
    assert_eq!(books.instances_named("vm-1").count(), 2, "a name may be ambiguous");
    assert_eq!(books.claims_of(instance_uuid(2)).collect::<Vec<_>>(), [&claim(2, 2)]);
    assert_eq!(books.holder(device(1).uuid, &device(1).parent), Some(&claim(1, 1)));
    assert_eq!(books.holder(device(1).uuid, &device(2).parent), None);
    assert_eq!(books.own_device(device(2).uuid, &device(2).parent), Some(&device(2)));
    assert_eq!(books.claim(claim(1, 1).id), Some(&claim(1, 1)));
}

#[test]
fn one_live_saga_per_instance() {
    let (_dir, store) = fresh();
    store.begin(spawn(1)).unwrap();
    let second = || Begin::new(saga(OpKind::Destroy, 1, 2), "stop");
    let StoreError::Busy { instance, job } = refused(&store, second()) else { panic!("not busy") };
    assert_eq!((instance, job), (instance_uuid(1), job_id(1)));
    let fault: Fault = refused(&store, second()).into();
    assert_eq!((fault.kind, &fault.details["job"]), (FaultKind::InstanceBusy, &serde_json::json!(job_id(1))));
    // Unwinding is live, stuck is not.
    store.advance(job_id(1), Entry::new().turn(SagaState::Unwinding, None)).unwrap();
    assert!(matches!(refused(&store, second()), StoreError::Busy { .. }));
    store.advance(job_id(1), Entry::new().turn(SagaState::Stuck, Some("?".into()))).unwrap();
    store.begin(second()).unwrap();
}

#[test]
fn one_saga_per_operation_id() {
    let (_dir, store) = fresh();
    let begin = |n: u32, of: u32| {
        let mut begin = spawn(n);
        begin.saga.operation_id = Some("op-1".into());
        begin.saga.request_digest = format!("digest-{of}");
        begin
    };
    store.begin(begin(1, 1)).unwrap();
    assert_eq!(store.saga_by_operation("op-1").unwrap().unwrap().id, job_id(1));
    assert_eq!(store.saga_by_operation("op-2").unwrap(), None);
    for (of, same) in [(1, true), (2, false)] {
        let err = refused(&store, begin(2, of));
        let StoreError::OperationRepeated { job, same_request } = err else { panic!("{err}") };
        assert_eq!((job, same_request), (job_id(1), same));
    }
    // Another operation with the same digest is another request.
    let mut other = begin(2, 1);
    other.saga.op = OpKind::Claim;
    assert!(matches!(refused(&store, other), StoreError::OperationRepeated { same_request: false, .. }));
}

#[test]
fn an_instance_is_made_once() {
    let (_dir, store) = fresh();
    store.begin(spawn(1)).unwrap();
    let again = |digest: &str| {
        let mut begin = Begin { devices: vec![device(2)], claims: vec![claim(1, 2)], ..spawn(1) };
        begin.saga.id = job_id(2);
        begin.saga.request_digest = digest.into();
        begin.instance.as_mut().unwrap().request_digest = digest.into();
        begin
    };
    for (digest, same, old) in [("digest-1", true, Some(job_id(1))), ("digest-x", false, None)] {
        let err = refused(&store, again(digest));
        let StoreError::InstanceExists { same_request, job, .. } = err else { panic!("{err}") };
        assert_eq!((same_request, job), (same, old));
    }
    let stranger = refused(&store, Begin::new(saga(OpKind::Stop, 7, 7), "stop"));
    assert!(matches!(stranger, StoreError::NotFound(Missing::Instance(InstanceUuid(_)))), "{stranger}");
}

#[test]
fn the_last_look_decides() {
    let (_dir, store) = fresh();
    store.begin(spawn(1)).unwrap();
    let full = |books: &Books| {
        assert_eq!(books.claims().count(), 1, "the books do not hold what is to begin");
        Err(Fault::new(FaultKind::NoCapacity, "the card is full"))
    };
    let err = refused(&store, Begin { recheck: Some(Box::new(full)), ..spawn(2) });
    assert_eq!(Fault::from(err), Fault::new(FaultKind::NoCapacity, "the card is full"));
    store.begin(Begin { recheck: Some(Box::new(|_| Ok(()))), ..spawn(2) }).unwrap();
}

#[test]
fn a_device_has_one_claim() {
    let (_dir, store) = fresh();
    store.begin(spawn(1)).unwrap();
    let mut taken = spawn(2);
    taken.claims = vec![claim(2, 1)];
    taken.claims[0].id = claim(2, 2).id;
    let err = refused(&store, taken);
    assert!(
        matches!(err, StoreError::DeviceTaken { claim: holder, .. } if holder == claim(1, 1).id),
        "{err}"
    );
    // A device that is not ours cannot be claimed.
    let err = refused(&store, Begin { devices: vec![], ..spawn(2) });
    assert!(matches!(err, StoreError::Constraint(_)), "{err}");
}

#[test]
fn what_begins_is_in_form() {
    let (_dir, store) = fresh();
    let mut ended = spawn(1);
    ended.saga.state = SagaState::Done;
    let mut others = spawn(1);
    others.claims[0].instance = instance_uuid(2);
    let mut ready = spawn(1);
    ready.claims[0].state = ClaimState::Ready;
    let elsewhere = Begin { instance: Some(instance(2)), ..spawn(1) };
    for begin in [ended, others, ready, elsewhere] {
        let err = refused(&store, begin);
        assert!(matches!(err, StoreError::IllegalBegin { .. }), "{err}");
        assert_eq!(Fault::from(err).kind, FaultKind::Internal);
    }
}

#[test]
fn changes_begin_with_it() {
    let (_dir, store) = fresh();
    store.begin(spawn(1)).unwrap();
    store.advance(job_id(1), Entry::new().turn(SagaState::Done, None)).unwrap();
    let release = Change::Claim { claim: claim(1, 1).id, event: ClaimEvent::Release };
    let begin = Begin {
        changes: vec![release, Change::ClaimGone(claim(1, 9).id)],
        ..Begin::new(saga(OpKind::Destroy, 1, 2), "stop")
    };
    assert!(matches!(refused(&store, begin), StoreError::NotFound(Missing::Claim(_))));
    assert!(store.books().claims().all(|c| c.state == ClaimState::Reserved));
}

#[test]
fn old_ended_sagas_are_forgotten() {
    let (_dir, store) = fresh();
    for n in 1..=3 {
        store.begin(spawn(n)).unwrap();
    }
    store.advance(job_id(1), Entry::new().turn(SagaState::Failed, None)).unwrap();
    store.advance(job_id(2), Entry::new().turn(SagaState::Stuck, None)).unwrap();
    sql(&store, "UPDATE saga SET nr = nr - 5000 WHERE nr < 3");
    store.begin(spawn(4)).unwrap();
    let left: Vec<_> = store.recent_sagas(9).unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(left, [job_id(4), job_id(3), job_id(2)], "open and stuck ones stay");
    assert_eq!(store.events(job_id(1)).unwrap(), []);
    assert_eq!(Arc::new(store).recent_sagas(1).unwrap().len(), 1);
}
