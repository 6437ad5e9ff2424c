//! `reconcile` on a whole host.

use mdevirt::host::sim::{Call, Change, FailKind, FailRule, ForeignMdev};
use mdevirt::host::{Hypervisor, NodeDevices};
use mdevirt::model::{Claim, ClaimState, FaultKind, MdevUuid, NewMdev, OwnDevice};
use mdevirt::service::api::UseCases;
use mdevirt::store;
use uuid::Uuid;

use crate::host::Machine;
use crate::world::World;
use crate::world::picture::Picture;

const ONE: &str = "resources:VGPU=1";
const ORPHAN: MdevUuid = MdevUuid(Uuid::from_u128(0xabc));
const STRANGER: MdevUuid = MdevUuid(Uuid::from_u128(0xdef));

/// Kind, UUID, action, done.
async fn reconcile(world: &World, dry_run: bool) -> Vec<String> {
    let found = world.service().reconcile(dry_run).await.unwrap();
    let shown = |id: Option<MdevUuid>| id.map_or_else(|| "-".to_owned(), |id| id.to_string());
    found.iter().map(|d| format!("{} {} {} {}", d.kind, shown(d.uuid), d.action, d.done)).collect()
}

async fn picture(world: &World) -> Picture {
    Picture::of(&world.service().store, &*world.sim, &*world.sim).await
}

/// A device that the books call ours and no claim holds, beside one of somebody else.
async fn disorder(world: &World) {
    let parent = "0000:84:00.0".parse().unwrap();
    let type_id: mdevirt::model::TypeId = "nvidia-18".parse().unwrap();
    let own = OwnDevice {
        uuid: ORPHAN,
        parent: "0000:84:00.0".parse().unwrap(),
        type_id: type_id.clone(),
        type_name: "GRID M60-2Q".into(),
    };
    world.service().store.observe(vec![store::Change::DeviceRecorded(own)]).unwrap();
    let device_api = mdevirt::model::DeviceApi::VfioPci;
    world.sim.create(&NewMdev { uuid: ORPHAN, parent, type_id: type_id.clone(), device_api }).await.unwrap();
    let parent = "0000:84:00.0".parse().unwrap();
    let foreign = ForeignMdev { uuid: STRANGER, parent, type_id };
    world.sim.change(Change::ForeignMdev(foreign)).await.unwrap();
}

#[test]
fn an_orphan_goes_a_foreign_device_stays_and_a_dry_run_changes_nothing() {
    let machine = Machine::with("two-m60", &[("web-01", ONE)]);
    machine.on(disorder);
    machine.settle();
    machine.on(async |world| {
        let before = picture(world).await;
        let plan = reconcile(world, true).await;
        assert_eq!(plan, [format!("orphan {ORPHAN} remove false"), format!("foreign {STRANGER} none false")]);
        assert_eq!(picture(world).await, before);
        let done = reconcile(world, false).await;
        assert_eq!(done, [format!("orphan {ORPHAN} remove true"), format!("foreign {STRANGER} none false")]);
        assert_eq!(reconcile(world, false).await, [format!("foreign {STRANGER} none false")]);
        let scan = world.scan().await;
        assert_eq!((scan.mdevs_with(ORPHAN).count(), scan.mdevs_with(STRANGER).count()), (0, 1));
    });
    assert_eq!(machine.state("web-01"), ClaimState::InUse);
}

#[test]
fn an_open_orphan_stays() {
    let machine = Machine::with("two-m60", &[]);
    machine.on(disorder);
    machine.on(async |world| {
        let rule = FailRule {
            call: Call::Remove,
            parent: None,
            instance: None,
            nth: 1,
            times: 0,
            kind: FailKind::InUse,
        };
        world.sim.faults().fail(rule);
        assert_eq!(reconcile(world, false).await[0], format!("orphan {ORPHAN} remove false"));
        assert!(world.service().store.books().own_devices().any(|d| d.uuid == ORPHAN));
        assert_eq!(world.scan().await.mdevs_with(ORPHAN).count(), 1);
    });
}

#[test]
fn without_the_domains_nothing_is_known_to_be_unused() {
    let machine = Machine::with("two-m60", &[]);
    machine.on(disorder);
    machine.on(async |world| {
        let rule = FailRule {
            call: Call::Domains,
            parent: None,
            instance: None,
            nth: 1,
            times: 0,
            kind: FailKind::Unreadable,
        };
        world.sim.faults().fail(rule);
        let refused = world.service().reconcile(false).await.unwrap_err();
        assert_eq!(refused.kind, FaultKind::HostRefused);
        world.sim.heal();
        assert_eq!(world.scan().await.mdevs_with(ORPHAN).count(), 1);
    });
}

/// Without the daemon's own eye on the devices, as it is when an event was missed.
#[tokio::test(start_paused = true)]
async fn a_device_that_is_gone_is_made_and_one_that_is_off_is_started() {
    let world = World::new("two-m60").await;
    for name in ["web-01", "web-02"] {
        world.spawn(name, ONE).await;
        world.done(world.service().stop(name, None).await).await;
    }
    let claims: Vec<Claim> = world.service().store.books().claims().cloned().collect();
    for claim in &claims {
        world.sim.change(Change::MdevLost(claim.uuid)).await.unwrap();
    }
    world.sim.remove(claims[0].uuid, &claims[0].parent).await.unwrap();
    let want = |done: bool| {
        let mut want = [
            format!("missing {} make {done}", claims[0].uuid),
            format!("inactive {} start {done}", claims[1].uuid),
        ];
        want.sort();
        want
    };
    let sorted = |mut found: Vec<String>| {
        found.sort();
        found
    };
    assert_eq!(sorted(reconcile(&world, true).await), want(false));
    assert_eq!(sorted(reconcile(&world, false).await), want(true));
    assert_eq!(reconcile(&world, false).await, [""; 0]);
    assert!(world.service().store.books().claims().all(|c| c.state == ClaimState::Parked));
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_domain_is_gone_is_only_told() {
    let world = World::new("two-m60").await;
    let job = world.spawn("web-01", ONE).await;
    world.sim.stop(job.instance).await.unwrap();
    world.sim.undefine(job.instance).await.unwrap();
    let before = picture(&world).await.books;
    assert_eq!(reconcile(&world, false).await, ["stale-claim - none false"]);
    assert_eq!(picture(&world).await.books.claims().len(), before.claims().len());
}
