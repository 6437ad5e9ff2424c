//! Bugs that nova had, each told for this daemon; the numbers are Launchpad's.

use std::collections::BTreeSet;

use mdevirt::host::NodeDevices;
use mdevirt::host::sim::{Change, ForeignMdev};
use mdevirt::model::{FaultKind, MdevUuid, OpKind};
use mdevirt::service::api::{Operate, UseCases};

use crate::bench::{Card, ONE, Site, TWO, arriving, begin, defined, devices_in, resize};
use crate::world::{World, domain_xml, spawn_request};

const SINGLE: Card<'static> = (0x81, "0x10de", &[("nvidia-22", "GRID M60-8Q", 1)]);
const FULL: &str = "[devices]\nenabled_mdev_types = ['nvidia-22']\n";

/// A host whose only slice one VM holds.
async fn full() -> Site {
    let site = Site::new("h1", &[SINGLE], FULL).await;
    site.spawn("web-01", ONE).await;
    site
}

/// The device is still that VM's, and nobody else gets it.
async fn still_taken(site: &Site, device: MdevUuid) {
    assert_eq!(site.booked("web-01").iter().map(|c| c.uuid).collect::<Vec<_>>(), [device]);
    site.no_spawn("web-02", ONE, FaultKind::NoCapacity).await;
    let by_xml = domain_xml("web-02").replace(
        "<devices>",
        &format!("<devices><hostdev mode='subsystem' type='mdev' model='vfio-pci'><source><address uuid='{device}'/></source></hostdev>"),
    );
    let request = mdevirt::service::api::SpawnRequest { domain_xml: by_xml, ..spawn_request("", ONE) };
    let fault = site.service().spawn(request).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::DeviceInUse, "{fault}");
}

/// 1778563: a resized or migrated server had no vGPU any more.
#[tokio::test]
async fn lp_1778563_a_resized_vm_has_its_devices() {
    let (world, target) = (World::new("two-m60").await, World::new("two-m60").await);
    world.spawn("web-01", ONE).await;
    resize(&world, "web-01", TWO).await;
    assert_eq!(world.guest_devices("web-01").await.len(), 2);
    world.go(OpKind::ResizeConfirm, "web-01").await;
    assert_eq!(world.guest_devices("web-01").await.len(), 2);
    let document = begin(&world, "web-01").await;
    target.done(target.service().migrate_prepare(arriving(&document)).await).await;
    target.go(OpKind::MigrateFinish, "web-01").await;
    let held: BTreeSet<_> = target.booked("web-01").iter().map(|c| c.uuid).collect();
    assert_eq!(target.guest_devices("web-01").await.into_iter().collect::<BTreeSet<_>>(), held);
    assert_eq!(held.len(), 2);
}

/// A revert on the same host found no domain to take the old devices from.
#[tokio::test]
async fn lost_on_revert_on_the_same_host() {
    let world = World::new("two-m60").await;
    world.spawn("web-01", TWO).await;
    let (claims, definition) = (world.booked("web-01"), world.definition("web-01").await);
    resize(&world, "web-01", "").await;
    assert_eq!(devices_in(&world.definition("web-01").await), []);
    world.go(OpKind::ResizeRevert, "web-01").await;
    assert_eq!((world.booked("web-01"), world.definition("web-01").await), (claims, definition));
    assert!(world.runs("web-01").await);
    assert_eq!(world.guest_devices("web-01").await.len(), 2);
}

/// The choice was not to be seen by others before the domain was defined.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_spawns_picking_one_device() {
    let site = Site::new("h1", &[SINGLE, (0x82, SINGLE.1, SINGLE.2)], FULL).await;
    let asks = (0..8).map(|n| {
        let service = site.service().clone();
        tokio::spawn(async move { service.spawn(spawn_request(&format!("vm-{n}"), ONE)).await })
    });
    let mut accepted = 0;
    for ask in asks.collect::<Vec<_>>() {
        accepted += usize::from(ask.await.unwrap().is_ok());
    }
    site.quiet().await;
    let books = site.service().store.books();
    let devices: BTreeSet<_> = books.claims().map(|c| c.uuid).collect();
    assert_eq!((accepted, books.claims().len(), devices.len()), (2, 2, 2));
}

/// One stale definition kept the service from starting, and idle devices of others were given to VMs.
#[tokio::test]
async fn one_bad_definition_does_not_stop_the_rest() {
    let world = World::new("two-m60").await;
    world.spawn("web-01", ONE).await;
    world.spawn("web-02", ONE).await;
    let lost = world.claims("web-01").await.remove(0);
    let theirs = MdevUuid(uuid::Uuid::from_u128(3));
    let foreign = ForeignMdev { uuid: theirs, parent: lost.parent.clone(), type_id: lost.mdev_type.clone() };
    world.sim.change(Change::ForeignMdev(foreign)).await.unwrap();
    world.sim.change(Change::ParentGone(lost.parent.clone())).await.unwrap();
    // What is left of the card are definitions without a parent.
    world.service().reload().await.unwrap();
    let status = world.service().status().await.unwrap();
    assert_eq!(status.instances, 2);
    world.fails(Operate::plain(OpKind::Reboot, "web-01", None), FaultKind::NoSuchParent).await;
    world.go(OpKind::Reboot, "web-02").await;
    world.spawn("web-03", ONE).await;
    assert_ne!(world.claims("web-03").await[0].parent, lost.parent);
    world.sim.change(Change::ParentBack(lost.parent.clone())).await.unwrap();
    world.go(OpKind::Start, "web-01").await;
    assert_eq!(world.guest_devices("web-01").await, [lost.uuid]);
    let held: Vec<_> = world.service().store.books().claims().map(|c| c.uuid).collect();
    assert!(!held.contains(&theirs));
}

/// 1762688: a rescued server ran without its vGPU, which was given away.
#[tokio::test]
async fn lp_1762688_a_rescued_vm_keeps_its_device() {
    let site = full().await;
    let device = site.booked("web-01")[0].uuid;
    site.operate(defined(OpKind::Rescue, "web-01", &domain_xml("web-01"))).await;
    assert_eq!(site.guest_devices("web-01").await, [device]);
    still_taken(&site, device).await;
    site.go(OpKind::Stop, "web-01").await;
    still_taken(&site, device).await;
    site.go(OpKind::Unrescue, "web-01").await;
    assert_eq!(site.guest_devices("web-01").await, [device]);
}

/// 1948705: a resumed server came back without its vGPU; while it was suspended only a definition kept it.
#[tokio::test]
async fn lp_1948705_a_suspended_vm_keeps_its_device() {
    let site = full().await;
    let device = site.booked("web-01")[0].uuid;
    site.go(OpKind::Suspend, "web-01").await;
    still_taken(&site, device).await;
    // Not even an idle device is free for others.
    assert!(site.scan().await.mdevs_with(device).all(|m| m.active));
    site.go(OpKind::Resume, "web-01").await;
    assert_eq!(site.guest_devices("web-01").await, [device]);
}

/// The same for a stopped VM whose device is gone: its place is kept.
#[tokio::test]
async fn a_place_is_kept_for_a_stopped_vm() {
    let site = full().await;
    let device = site.claims("web-01").await.remove(0);
    site.go(OpKind::Stop, "web-01").await;
    site.sim.remove(device.uuid, &device.parent).await.unwrap();
    still_taken(&site, device.uuid).await;
    site.go(OpKind::Start, "web-01").await;
}
