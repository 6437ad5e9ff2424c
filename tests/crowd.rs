//! Many callers at once, who book, give back, stop and start in an order that a seed decides.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has to stop")]

#[path = "world/mod.rs"]
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mdevirt::host::Hypervisor;
use mdevirt::model::{
    ClaimState, Fault, FaultKind, HostScan, InventoryRecord, JobId, Parent, ParentAddr, SagaState,
};
use mdevirt::service::Service;
use mdevirt::service::api::{Accepted, Change, UseCases};
use mdevirt::xml::domain::DomainDoc;
use tokio::sync::broadcast::error::RecvError;
use uuid::Uuid;
use world::picture::Picture;
use world::{World, spawn_request};

const VGPU: &str = "resources:VGPU=1";

/// A small generator of the same numbers for the same seed (Knuth's MMIX constants).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// How much of each card there is for us.
fn room(scan: &HostScan, inventory: &[InventoryRecord]) -> BTreeMap<ParentAddr, u32> {
    let mut room = BTreeMap::new();
    for record in inventory {
        let card = scan.parent(&record.parent).map_or_else(|| record.parent.clone(), Parent::card);
        *room.entry(card).or_default() += record.total - record.reserved;
    }
    room
}

/// The host as one finds it, and what must hold at any moment.
struct Watcher {
    world: World,
    before: HostScan,
    others: BTreeSet<Uuid>,
    room: BTreeMap<ParentAddr, u32>,
}

impl Watcher {
    async fn at(scenario: &str) -> Arc<Self> {
        let world = World::new(scenario).await;
        let before = world.scan().await;
        let room = room(&before, &world.service().inventory().await.unwrap());
        let mut others: BTreeSet<Uuid> = before.mdevs.iter().map(|m| m.uuid.0).collect();
        others.extend(world.sim.domains().await.unwrap().iter().map(|d| d.uuid.0));
        Arc::new(Self { world, before, others, room })
    }

    fn total(&self) -> usize {
        self.room.values().map(|n| *n as usize).sum()
    }

    /// No device runs in two domains, no card has more claims or more devices than it has room.
    async fn look(&self) {
        let mut named = BTreeSet::new();
        for domain in self.world.sim.domains().await.unwrap().iter().filter(|d| d.running) {
            let doc = DomainDoc::parse(&domain.xml).unwrap();
            for uuid in doc.mdevs() {
                assert!(named.insert(uuid), "{uuid} runs in two domains");
            }
        }
        let card = |parent: &ParentAddr| self.before.parent(parent).unwrap().card();
        let (mut booked, mut made) = (BTreeMap::new(), BTreeMap::new());
        for claim in self.world.service().store.books().claims() {
            *booked.entry(card(&claim.parent)).or_insert(0) += 1;
        }
        let scan = self.world.scan().await;
        for mdev in scan.mdevs.iter().filter(|m| !self.others.contains(&m.uuid.0)) {
            *made.entry(card(&mdev.parent)).or_insert(0) += 1;
        }
        for (card, count) in booked.iter().chain(&made) {
            assert!(*count <= self.room[card], "{count} on {card}");
        }
    }

    /// Looks whenever something moved, for as long as it is not aborted.
    async fn keep_looking(self: Arc<Self>) {
        let mut changes = self.world.service().changes();
        loop {
            match changes.recv().await {
                Ok(Change::Claim(_) | Change::JobRemoved { .. }) | Err(RecvError::Lagged(_)) => {
                    self.look().await;
                }
                Ok(
                    Change::JobNew(_)
                    | Change::JobChanged(_)
                    | Change::Inventory
                    | Change::Drift { .. }
                    | Change::Status,
                ) => {}
                Err(RecvError::Closed) => return,
            }
        }
    }

    async fn odds(&self) -> Vec<String> {
        let world = &self.world;
        Picture::of(&world.service().store, &*world.sim, &*world.sim).await.odds(&self.others)
    }

    /// All give back at once; then the host is as it was found.
    async fn all_go(&self) {
        let instances = self.world.service().instances().await.unwrap();
        let asks: Vec<_> = instances
            .into_iter()
            .map(|instance| {
                let service = self.world.service().clone();
                tokio::spawn(async move { service.destroy(&instance.uuid.to_string(), None).await })
            })
            .collect();
        for ask in asks {
            self.world.done(ask.await.unwrap()).await;
        }
        self.world.assert_untouched(&self.before).await;
    }
}

