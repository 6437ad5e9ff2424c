//! Another flavor on the same host: to more, fewer, other or no slices; confirmed or reverted.

use std::collections::BTreeSet;

use mdevirt::host::sim::{Call, FailKind, FailRule};
use mdevirt::model::{Claim, ClaimRole, DisplayWish, FaultKind, OpKind};
use mdevirt::service::api::{Operate, UseCases};

use crate::bench::{Card, ONE, Site, TWO, devices_in, flavored, odd_xml, resize, without_devices};
use crate::world::World;

const SMALL: &str = "resources:VGPU=1,trait:CUSTOM_SMALL=required";
const LARGE: &str = "resources:VGPU=1,trait:CUSTOM_LARGE=required";
const CARDS: [Card<'static>; 3] = [
    (0x81, "0x10de", &[("nvidia-18", "GRID M60-2Q", 4)]),
    (0x82, "0x10de", &[("nvidia-18", "GRID M60-2Q", 4)]),
    (0x83, "0x10de", &[("nvidia-20", "GRID M60-4Q", 2)]),
];
const CONFIG: &str = "[devices]\nenabled_mdev_types = ['nvidia-18', 'nvidia-20']\n[mdev.nvidia-18]\n\
                      device_addresses = ['0000:81:00.0', '0000:82:00.0']\ntraits = ['CUSTOM_SMALL']\n\
                      [mdev.nvidia-20]\ndevice_addresses = ['0000:83:00.0']\ntraits = ['CUSTOM_LARGE']\n";
const SMALLS: &str =
    "resources1:VGPU=1,trait1:CUSTOM_SMALL=required,resources2:VGPU=1,trait2:CUSTOM_SMALL=required";

/// What a revert has to bring back.
#[derive(Debug, PartialEq)]
struct Before {
    claims: Vec<Claim>,
    definition: String,
    made: Vec<mdevirt::model::MdevUuid>,
    running: bool,
    flavor: Option<String>,
}

async fn before(world: &World, name: &str) -> Before {
    let view = world.service().instances().await.unwrap();
    Before {
        claims: world.booked(name),
        definition: world.definition(name).await,
        made: world.made().await,
        running: world.runs(name).await,
        flavor: view.into_iter().find(|i| i.name == name).unwrap().flavor,
    }
}

/// From one flavor to another and back, or on, with the guest on or off.
async fn there(from: &str, to: &str, count: usize, running: bool, confirm: bool) {
    let site = Site::new("h1", &CARDS, CONFIG).await;
    let nothing = site.scan().await;
    let xml = odd_xml("web-01", 1);
    site.spawn_xml(&xml, if from.is_empty() { ONE } else { from }, DisplayWish::Off).await;
    if from.is_empty() {
        resize(&site, "web-01", "").await;
        site.go(OpKind::ResizeConfirm, "web-01").await;
    }
    if !running {
        site.go(OpKind::Stop, "web-01").await;
    }
    let old = before(&site, "web-01").await;
    site.operate(flavored(OpKind::ResizePrepare, "web-01", to)).await;
    assert_eq!(site.definition("web-01").await, old.definition, "the guest goes on with the old devices");
    assert_eq!(site.runs("web-01").await, running);
    both_are_booked(&site, old.claims.len(), count).await;
    site.go(OpKind::ResizeFinish, "web-01").await;
    both_are_booked(&site, old.claims.len(), count).await;
    assert_eq!(site.runs("web-01").await, running);
    let new: Vec<Claim> =
        site.booked("web-01").into_iter().filter(|c| c.role == ClaimRole::Primary).collect();
    assert!(new.iter().all(|c| !old.claims.iter().any(|o| o.uuid == c.uuid)), "new devices");
    let definition = site.definition("web-01").await;
    assert_eq!(devices_in(&definition).len(), count);
    assert_eq!(without_devices(&definition), xml);

    if confirm {
        site.go(OpKind::ResizeConfirm, "web-01").await;
        assert_eq!(site.booked("web-01"), new);
        let named: BTreeSet<_> = devices_in(&definition).into_iter().collect();
        assert_eq!(site.made().await.into_iter().collect::<BTreeSet<_>>(), named);
        assert_eq!(before(&site, "web-01").await.flavor.as_deref(), Some(to));
    } else {
        site.go(OpKind::ResizeRevert, "web-01").await;
        assert_eq!(before(&site, "web-01").await, old);
    }
    let view = site.service().instances().await.unwrap().remove(0);
    assert_eq!((view.moving, site.runs("web-01").await), (None, running));
    site.go(OpKind::Destroy, "web-01").await;
    site.assert_untouched(&nothing).await;
}

