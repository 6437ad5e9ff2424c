//! Entries of a saga, and what the host does by itself.

use serde_json::json;

use super::fixture::*;
use crate::model::{ClaimEvent, ClaimState, Fault, OpKind, OwnDevice, SagaState, StepEvent};
use crate::store::{Begin, Books, Change, Entry, Missing, Store, StoreError};

fn begun() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.begin(spawn(1)).unwrap();
    (dir, store)
}

fn moved(event: ClaimEvent) -> Change {
    Change::Claim { claim: claim(1, 1).id, event }
}

fn done(name: &str) -> Entry {
    Entry::new().line(0, name, StepEvent::Done, Some(json!({ "uuid": 1 })))
}

fn refused(store: &Store, entry: Entry) -> StoreError {
    let snapshot = |store: &Store| {
        (store.books(), store.saga(job_id(1)).unwrap(), store.events(job_id(1)).unwrap(), store.commits())
    };
    let before = snapshot(store);
    let err = store.advance(job_id(1), entry).unwrap_err();
    assert_eq!(snapshot(store), before, "{err}");
    assert_eq!(*store.books(), store.read(Books::read).unwrap());
    err
}

#[test]
fn one_commit_holds_it_together() {
    let (dir, store) = begun();
    let entry = done("create_device").changes([moved(ClaimEvent::Created)]).line(
        1,
        "define",
        StepEvent::Started,
        None,
    );
    store.advance(job_id(1), entry).unwrap();
    let end = Entry::new()
        .line(1, "define", StepEvent::Done, None)
        .changes([moved(ClaimEvent::Started)])
        .turn(SagaState::Done, Some(json!("xml")));
    store.advance(job_id(1), end).unwrap();
    assert_eq!(store.commits(), 3, "two steps, three commits");
    drop(store);
    let store = open(dir.path());
    let row = store.saga(job_id(1)).unwrap().unwrap();
    assert_eq!((row.state, row.result), (SagaState::Done, Some(json!("xml"))));
    assert_eq!(store.books().claims().next().unwrap().state, ClaimState::InUse);
    let lines: Vec<_> = store.events(job_id(1)).unwrap();
    let lines: Vec<_> = lines.iter().map(|l| format!("{} {} {}", l.seq, l.name, l.event)).collect();
    assert_eq!(
        lines,
        ["1 create_device started", "2 create_device done", "3 define started", "4 define done"]
    );
}

#[test]
fn an_illegal_move_aborts_all_of_it() {
    let (_dir, store) = begun();
    let good = || done("create_device").changes([moved(ClaimEvent::Created)]);
    let err = refused(&store, good().changes([moved(ClaimEvent::Started), moved(ClaimEvent::Uncreated)]));
    assert!(matches!(err, StoreError::IllegalMove { .. }), "{err}");
    assert!(Fault::from(err).message.contains("a claim that is in-use cannot become uncreated"));
    let err = refused(&store, good().changes([Change::ClaimGone(claim(1, 1).id)]));
    assert!(matches!(err, StoreError::ClaimStands { state: ClaimState::Ready, .. }), "{err}");
    let device = device(1);
    let forget = Change::DeviceForgotten { uuid: device.uuid, parent: device.parent };
    let err = refused(&store, good().changes([forget]));
    assert!(matches!(err, StoreError::DeviceTaken { .. }), "{err}");
    let err = refused(&store, good().changes([Change::InstanceGone(instance_uuid(1))]));
    assert!(matches!(err, StoreError::Constraint(_)), "{err}");
    let err = refused(&store, good().changes([Change::ClaimGone(claim(1, 2).id)]));
    assert!(matches!(err, StoreError::NotFound(Missing::Claim(_))), "{err}");
}

#[test]
fn an_illegal_line_aborts_all_of_it() {
    let (_dir, store) = begun();
    for (entry, text) in [
        (Entry::new().line(1, "define", StepEvent::Done, None), "event done after Never"),
        (done("create_device").line(0, "create_device", StepEvent::Failed, None), "event failed after Done"),
        (done("make_device"), "called \"create_device\" and then \"make_device\""),
    ] {
        let entry = entry.changes([moved(ClaimEvent::Created)]);
        let err = refused(&store, entry);
        assert!(matches!(err, StoreError::IllegalEvent { .. }), "{err}");
        let message = Fault::from(err).message;
        assert!(message.contains(text), "{message}");
    }
}