/// One caller with a sequence of its own; the jobs it began.
async fn caller(service: Service, seed: u64) -> Vec<JobId> {
    let mut dice = Dice(seed);
    let mut jobs = Vec::new();
    for _ in 0..20 {
        let name = format!("vm-{}", dice.roll(10));
        let answer = match dice.roll(10) {
            0..5 => service.spawn(spawn_request(&name, VGPU)).await,
            5..8 => service.destroy(&name, None).await,
            8 => service.stop(&name, None).await,
            _ => service.start(&name, None).await,
        };
        match answer {
            Ok(Accepted { job, .. }) => jobs.push(job),
            Err(fault) => assert_expected(&fault),
        }
        if dice.roll(3) > 0 {
            tokio::task::yield_now().await;
        }
    }
    jobs
}

fn assert_expected(fault: &Fault) {
    let expected = [FaultKind::NoCapacity, FaultKind::InstanceBusy, FaultKind::NoSuchInstance];
    assert!(expected.contains(&fault.kind), "{fault}");
}

async fn crowd(scenario: &str, seed: u64) {
    let host = Watcher::at(scenario).await;
    let watcher = tokio::spawn(host.clone().keep_looking());
    let callers: Vec<_> =
        (0..8).map(|n| tokio::spawn(caller(host.world.service().clone(), seed * 1000 + n))).collect();
    let mut done = 0;
    for caller in callers {
        for job in caller.await.unwrap() {
            let job = host.world.ended(job).await;
            assert_eq!(job.state, SagaState::Done, "{scenario} {seed}: {} {:?}", job.op, job.result);
            done += 1;
        }
    }
    assert!(done > 20, "only {done} operations went through");
    host.world.quiet().await;
    assert!(!watcher.is_finished(), "{:?}", watcher.await);
    watcher.abort();
    assert_eq!(host.odds().await, [""; 0], "{scenario} {seed}");
    host.all_go().await;
}

/// 64 at once, then all that got something go while 64 others come.
async fn stampede(scenario: &str) {
    let host = Watcher::at(scenario).await;
    let watcher = tokio::spawn(host.clone().keep_looking());
    let come = |prefix: &'static str| {
        let service = host.world.service().clone();
        (0..64).map(move |n| {
            let service = service.clone();
            tokio::spawn(async move { service.spawn(spawn_request(&format!("{prefix}-{n}"), VGPU)).await })
        })
    };
    let mut accepted = Vec::new();
    for ask in come("first").collect::<Vec<_>>() {
        match ask.await.unwrap() {
            Ok(job) => accepted.push(job.job),
            Err(fault) => assert_eq!(fault.kind, FaultKind::NoCapacity, "{fault}"),
        }
    }
    let vgpus = host.room.iter().filter(|(card, _)| card.to_string() != "0000:00:02.0");
    assert_eq!(accepted.len(), vgpus.map(|(_, n)| *n as usize).sum::<usize>());
    for job in accepted {
        assert_eq!(host.world.ended(job).await.state, SagaState::Done);
    }
    let books = host.world.service().store.books();
    assert!(books.claims().all(|c| c.state == ClaimState::InUse));

    let others = come("second").collect::<Vec<_>>();
    let going: Vec<_> = books
        .instances()
        .map(|instance| {
            let (service, uuid) = (host.world.service().clone(), instance.uuid.to_string());
            tokio::spawn(async move { service.destroy(&uuid, None).await })
        })
        .collect();
    for destroy in going {
        host.world.done(destroy.await.unwrap()).await;
    }
    for ask in others {
        match ask.await.unwrap() {
            Ok(job) => assert_eq!(host.world.ended(job.job).await.state, SagaState::Done),
            Err(fault) => assert_eq!(fault.kind, FaultKind::NoCapacity, "{fault}"),
        }
    }
    assert!(!watcher.is_finished(), "{:?}", watcher.await);
    watcher.abort();
    assert!(host.world.service().instances().await.unwrap().len() <= host.total());
    assert_eq!(host.odds().await, [""; 0]);
    host.all_go().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stampede_on_16_virtual_functions() {
    stampede("a2-16vf").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stampede_on_unlike_cards() {
    stampede("mixed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crowd_on_16_virtual_functions() {
    for seed in 1..=3 {
        crowd("a2-16vf", seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crowd_on_unlike_cards() {
    for seed in 4..=6 {
        crowd("mixed", seed).await;
    }
}
