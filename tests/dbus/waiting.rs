//! The client's wait for a job: no race, no polling, and a clear word when the daemon goes away.

use mdevirt::dbus::path;
use mdevirt::model::{FaultKind, SagaState};
use serde_json::json;

use crate::bus::{Fake, Pace, PrivateBus};
use crate::{client, manager, spawn_options};

#[tokio::test]
async fn a_job_that_has_ended_already_is_not_waited_for() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve(&service).await;
    let client = client(&bus).await;
    let mut watch = client.watch().await.unwrap();
    for _ in 0..20 {
        let id = client.start("web-01", None).await.unwrap();
        let job = client.finished(id, &mut watch, |_| {}).await.unwrap();
        assert_eq!(job.state, SagaState::Done);
    }
}

#[tokio::test]
async fn steps_are_seen_on_the_way() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let client = client(&bus).await;
    let mut watch = client.watch().await.unwrap();
    let id = client.start("web-01", None).await.unwrap();
    let mut steps = Vec::new();
    let job = client
        .finished(id, &mut watch, |job| {
            if steps.last() == Some(&job.step) {
                return;
            }
            steps.push(job.step.clone());
            match steps.len() {
                1 => service.step(id, "define domain"),
                2 => service.end(id, SagaState::Failed, json!({"kind": "Internal", "message": "m"})),
                n => panic!("{n} steps"),
            }
        })
        .await
        .unwrap();
    assert_eq!(steps, ["create device", "define domain"]);
    assert_eq!(job.state, SagaState::Failed);
}

#[tokio::test]
async fn a_daemon_that_goes_away_is_told_with_the_job() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let server = bus.serve(&service).await;
    let client = client(&bus).await;
    let mut watch = client.watch().await.unwrap();
    let id = client.start("web-01", None).await.unwrap();
    let mut server = Some(server);
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let mut stop = Some(stop);
    let stopping = async {
        stopped.await.unwrap();
        server.take().unwrap().stop().await.unwrap();
    };
    let waiting = client.finished(id, &mut watch, |_| {
        if let Some(stop) = stop.take() {
            stop.send(()).unwrap();
        }
    });
    let (outcome, ()) = tokio::join!(waiting, stopping);
    let fault = outcome.unwrap_err();
    assert_eq!(fault.kind, FaultKind::HostUnreachable);
    assert!(fault.message.contains(&format!("mdevirtctl job show {id}")), "{fault}");
    assert_eq!(fault.details, json!({ "job": id }));
}

#[tokio::test]
async fn a_bus_that_goes_away_is_told_too() {
    let (mut bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let server = bus.serve(&service).await;
    let client = client(&bus).await;
    let mut watch = client.watch().await.unwrap();
    let id = client.start("web-01", None).await.unwrap();
    bus.stop();
    let fault = client.finished(id, &mut watch, |_| {}).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::HostUnreachable);
    server.closed().await;
}

#[tokio::test]
async fn without_a_daemon_or_a_bus_it_is_said_so() {
    let mut bus = PrivateBus::start();
    let fault = client(&bus).await.status().await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::HostUnreachable);
    assert!(fault.message.contains("is mdevirtd running"), "{fault}");
    bus.stop();
    let fault = mdevirt::dbus::Client::connect(&bus.bus(), crate::LONG).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::HostUnreachable);
    let odd = mdevirt::dbus::Bus::Address("no address".to_owned());
    assert!(mdevirt::dbus::Client::connect(&odd, crate::LONG).await.is_err());
}

#[tokio::test]
async fn a_crowd_of_signals_does_not_hold_up_answers() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve(&service).await;
    let client = client(&bus).await;
    let mut watch = client.watch().await.unwrap();
    // Far more signals than any queue holds, none of them read.
    let manager = manager(&bus).await;
    for _ in 0..150 {
        manager.spawn(spawn_options()).await.unwrap();
    }
    let id = client.start("web-01", None).await.unwrap();
    let job = client.finished(id, &mut watch, |_| {}).await.unwrap();
    assert_eq!(job.id, path::job_of(&path::of_job(id)).unwrap());
}
