//! Requests that meet each other, or an instance that is not where they expect it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has to stop")]

#[path = "world/mod.rs"]
mod world;

use std::collections::BTreeSet;
use std::time::Duration;

use mdevirt::host::Hypervisor;
use mdevirt::model::{FaultKind, SagaState};
use mdevirt::saga::Action;
use mdevirt::service::api::{Accepted, UseCases};
use world::gate::Gate;
use world::picture::Picture;
use world::{World, spawn_request};

const ONE: &str = "resources:VGPU=1";
const TWO: &str = "resources1:VGPU=1,resources2:VGPU=1";

async fn odds(world: &World) -> Vec<String> {
    Picture::of(&world.service().store, &*world.sim, &*world.sim).await.odds(&BTreeSet::new())
}

/// On the paused clock: until every task waits for something.
async fn idle() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

/// Lets the first request through once it has looked at the host and the others have come as far as they can.
async fn all_wait(gate: &Gate) {
    gate.scan.holds().await;
    // One thread: a task that is ready runs before this one comes to its turn again.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    gate.scan.open();
}

#[tokio::test]
async fn one_request_sent_many_times_at_once_is_one_job() {
    let (world, gate) = World::gated("two-m60", "two-m60.toml").await;
    gate.scan.set();
    let asks: Vec<_> = (0..16)
        .map(|_| {
            let service = world.service().clone();
            tokio::spawn(async move { service.spawn(spawn_request("web-01", ONE)).await })
        })
        .collect();
    all_wait(&gate).await;
    let mut accepted: Vec<Accepted> = Vec::new();
    for ask in asks {
        accepted.push(ask.await.unwrap().unwrap());
    }
    let jobs: BTreeSet<_> = accepted.iter().map(|a| a.job).collect();
    assert_eq!((jobs.len(), accepted.iter().filter(|a| a.fresh).count()), (1, 1));
    assert_eq!(world.ended(accepted[0].job).await.state, SagaState::Done);
    assert_eq!(world.service().instances().await.unwrap().len(), 1);
    assert_eq!(odds(&world).await, [""; 0]);
}

#[tokio::test]
async fn one_name_is_booked_once() {
    let (world, gate) = World::gated("two-m60", "two-m60.toml").await;
    gate.scan.set();
    let flavors = [ONE, "resources:VGPU=1,trait:CUSTOM_GOLD=required", "resources5:VGPU=1", TWO];
    let asks = flavors.map(|flavor| {
        let service = world.service().clone();
        tokio::spawn(async move { service.spawn(spawn_request("web-01", flavor)).await })
    });
    all_wait(&gate).await;
    let mut kinds = Vec::new();
    for ask in asks {
        kinds.push(ask.await.unwrap().map_err(|fault| fault.kind).map(|accepted| accepted.fresh));
    }
    kinds.sort_by_key(Result::is_err);
    assert_eq!(kinds[0], Ok(true));
    assert!(kinds[1..].iter().all(|kind| *kind == Err(FaultKind::InstanceExists)), "{kinds:?}");
}

#[tokio::test]
async fn a_device_that_goes_while_the_host_is_looked_at_is_not_taken_for_idle() {
    let (world, gate) = World::gated("two-m60", "two-m60.toml").await;
    world.spawn("old", ONE).await;
    gate.scan.set();
    let service = world.service().clone();
    let new = tokio::spawn(async move { service.spawn(spawn_request("new", ONE)).await });
    gate.scan.holds().await;
    world.done(world.service().destroy("old", None).await).await;
    gate.scan.open();
    world.done(new.await.unwrap()).await;
    assert_eq!(odds(&world).await, [""; 0]);
    world.done(world.service().destroy("new", None).await).await;
    assert_eq!(world.scan().await.mdevs, []);
}

#[tokio::test]
async fn starting_what_runs_and_stopping_what_is_off_is_no_error() {
    let world = World::new("two-m60").await;
    world.spawn("vm", TWO).await;
    world.done(world.service().start("vm", None).await).await;
    assert_eq!(odds(&world).await, [""; 0]);
    for _ in 0..2 {
        world.done(world.service().stop("vm", None).await).await;
        assert_eq!(odds(&world).await, [""; 0]);
    }
}

#[tokio::test]
async fn what_is_half_given_back_can_only_be_given_back() {
    let world = World::new("two-m60").await;
    world.spawn("vm", TWO).await;
    world.points.arm("destroy.remove_device.1.before_effect", Action::Error, Some(1));
    let destroy = world.service().destroy("vm", None).await.unwrap();
    assert_eq!(world.ended(destroy.job).await.state, SagaState::Stuck);
    let before = world.scan().await;
    for fault in [
        world.service().start("vm", None).await.unwrap_err(),
        world.service().stop("vm", None).await.unwrap_err(),
    ] {
        assert_eq!(fault.kind, FaultKind::OperationStuck, "{fault}");
        assert!(fault.message.contains("destroy"), "{fault}");
    }
    assert_eq!(world.scan().await, before);
    world.done(world.service().destroy("vm", None).await).await;
    assert_eq!(odds(&world).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_a_domain_was_once_is_not_booked_later() {
    let (world, gate) = World::gated("two-m60", "two-m60.toml").await;
    // The guest shuts down before its start is booked, and the look that follows is slow.
    let point = "spawn.start_domain.before_commit";
    world.points.arm(point, Action::Pause, Some(1));
    let spawn = world.service().spawn(spawn_request("vm", ONE)).await;
    world.points.reached(point).await;
    let vm = world.service().instances().await.unwrap()[0].uuid;
    world.sim.stop(vm).await.unwrap();
    idle().await;
    gate.domain.set();
    world.points.release(point);
    gate.domain.holds().await;
    world.done(spawn).await;
    world.done(world.service().start("vm", None).await).await;
    gate.domain.open();
    idle().await;
    assert_eq!(world.running(vm).await, Some(true));
    assert_eq!(odds(&world).await, [""; 0]);
}
