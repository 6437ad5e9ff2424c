//! The daemon's process dies: at every fail point, and by SIGKILL at moments that a seed decides. The next one brings
//! what was begun to an end: whole, or gone; the simulated hardware, its domains and the books agree.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    unreachable_pub,
    reason = "a test program has no outside and fails by panicking"
)]

#[path = "bus/mod.rs"]
mod bus;
#[path = "kill/daemon.rs"]
mod daemon;
#[path = "world/mod.rs"]
mod world;

use std::collections::BTreeSet;

use bus::PrivateBus;
use daemon::{ABORTED, KILLED, Site};
use mdevirt::dbus::Client;
use mdevirt::model::{Fault, JobId, OpKind, SagaState};
use mdevirt::service::api::{ClaimRequest, UseCases};
use world::{World, spawn_request};

const TWO: &str = "resources1:VGPU=1,resources2:VGPU=1";

/// Undone only if their effect comes about by itself behind a failure, for which there is nobody outside the daemon:
/// `saga_matrix` visits these.
const BY_ITSELF: [&str; 6] = [
    "spawn.start_domain.before_undo",
    "spawn.start_domain.after_undo",
    "destroy.stop_domain.before_undo",
    "destroy.stop_domain.after_undo",
    "release.remove_device.0.before_undo",
    "release.remove_device.0.after_undo",
];

fn claim() -> ClaimRequest {
    ClaimRequest {
        instance: "1fc01460-67d7-4303-a5ea-69a57b994f50".parse().unwrap(),
        name: "vm".into(),
        flavor: TWO.into(),
        operation_id: None,
    }
}

/// Every fail point of the operation, as its script names them.
async fn points_of(op: OpKind) -> Vec<String> {
    let world = World::new("two-m60").await;
    let service = world.service();
    let first = match op {
        OpKind::Spawn | OpKind::Destroy => service.spawn(spawn_request("vm", TWO)).await,
        OpKind::Claim | OpKind::Release => service.claim(claim()).await,
        other => panic!("{other} has no rows here"),
    };
    let first = world.done(first).await.id;
    let job = match op {
        OpKind::Destroy => service.destroy("vm", None).await.unwrap().job,
        OpKind::Release => service.release("vm", None).await.unwrap().job,
        _ => first,
    };
    world.script_of(job).points()
}

/// Begins the operation, and what has to be there before it.
async fn begin(site: &mut Site, op: OpKind) -> Result<JobId, Fault> {
    let client = site.client.clone();
    let there = match op {
        OpKind::Spawn => return client.spawn(&spawn_request("vm", TWO)).await,
        OpKind::Claim => return client.claim(&claim()).await,
        OpKind::Destroy => client.spawn(&spawn_request("vm", TWO)).await.unwrap(),
        OpKind::Release => client.claim(&claim()).await.unwrap(),
        other => panic!("{other} has no rows here"),
    };
    assert_eq!(site.finished(there).await, Some(SagaState::Done));
    if op == OpKind::Release { client.release("vm", None).await } else { client.destroy("vm", None).await }
}

/// Dies with these fail points, is started again, and leaves so many instances.
async fn dies(bus: &PrivateBus, op: OpKind, points: &str, instances: usize) {
    let mut site = Site::new(bus).await;
    assert!(site.start(points, 0).await, "{points}");
    // The answer may be lost with the daemon.
    drop(begin(&mut site, op).await);
    let (signal, log) = site.ended().await;
    assert_eq!(signal, ABORTED, "{points}\n{log}");
    site.converged().await.assert_whole(points, instances);
}