async fn both_are_booked(world: &World, old: usize, new: usize) {
    assert_eq!(world.made().await.len(), old + new);
    assert_eq!(world.used().await as usize, old + new);
}

async fn every_way(from: &str, to: &str, count: usize) {
    for running in [true, false] {
        for confirm in [true, false] {
            there(from, to, count, running, confirm).await;
        }
    }
}

#[tokio::test]
async fn to_more_slices() {
    every_way(SMALL, SMALLS, 2).await;
}

#[tokio::test]
async fn to_fewer_slices() {
    every_way(SMALLS, SMALL, 1).await;
}

#[tokio::test]
async fn to_another_type() {
    every_way(SMALL, LARGE, 1).await;
}

#[tokio::test]
async fn to_the_same_flavor() {
    every_way(SMALLS, SMALLS, 2).await;
}

#[tokio::test]
async fn to_no_slices() {
    every_way(SMALLS, "", 0).await;
}

#[tokio::test]
async fn from_no_slices() {
    every_way("", LARGE, 1).await;
}

#[tokio::test]
async fn a_prepared_resize_is_reverted_without_touching_the_guest() {
    let world = World::new("two-m60").await;
    world.spawn("web-01", ONE).await;
    let old = before(&world, "web-01").await;
    world.operate(flavored(OpKind::ResizePrepare, "web-01", TWO)).await;
    world.go(OpKind::ResizeRevert, "web-01").await;
    assert_eq!(before(&world, "web-01").await, old);
    let all = world.service().jobs().await.unwrap();
    assert!(all.iter().all(|job| job.op != OpKind::ResizeFinish));
}

#[tokio::test]
async fn a_full_host_refuses_and_nothing_changes() {
    let site = Site::new("h1", &CARDS, CONFIG).await;
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        site.spawn(name, SMALL).await;
    }
    let old = before(&site, "a").await;
    let fault = site.refused(flavored(OpKind::ResizePrepare, "a", SMALL), FaultKind::NoCapacity).await;
    assert!(!fault.details["parents"].as_array().unwrap().is_empty());
    site.refused(flavored(OpKind::ResizePrepare, "a", "resources:NOPE=1"), FaultKind::InvalidRequest).await;
    site.refused(Operate::plain(OpKind::ResizePrepare, "a", None), FaultKind::InvalidRequest).await;
    assert_eq!(before(&site, "a").await, old);
}

/// The room of the old side is needed for the revert, that of the new one for what runs.
#[tokio::test]
async fn neither_side_is_given_away_before_the_end() {
    let cards: [Card<'_>; 2] = [
        (0x81, "0x10de", &[("nvidia-22", "GRID M60-8Q", 1)]),
        (0x82, "0x10de", &[("nvidia-22", "GRID M60-8Q", 1)]),
    ];
    let site = Site::new("h1", &cards, "[devices]\nenabled_mdev_types = ['nvidia-22']\n").await;
    site.spawn("web-01", ONE).await;
    let old = before(&site, "web-01").await;
    site.operate(flavored(OpKind::ResizePrepare, "web-01", ONE)).await;
    site.no_spawn("web-02", ONE, FaultKind::NoCapacity).await;
    site.go(OpKind::ResizeFinish, "web-01").await;
    site.no_spawn("web-02", ONE, FaultKind::NoCapacity).await;
    site.go(OpKind::ResizeRevert, "web-01").await;
    assert_eq!(before(&site, "web-01").await, old);
    site.spawn("web-02", ONE).await;
}

