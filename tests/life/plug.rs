//! One device more, one device less, in a guest that runs and in one that does not.

use mdevirt::host::sim::{Call, FailKind, FailRule};
use mdevirt::model::{FaultKind, MdevUuid, OpKind};
use mdevirt::service::api::{Operate, OperateWith, PrepareRequest, UseCases};

use crate::bench::{ONE, TWO, devices_in, flavored, with};
use crate::world::{World, spawn_request};

fn detach(name: &str, device: MdevUuid) -> Operate {
    with(OpKind::Detach, name, OperateWith { device: Some(device), ..OperateWith::default() })
}

#[tokio::test]
async fn a_running_guest_gets_a_device_and_lets_it_go() {
    let world = World::new("two-m60").await;
    world.spawn("web-01", ONE).await;
    let (first, definition) = (world.booked("web-01"), world.definition("web-01").await);
    world.operate(flavored(OpKind::Attach, "web-01", ONE)).await;
    let both = world.booked("web-01");
    assert_eq!(world.states("web-01"), ["in-use", "in-use"]);
    let new = both.iter().find(|c| c.id != first[0].id).unwrap();
    assert_ne!(new.parent, first[0].parent, "one slice of a card for one VM");
    assert!(world.guest_devices("web-01").await.contains(&new.uuid));
    assert!(devices_in(&world.definition("web-01").await).contains(&new.uuid));

    world.operate(detach("web-01", new.uuid)).await;
    assert_eq!(world.booked("web-01"), first);
    assert_eq!(world.made().await, [first[0].uuid]);
    assert_eq!(world.guest_devices("web-01").await, [first[0].uuid]);
    assert_eq!(world.definition("web-01").await, definition);
}

#[tokio::test]
async fn a_stopped_guest_starts_with_what_was_attached() {
    let world = World::new("two-m60").await;
    world.spawn("web-01", ONE).await;
    world.go(OpKind::Stop, "web-01").await;
    world.operate(flavored(OpKind::Attach, "web-01", ONE)).await;
    assert!(!world.runs("web-01").await);
    world.go(OpKind::Start, "web-01").await;
    assert_eq!(world.guest_devices("web-01").await.len(), 2);
    assert_eq!(world.states("web-01"), ["in-use", "in-use"]);
    world.go(OpKind::Stop, "web-01").await;
    let device = world.booked("web-01").remove(0);
    world.operate(detach("web-01", device.uuid)).await;
    world.go(OpKind::Start, "web-01").await;
    assert_eq!(world.guest_devices("web-01").await.len(), 1);
    assert!(!world.made().await.contains(&device.uuid));
}

#[tokio::test]
async fn the_last_device_may_leave_and_another_come() {
    for running in [true, false] {
        let world = World::new("two-m60").await;
        let before = world.scan().await;
        world.spawn("web-01", ONE).await;
        if !running {
            world.go(OpKind::Stop, "web-01").await;
        }
        let device = world.booked("web-01").remove(0);
        world.operate(detach("web-01", device.uuid)).await;
        assert_eq!(world.made().await, []);
        world.go(OpKind::Reboot, "web-01").await;
        world.operate(flavored(OpKind::Attach, "web-01", ONE)).await;
        assert_eq!(world.guest_devices("web-01").await.len(), 1);
        world.go(OpKind::Suspend, "web-01").await;
        world.go(OpKind::Resume, "web-01").await;
        let device = world.booked("web-01").remove(0);
        world.operate(detach("web-01", device.uuid)).await;
        world.go(OpKind::Suspend, "web-01").await;
        world.go(OpKind::Resume, "web-01").await;
        world.go(OpKind::Destroy, "web-01").await;
        world.assert_untouched(&before).await;
    }
}

