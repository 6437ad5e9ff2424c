//! On and off, suspend and resume, hard reboot: the devices stay booked, and one that is lost is made again.

use mdevirt::host::NodeDevices;
use mdevirt::host::sim::{Call, Change, FailKind, FailRule, ForeignMdev};
use mdevirt::model::{DeviceApi, FaultKind, MdevUuid, NewMdev, OpKind};
use mdevirt::service::api::{Operate, UseCases};

use crate::bench::{ONE, Site, TWO, flavored};
use crate::world::World;

#[tokio::test]
async fn a_suspended_vm_keeps_its_devices_and_gets_them_back() {
    let world = World::new("two-m60").await;
    world.spawn("web-01", TWO).await;
    let before = world.claims("web-01").await;
    let devices = world.guest_devices("web-01").await;
    world.go(OpKind::Suspend, "web-01").await;
    assert!(!world.runs("web-01").await && world.is_saved("web-01").await);
    assert_eq!(world.states("web-01"), ["parked", "parked"]);
    assert_eq!(world.made().await.len(), 2, "the devices are there, and nobody else gets them");

    world.go(OpKind::Resume, "web-01").await;
    assert!(world.runs("web-01").await && !world.is_saved("web-01").await);
    assert_eq!(world.claims("web-01").await, before);
    let mut again = world.guest_devices("web-01").await;
    again.sort();
    let mut devices = devices;
    devices.sort();
    assert_eq!(again, devices);
}

#[tokio::test]
async fn a_lost_device_of_a_suspended_vm_is_made_again() {
    let world = World::new("two-m60").await;
    world.spawn("web-01", ONE).await;
    let before = world.claims("web-01").await;
    world.go(OpKind::Suspend, "web-01").await;
    world.lose(&before[0]).await;
    world.go(OpKind::Resume, "web-01").await;
    assert_eq!(world.claims("web-01").await, before);
    assert_eq!(world.guest_devices("web-01").await, [before[0].uuid]);
}

#[tokio::test]
async fn a_resume_without_its_device_fails_and_the_vm_stays_suspended() {
    let world = World::new("two-m60").await;
    world.spawn("web-01", TWO).await;
    let before = world.claims("web-01").await;
    world.go(OpKind::Suspend, "web-01").await;
    let suspended = world.booked("web-01");
    for (kind, fault) in
        [(FailKind::InUse, FaultKind::DeviceInUse), (FailKind::Refused, FaultKind::HostRefused)]
    {
        // The first device is in the guest again when the second is refused.
        world.sim.faults().fail(FailRule {
            call: Call::Attach,
            parent: None,
            instance: None,
            nth: 2,
            times: 1,
            kind,
        });
        let why = world.fails(Operate::plain(OpKind::Resume, "web-01", None), fault).await;
        assert!(why.contains("attach"), "{why}");
        assert!(!world.runs("web-01").await && world.is_saved("web-01").await, "its memory is kept");
        assert_eq!(world.booked("web-01"), suspended);
        world.sim.heal();
    }
    world.go(OpKind::Resume, "web-01").await;
    assert_eq!(world.claims("web-01").await, before);
}

#[tokio::test]
async fn a_resume_whose_place_was_taken_fails_until_it_is_free() {
    let site = Site::new(
        "h1",
        &[(0x84, "0x10de", &[("nvidia-22", "GRID M60-8Q", 1)])],
        "[devices]\nenabled_mdev_types = ['nvidia-22']\n",
    )
    .await;
    site.spawn("web-01", ONE).await;
    let device = site.claims("web-01").await.remove(0);
    site.go(OpKind::Suspend, "web-01").await;
    site.lose(&device).await;
    let theirs = MdevUuid(uuid::Uuid::from_u128(7));
    let type_id = device.mdev_type.clone();
    let foreign = ForeignMdev { uuid: theirs, parent: device.parent.clone(), type_id };
    site.sim.change(Change::ForeignMdev(foreign)).await.unwrap();
    let why = site.fails(Operate::plain(OpKind::Resume, "web-01", None), FaultKind::NoCapacity).await;
    assert!(why.contains("0000:84:00.0"), "{why}");
    assert!(!site.runs("web-01").await && site.is_saved("web-01").await);
    site.sim.remove(theirs, &device.parent).await.unwrap();
    site.go(OpKind::Resume, "web-01").await;
    assert_eq!(site.guest_devices("web-01").await, [device.uuid]);
}

#[tokio::test]
async fn a_guest_that_does_not_let_go_stays_as_it_was() {
    let world = World::new("two-m60").await;
    world.spawn("web-01", TWO).await;
    let before = world.claims("web-01").await;
    world.sim.faults().fail(FailRule {
        call: Call::Detach,
        parent: None,
        instance: None,
        nth: 2,
        times: 1,
        kind: FailKind::InUse,
    });
    world.fails(Operate::plain(OpKind::Suspend, "web-01", None), FaultKind::DeviceInUse).await;
    assert!(world.runs("web-01").await && !world.is_saved("web-01").await);
    assert_eq!(world.claims("web-01").await, before);
    assert_eq!(world.guest_devices("web-01").await.len(), 2, "the first is back in the guest");
}