/// At every point; the way back is taken from the failure of the last step that can be undone.
async fn dies_everywhere(op: OpKind) {
    let bus = PrivateBus::start();
    let points = points_of(op).await;
    let made_by_spawn = op == OpKind::Spawn;
    let made = made_by_spawn || op == OpKind::Claim;
    let mut left: BTreeSet<&str> = BY_ITSELF.into_iter().filter(|p| p.starts_with(op.as_str())).collect();
    for point in &points {
        if left.remove(point.as_str()) {
            continue;
        }
        if !point.ends_with("_undo") {
            dies(&bus, op, &format!("{point}=abort"), usize::from(made)).await;
            continue;
        }
        let failing = if made_by_spawn {
            "spawn.start_domain.before_effect"
        } else {
            "claim.make_device.1.after_effect"
        };
        dies(&bus, op, &format!("{failing}=error; {point}=abort"), 0).await;
    }
    assert_eq!(left, BTreeSet::new(), "not a point any more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spawn_dies_at_every_point() {
    dies_everywhere(OpKind::Spawn).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn destroy_dies_at_every_point() {
    dies_everywhere(OpKind::Destroy).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claim_dies_at_every_point() {
    dies_everywhere(OpKind::Claim).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn release_dies_at_every_point() {
    dies_everywhere(OpKind::Release).await;
}

/// A small generator of the same numbers for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(sides)).unwrap()
    }
}

/// Eight callers at once; those who were answered know their job.
async fn eight(client: &Client, op: OpKind) -> Vec<JobId> {
    let asks: Vec<_> = (0..8)
        .map(|n| {
            let (client, name) = (client.clone(), format!("vm-{n}"));
            tokio::spawn(async move {
                if op == OpKind::Destroy {
                    return client.destroy(&name, None).await;
                }
                client.spawn(&spawn_request(&name, "resources:VGPU=1")).await
            })
        })
        .collect();
    let mut jobs = Vec::new();
    for ask in asks {
        jobs.extend(ask.await.unwrap());
    }
    jobs
}

/// Waits until each has ended, or the daemon has.
async fn all_end(site: &mut Site, jobs: &[JobId]) {
    for job in jobs {
        site.finished(*job).await;
    }
}

/// Killed once or several times, after so many lines of log each.
async fn killed(bus: &PrivateBus, op: OpKind, seed: u64, kills: u32) {
    let mut dice = Dice(seed);
    let mut site = Site::new(bus).await;
    assert!(site.start("", 0).await);
    if op == OpKind::Destroy {
        let jobs = eight(&site.client, OpKind::Spawn).await;
        all_end(&mut site, &jobs).await;
        assert_eq!(jobs.len(), 8);
    }
    site.kill_after(1 + dice.roll(16));
    let jobs = eight(&site.client, op).await;
    all_end(&mut site, &jobs).await;
    let (signal, log) = site.kill().await;
    assert_eq!(signal, KILLED, "{log}");
    for _ in 1..kills {
        // In the start, in the recovery, or once all has come to its end.
        if site.start("", 1 + dice.roll(12)).await {
            all_end(&mut site, &jobs).await;
        }
        assert_eq!(site.kill().await.0, KILLED);
    }
    let end = site.converged().await;
    let (there, what) = (end.picture.books.instances().len(), format!("{op} seed {seed}"));
    let accepted = if op == OpKind::Spawn { there } else { 8 - there };
    // Those whose answer was lost may be under the accepted ones.
    assert!(accepted >= jobs.len(), "{what}: {} were accepted, {there} are there", jobs.len());
    end.assert_whole(&what, there);
    for job in jobs {
        assert_eq!(end.store.saga(job).unwrap().unwrap().state, SagaState::Done, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_in_the_middle_of_eight_spawns() {
    let bus = PrivateBus::start();
    for seed in 1..=10 {
        killed(&bus, OpKind::Spawn, seed, 1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_in_the_middle_of_eight_destroys() {
    let bus = PrivateBus::start();
    for seed in 21..=26 {
        killed(&bus, OpKind::Destroy, seed, 1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_again_in_the_recovery() {
    let bus = PrivateBus::start();
    for seed in 11..=16 {
        killed(&bus, OpKind::Spawn, seed, 3).await;
        killed(&bus, OpKind::Destroy, seed, 3).await;
    }
}