#[test]
fn what_has_ended_takes_nothing() {
    let (_dir, store) = begun();
    store.advance(job_id(1), done("create_device").turn(SagaState::Done, None)).unwrap();
    for entry in [Entry::new(), Entry::new().turn(SagaState::Stuck, None), done("create_device")] {
        let err = refused(&store, entry);
        assert!(matches!(err, StoreError::IllegalTurn { .. }), "{err}");
    }
    let err = store.advance(job_id(9), Entry::new()).unwrap_err();
    assert!(matches!(err, StoreError::NotFound(Missing::Job(_))), "{err}");
}

#[test]
fn a_claim_and_its_device_leave_in_order() {
    let (_dir, store) = begun();
    let device = device(1);
    let entry = Entry::new()
        .changes([
            moved(ClaimEvent::Release),
            Change::ClaimGone(claim(1, 1).id),
            Change::DeviceForgotten { uuid: device.uuid, parent: device.parent.clone() },
            // Once more is no error: there is nothing to do.
            Change::DeviceForgotten { uuid: device.uuid, parent: device.parent },
            Change::InstanceGone(instance_uuid(1)),
        ])
        .turn(SagaState::Failed, None);
    store.advance(job_id(1), entry).unwrap();
    assert_eq!(*store.books(), Books::default());
    assert_eq!(store.read(Books::read).unwrap(), Books::default());
}

#[test]
fn the_host_does_things_by_itself() {
    let (_dir, store) = begun();
    let stopped = || vec![moved(ClaimEvent::Stopped)];
    let err = store.observe(stopped()).unwrap_err();
    assert!(matches!(err, StoreError::Busy { .. }), "a saga is at work: {err}");
    let entry = done("create_device").changes([moved(ClaimEvent::Created)]).turn(SagaState::Done, None);
    store.advance(job_id(1), entry).unwrap();
    store.observe(stopped()).unwrap();
    assert_eq!(store.books().claims().next().unwrap().state, ClaimState::Parked);
    let err = store.observe(vec![moved(ClaimEvent::Uncreated)]).unwrap_err();
    assert!(matches!(err, StoreError::IllegalMove { .. }), "{err}");
    // A device that is renumbered by a driver update stays ours.
    let renumbered = OwnDevice { type_id: "nvidia-900".parse().unwrap(), ..device(1) };
    store.observe(vec![Change::DeviceRecorded(renumbered.clone())]).unwrap();
    assert_eq!(store.books().own_devices().collect::<Vec<_>>(), [&renumbered]);
    assert_eq!(*store.books(), store.read(Books::read).unwrap());
}

#[test]
fn a_stuck_saga_is_settled_by_a_later_one() {
    let (_dir, store) = begun();
    store.advance(job_id(1), Entry::new().turn(SagaState::Stuck, Some(json!(1)))).unwrap();
    for (job, end, stuck) in [
        (2, SagaState::Failed, vec![job_id(1)]),
        (3, SagaState::Stuck, vec![job_id(1), job_id(3)]),
        (4, SagaState::Done, vec![]),
    ] {
        store.begin(Begin::new(saga(OpKind::Start, 1, job), "start")).unwrap();
        store.advance(job_id(job), Entry::new().turn(end, None)).unwrap();
        let listed: Vec<_> = store.stuck_sagas().unwrap().into_iter().map(|row| row.id).collect();
        assert_eq!(listed, stuck, "after {job}");
    }
    assert_eq!(store.open_sagas().unwrap(), []);
    let recent: Vec<_> = store.recent_sagas(2).unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(recent, [job_id(4), job_id(3)]);
}

#[test]
fn facts_are_remembered() {
    let (dir, store) = begun();
    assert_eq!(store.fact("boot_id").unwrap(), None);
    store.set_fact("boot_id", "a").unwrap();
    store.set_fact("boot_id", "b").unwrap();
    drop(store);
    assert_eq!(open(dir.path()).fact("boot_id").unwrap().as_deref(), Some("b"));
}