/// A start would go on from the memory without the devices, and everything else would lose it.
#[tokio::test]
async fn what_would_lose_the_memory_of_a_suspended_vm_is_refused() {
    let world = World::new("two-m60").await;
    world.spawn("web-01", ONE).await;
    world.go(OpKind::Suspend, "web-01").await;
    for op in [
        OpKind::Start,
        OpKind::Reboot,
        OpKind::Rescue,
        OpKind::Rebuild,
        OpKind::MigrateBegin,
        OpKind::Suspend,
    ] {
        let fault = world.refused(Operate::plain(op, "web-01", None), FaultKind::InvalidRequest).await;
        assert!(op == OpKind::Suspend || fault.message.contains("resume"), "{op}: {fault}");
    }
    for op in [OpKind::ResizePrepare, OpKind::Attach] {
        world.refused(flavored(op, "web-01", ONE), FaultKind::InvalidRequest).await;
    }
    assert!(world.is_saved("web-01").await);
    world.go(OpKind::Resume, "web-01").await;
    world.refused(Operate::plain(OpKind::Resume, "web-01", None), FaultKind::InvalidRequest).await;
}

#[tokio::test]
async fn a_suspended_vm_can_be_destroyed() {
    let world = World::new("two-m60").await;
    let before = world.scan().await;
    world.spawn("web-01", TWO).await;
    world.go(OpKind::Suspend, "web-01").await;
    world.go(OpKind::Destroy, "web-01").await;
    world.assert_untouched(&before).await;
}

const CUSTOM: &str = "[devices]\nenabled_mdev_types = ['mlx5_core-local']\n[mdev.mlx5_core-local]\nmdev_class = 'CUSTOM_NOTVGPU'\n";

/// Nova repairs only the class VGPU of the unnumbered group.
#[tokio::test]
async fn a_hard_reboot_makes_lost_devices_again_whatever_they_were_asked_for_as() {
    let mlx: &[(&str, &str, u32)] = &[("mlx5_core-local", "local", 16)];
    let cards = [(0x81, "0x15b3", mlx), (0x82, "0x15b3", mlx)];
    for flavor in ["resources:CUSTOM_NOTVGPU=1", "resources1:CUSTOM_NOTVGPU=1,resources_b:CUSTOM_NOTVGPU=1"] {
        let site = Site::new("h1", &cards, CUSTOM).await;
        site.spawn("web-01", flavor).await;
        let before = site.claims("web-01").await;
        for device in &before {
            // A device of a running guest is lost without asking.
            site.sim.change(Change::MdevLost(device.uuid)).await.unwrap();
        }
        assert_eq!(site.made().await, []);
        site.go(OpKind::Reboot, "web-01").await;
        assert_eq!(site.claims("web-01").await, before, "the same UUID on the same parent");
        let scan = site.scan().await;
        for device in &before {
            assert!(scan.mdevs_with(device.uuid).any(|m| m.active && m.parent == device.parent));
        }
        assert!(site.runs("web-01").await);
    }
}

#[tokio::test]
async fn stop_and_start_keep_several_devices() {
    let world = World::new("two-m60").await;
    world.spawn("web-01", TWO).await;
    let (before, definition) = (world.claims("web-01").await, world.definition("web-01").await);
    world.go(OpKind::Stop, "web-01").await;
    assert_eq!(world.states("web-01"), ["parked", "parked"]);
    world.lose(&before[1]).await;
    world.go(OpKind::Start, "web-01").await;
    assert_eq!(world.claims("web-01").await, before);
    assert_eq!(world.definition("web-01").await, definition);
}

/// The UUID is ours, the device of that UUID is not: it is left alone.
#[tokio::test]
async fn a_start_does_not_take_a_device_that_somebody_made_elsewhere() {
    let world = World::new("two-m60").await;
    world.spawn("web-01", ONE).await;
    let device = world.claims("web-01").await.remove(0);
    world.go(OpKind::Stop, "web-01").await;
    world.lose(&device).await;
    let other = world.scan().await.parents.iter().find(|p| p.addr != device.parent).unwrap().addr.clone();
    let new = NewMdev {
        uuid: device.uuid,
        parent: other.clone(),
        type_id: device.mdev_type.clone(),
        device_api: DeviceApi::VfioPci,
    };
    world.sim.create(&new).await.unwrap();
    let why = world.fails(Operate::plain(OpKind::Start, "web-01", None), FaultKind::HostRefused).await;
    assert!(why.contains(&other.to_string()), "{why}");
    assert!(!world.runs("web-01").await);
    assert!(world.scan().await.mdevs_with(device.uuid).all(|m| m.parent == other));
    assert_eq!(world.service().instances().await.unwrap()[0].claims[0].parent, device.parent);
}