#[tokio::test]
async fn a_guest_that_does_not_let_go_keeps_its_device() {
    let world = World::new("two-m60").await;
    world.spawn("web-01", TWO).await;
    let (before, definition) = (world.booked("web-01"), world.definition("web-01").await);
    let rule =
        |call| FailRule { call, parent: None, instance: None, nth: 1, times: 1, kind: FailKind::InUse };
    world.sim.faults().fail(rule(Call::Detach));
    world.fails(detach("web-01", before[0].uuid), FaultKind::DeviceInUse).await;
    assert_eq!(world.booked("web-01"), before);
    assert_eq!(world.guest_devices("web-01").await.len(), 2);
    assert_eq!(world.definition("web-01").await, definition);
}

#[tokio::test]
async fn an_attach_that_fails_leaves_nothing() {
    for nth in [1, 2] {
        let world = World::new("two-m60").await;
        world.spawn("web-01", ONE).await;
        let (before, definition) = (world.booked("web-01"), world.definition("web-01").await);
        let kind = FailKind::Refused;
        world.sim.faults().fail(FailRule {
            call: Call::Attach,
            parent: None,
            instance: None,
            nth,
            times: 1,
            kind,
        });
        world.fails(flavored(OpKind::Attach, "web-01", ONE), FaultKind::HostRefused).await;
        assert_eq!(world.booked("web-01"), before);
        assert_eq!(world.made().await, [before[0].uuid]);
        assert_eq!(world.guest_devices("web-01").await, [before[0].uuid]);
        assert_eq!(world.definition("web-01").await, definition);
    }
}

#[tokio::test]
async fn what_cannot_be_attached_or_detached_is_refused() {
    let world = World::new("two-m60").await;
    world.spawn("web-01", TWO).await;
    world.spawn("web-02", ONE).await;
    let before = world.made().await;
    let fault = world.refused(flavored(OpKind::Attach, "web-01", ONE), FaultKind::NoCapacity).await;
    assert!(fault.details.to_string().contains("card"), "{}", fault.details);
    let theirs = world.booked("web-02").remove(0).uuid;
    world.refused(detach("web-01", theirs), FaultKind::InvalidRequest).await;
    world.refused(Operate::plain(OpKind::Detach, "web-01", None), FaultKind::InvalidRequest).await;
    world.refused(Operate::plain(OpKind::Attach, "web-01", None), FaultKind::InvalidRequest).await;
    world.refused(flavored(OpKind::Attach, "web-01", ""), FaultKind::InvalidRequest).await;
    assert_eq!(world.made().await, before);
}

/// The document names the devices as they are, whatever the flavor says.
#[tokio::test]
async fn an_attached_device_travels_too() {
    let world = World::new("two-m60").await;
    let target = World::new("two-m60").await;
    world.done(world.service().spawn(spawn_request("web-01", ONE)).await).await;
    world.operate(flavored(OpKind::Attach, "web-01", ONE)).await;
    let document = crate::bench::begin(&world, "web-01").await;
    target.done(target.service().migrate_prepare(crate::bench::arriving(&document)).await).await;
    target.go(OpKind::MigrateFinish, "web-01").await;
    assert_eq!(target.guest_devices("web-01").await.len(), 2);
}

/// Where the type may change the flavor decides, and it does not know of what was attached.
#[tokio::test]
async fn a_flavor_that_lacks_what_was_attached_is_refused() {
    let world = World::new("two-m60").await;
    let target = World::new("two-m60").await;
    world.spawn("web-01", ONE).await;
    world.operate(flavored(OpKind::Attach, "web-01", ONE)).await;
    let document = crate::bench::begin(&world, "web-01").await;
    let request = PrepareRequest { allow_type_change: true, ..crate::bench::arriving(&document) };
    let fault = target.service().migrate_prepare(request.clone()).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::InvalidRequest);
    assert!(fault.message.contains("has 2 devices") && fault.message.contains("asks for 1"), "{fault}");
    assert!(target.made().await.is_empty() && target.service().instances().await.unwrap().is_empty());
    let both = PrepareRequest { flavor: Some(TWO.to_owned()), ..request };
    target.done(target.service().migrate_prepare(both).await).await;
    assert_eq!(target.made().await.len(), 2);
}