#[tokio::test]
async fn a_finish_that_fails_goes_back_to_the_old_side() {
    let world = World::new("two-m60").await;
    world.spawn("web-01", ONE).await;
    world.operate(flavored(OpKind::ResizePrepare, "web-01", TWO)).await;
    let prepared = before(&world, "web-01").await;
    for call in [Call::Stop, Call::Define, Call::Start] {
        let rule = FailRule { call, parent: None, instance: None, nth: 1, times: 1, kind: FailKind::Refused };
        world.sim.faults().fail(rule);
        world.fails(Operate::plain(OpKind::ResizeFinish, "web-01", None), FaultKind::HostRefused).await;
        assert_eq!(before(&world, "web-01").await, prepared);
    }
    world.go(OpKind::ResizeFinish, "web-01").await;
    world.go(OpKind::ResizeConfirm, "web-01").await;
    assert_eq!(world.states("web-01"), ["in-use", "in-use"]);
}

#[tokio::test]
async fn a_lost_device_of_the_old_side_comes_back_with_the_revert() {
    let world = World::new("two-m60").await;
    world.spawn("web-01", TWO).await;
    let old = before(&world, "web-01").await;
    let held = world.claims("web-01").await;
    resize(&world, "web-01", ONE).await;
    world.lose(&held[0]).await;
    world.go(OpKind::ResizeRevert, "web-01").await;
    assert_eq!(before(&world, "web-01").await, old);
}

#[tokio::test]
async fn one_move_at_a_time_and_the_guest_goes_on_and_off() {
    let world = World::new("two-m60").await;
    let nothing = world.scan().await;
    world.spawn("web-01", ONE).await;
    world.refused(Operate::plain(OpKind::ResizeConfirm, "web-01", None), FaultKind::InvalidRequest).await;
    world.operate(flavored(OpKind::ResizePrepare, "web-01", ONE)).await;
    for op in [OpKind::ResizeConfirm, OpKind::MigrateBegin, OpKind::Suspend, OpKind::Rescue] {
        let fault = world.refused(Operate::plain(op, "web-01", None), FaultKind::InstanceBusy).await;
        assert!(fault.message.contains("finish or revert the resize"), "{fault}");
    }
    world.go(OpKind::Stop, "web-01").await;
    world.go(OpKind::ResizeFinish, "web-01").await;
    world.go(OpKind::Start, "web-01").await;
    world.go(OpKind::Reboot, "web-01").await;
    let again = world.refused(flavored(OpKind::ResizePrepare, "web-01", TWO), FaultKind::InstanceBusy).await;
    assert!(again.message.contains("confirm or revert the resize"), "{again}");
    // Destroyed in the middle, it gives both sides back.
    world.go(OpKind::Destroy, "web-01").await;
    world.assert_untouched(&nothing).await;
    assert!(world.service().store.books().move_of(mdevirt::model::InstanceUuid(uuid::Uuid::nil())).is_none());
}

/// The domain has no device by which it could be known, in either phase.
#[tokio::test]
async fn a_resize_from_or_to_nothing_can_be_destroyed() {
    for (first, to) in [("", ONE), (ONE, "")] {
        for finished in [false, true] {
            let world = World::new("two-m60").await;
            let nothing = world.scan().await;
            world.spawn("web-01", ONE).await;
            if first.is_empty() {
                resize(&world, "web-01", "").await;
                world.go(OpKind::ResizeConfirm, "web-01").await;
            }
            world.operate(flavored(OpKind::ResizePrepare, "web-01", to)).await;
            if finished {
                world.go(OpKind::ResizeFinish, "web-01").await;
            }
            let uuid = world.uuid("web-01");
            world.go(OpKind::Destroy, "web-01").await;
            assert_eq!(world.running(uuid).await, None);
            world.assert_untouched(&nothing).await;
        }
    }
}
