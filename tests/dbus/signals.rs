//! Signals: their order, once each, and nothing lost when changes were missed.

use mdevirt::dbus::{BusEvent, path};
use mdevirt::model::{JobId, OpKind, SagaState};
use serde_json::json;

use crate::bus::{Fake, Pace, PrivateBus};
use crate::{client, manager, next, spawn_options};

const INSTANCE: &str = "11111111-2222-4333-8444-555555555555";

/// The signals about one job, up to its end.
async fn story(watch: &mut mdevirt::dbus::Watch, id: JobId) -> Vec<String> {
    let mut told = Vec::new();
    loop {
        let event = next(watch).await;
        if matches!(&event, BusEvent::InterfacesAdded { path, .. } if *path == path::of_job(id).as_str()) {
            told.push("added".to_owned());
        } else if event.concerns(id) {
            match event {
                BusEvent::JobNew { .. } => told.push("new".to_owned()),
                BusEvent::PropertiesChanged { changed, .. } => {
                    told.push(changed.keys().map(String::as_str).collect::<Vec<_>>().join(" "));
                }
                BusEvent::JobRemoved { result, .. } => {
                    told.push(result);
                    return told;
                }
                other @ (BusEvent::InventoryChanged
                | BusEvent::ClaimChanged { .. }
                | BusEvent::DriftDetected { .. }
                | BusEvent::InterfacesAdded { .. }
                | BusEvent::InterfacesRemoved { .. }
                | BusEvent::DaemonGone
                | BusEvent::DaemonThere) => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn a_job_is_told_in_order() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let mut watch = client(&bus).await.watch().await.unwrap();
    let path = manager(&bus).await.spawn(spawn_options()).await.unwrap();
    let id = path::job_of(&path).unwrap();
    let first = next(&mut watch).await;
    assert!(matches!(&first, BusEvent::InterfacesAdded { path, .. } if *path == path::of_job(id).as_str()));
    assert!(matches!(next(&mut watch).await, BusEvent::JobNew { .. }));
    for step in ["define domain", "start domain"] {
        service.step(id, step);
        let BusEvent::PropertiesChanged { changed, .. } = next(&mut watch).await else { panic!("{step}") };
        assert_eq!(changed["Step"], step);
        assert_eq!(changed.len(), 2, "and StepsDone: {changed:?}");
    }
    service.end(id, SagaState::Failed, json!({"kind": "HostRefused", "message": "no", "details": null}));
    assert_eq!(story(&mut watch, id).await, ["Result State StepsDone", "failed"]);
}

#[tokio::test]
async fn a_job_that_ends_at_once_has_a_begin_and_an_end() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve(&service).await;
    let mut watch = client(&bus).await.watch().await.unwrap();
    let manager = manager(&bus).await;
    for _ in 0..20 {
        let path = manager.spawn(spawn_options()).await.unwrap();
        let told = story(&mut watch, path::job_of(&path).unwrap()).await;
        assert_eq!((told[0].as_str(), told[1].as_str()), ("added", "new"), "{told:?}");
        assert_eq!(told.last().unwrap(), "done");
        assert_eq!(told.iter().filter(|word| *word == "new" || *word == "done").count(), 2, "{told:?}");
    }
}

#[tokio::test]
async fn a_repeated_request_begins_nothing() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve(&service).await;
    let mut watch = client(&bus).await.watch().await.unwrap();
    let manager = manager(&bus).await;
    let mut options = spawn_options();
    options.extend(crate::record(&json!({ "operation_id": "op" })));
    let id = path::job_of(&manager.spawn(options.clone()).await.unwrap()).unwrap();
    story(&mut watch, id).await;
    manager.spawn(options).await.unwrap();
    let second = path::job_of(&manager.spawn(spawn_options()).await.unwrap()).unwrap();
    loop {
        let event = next(&mut watch).await;
        assert!(!event.concerns(id), "{event:?}");
        if event.concerns(second) {
            break;
        }
    }
}

#[tokio::test]
async fn missed_changes_are_made_up_for() {
    // Room for four changes, and a hundred jobs told in one go: the mirror misses most of it.
    let (bus, service) = (PrivateBus::start(), Fake::with_room_for(Pace::Held, 4));
    let _server = bus.serve(&service).await;
    let mut watch = client(&bus).await.watch().await.unwrap();
    let open = service.begin(OpKind::Spawn, INSTANCE.parse().unwrap());
    until_new(&mut watch, open).await;
    let burst: Vec<JobId> =
        (0..100).map(|_| service.begin(OpKind::Start, INSTANCE.parse().unwrap())).collect();
    service.end(open, SagaState::Done, json!({}));
    for _ in 0..10 {
        service.say(mdevirt::service::api::Change::Status);
    }
    let mut wanting: std::collections::HashSet<String> = burst.iter().map(ToString::to_string).collect();
    let mut ended = false;
    while !(wanting.is_empty() && ended) {
        let event = next(&mut watch).await;
        if let BusEvent::JobNew { id, .. } = event {
            assert!(wanting.remove(&id), "{id} told twice");
        } else if let BusEvent::JobRemoved { id, .. } = event {
            assert_eq!(id, open.to_string());
            assert!(!ended);
            ended = true;
        }
    }
}

async fn until_new(watch: &mut mdevirt::dbus::Watch, job: JobId) {
    while !matches!(next(watch).await, BusEvent::JobNew { id, .. } if id == job.to_string()) {}
}

#[tokio::test]
async fn a_stranger_is_not_believed() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let mut watch = client(&bus).await.watch().await.unwrap();
    let stranger = bus.connect().await;
    let id = service.begin(OpKind::Spawn, INSTANCE.parse().unwrap());
    let lie = (id.to_string(), path::of_job(id), "done");
    // Straight to everybody: no match rule of a receiver keeps that away.
    let names = zbus::fdo::DBusProxy::new(&stranger).await.unwrap();
    for name in names.list_names().await.unwrap().iter().filter(|name| name.starts_with(':')) {
        let (path, interface) = ("/org/mdevirt1", "org.mdevirt1.Manager");
        stranger.emit_signal(Some(name), path, interface, "JobRemoved", &lie).await.unwrap();
    }
    // The bus has passed them on before it answers this.
    names.get_id().await.unwrap();
    service.end(id, SagaState::Failed, json!({}));
    assert_eq!(story(&mut watch, id).await.last().unwrap(), "failed");
}
