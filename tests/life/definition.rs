//! Rescue, unrescue and rebuild: another definition, the same devices.

use mdevirt::host::sim::{Call, FailKind, FailRule};
use mdevirt::model::{DisplayWish, FaultKind, OpKind};
use mdevirt::service::api::{Operate, OperateWith, UseCases};

use crate::bench::{ONE, TWO, defined, devices_in, odd_xml, with, without_devices};
use crate::world::{World, domain_xml};

#[tokio::test]
async fn the_users_xml_stays_byte_for_byte() {
    let world = World::new("two-m60").await;
    let xml = odd_xml("web-01", 1);
    world.spawn_xml(&xml, TWO, DisplayWish::Off).await;
    let spawned = world.definition("web-01").await;
    assert_eq!(without_devices(&spawned), xml);

    let rescue = odd_xml("web-01", 1).replace("web-01.qcow2", "rescue.qcow2");
    world.operate(defined(OpKind::Rescue, "web-01", &rescue)).await;
    let definition = world.definition("web-01").await;
    assert_eq!(without_devices(&definition), rescue);
    assert_eq!(devices_in(&definition), devices_in(&spawned));

    world.go(OpKind::Unrescue, "web-01").await;
    assert_eq!(world.definition("web-01").await, spawned);

    let rebuilt = odd_xml("web-01", 1).replace("web-01.qcow2", "new.qcow2");
    world.operate(defined(OpKind::Rebuild, "web-01", &rebuilt)).await;
    assert_eq!(without_devices(&world.definition("web-01").await), rebuilt);
}

#[tokio::test]
async fn devices_stay_through_rescue_and_unrescue() {
    for running in [true, false] {
        let world = World::new("two-m60").await;
        world.spawn("web-01", TWO).await;
        if !running {
            world.go(OpKind::Stop, "web-01").await;
        }
        let before = world.booked("web-01");
        let made = world.made().await;
        world.operate(defined(OpKind::Rescue, "web-01", &domain_xml("web-01"))).await;
        assert!(world.runs("web-01").await, "the rescue system runs");
        assert_eq!(world.states("web-01"), ["in-use", "in-use"]);
        assert_eq!(world.made().await, made);
        let view = world.service().instances().await.unwrap().remove(0);
        assert_eq!(view.moving.as_deref(), Some("rescue finished"));
        for op in [OpKind::Rescue, OpKind::Rebuild, OpKind::Suspend, OpKind::MigrateBegin] {
            let fault = world.refused(Operate::plain(op, "web-01", None), FaultKind::InstanceBusy).await;
            assert!(fault.message.contains("unrescue"), "{fault}");
        }
        world.go(OpKind::Unrescue, "web-01").await;
        assert_eq!(world.runs("web-01").await, running);
        assert_eq!(world.booked("web-01"), before);
        world.refused(Operate::plain(OpKind::Unrescue, "web-01", None), FaultKind::InvalidRequest).await;
    }
}

#[tokio::test]
async fn a_rescue_that_does_not_start_brings_the_old_guest_back() {
    let world = World::new("two-m60").await;
    world.spawn("web-01", ONE).await;
    let (before, definition) = (world.booked("web-01"), world.definition("web-01").await);
    world.sim.faults().fail(FailRule {
        call: Call::Start,
        parent: None,
        instance: None,
        nth: 1,
        times: 1,
        kind: FailKind::Refused,
    });
    let rescue = defined(OpKind::Rescue, "web-01", &odd_xml("web-01", world.uuid("web-01").0.as_u128()));
    world.fails(rescue, FaultKind::HostRefused).await;
    assert_eq!(world.definition("web-01").await, definition);
    assert_eq!(world.booked("web-01"), before);
    assert!(world.runs("web-01").await);
    let books = world.service().store.books();
    assert!(books.move_of(world.uuid("web-01")).is_none());
}

#[tokio::test]
async fn a_rebuilt_vm_has_its_own_devices_and_is_on_if_it_was() {
    for running in [true, false] {
        let world = World::new("two-m60").await;
        world.spawn("web-01", TWO).await;
        if !running {
            world.go(OpKind::Stop, "web-01").await;
        }
        let before = world.booked("web-01");
        world.operate(defined(OpKind::Rebuild, "web-01", &domain_xml("web-01"))).await;
        assert_eq!((world.booked("web-01"), world.runs("web-01").await), (before, running));
        assert_eq!(devices_in(&world.definition("web-01").await).len(), 2);
    }
}

#[tokio::test]
async fn xml_of_another_vm_or_with_a_device_of_another_is_refused() {
    let world = World::new("two-m60").await;
    world.spawn("web-01", ONE).await;
    world.spawn("web-02", ONE).await;
    let (before, definition) = (world.booked("web-01"), world.definition("web-01").await);
    let theirs = world.definition("web-02").await;
    for op in [OpKind::Rescue, OpKind::Rebuild] {
        world.refused(defined(op, "web-01", &theirs), FaultKind::InvalidDomainXml).await;
        let named = theirs
            .replace("web-02", "web-01")
            .replace(&world.uuid("web-02").to_string(), &world.uuid("web-01").to_string());
        world.refused(defined(op, "web-01", &named), FaultKind::DeviceInUse).await;
        world.refused(defined(op, "web-01", &odd_xml("web-01", 99)), FaultKind::InvalidDomainXml).await;
        world.refused(defined(op, "web-01", "<domain>"), FaultKind::InvalidDomainXml).await;
        world.refused(with(op, "web-01", OperateWith::default()), FaultKind::InvalidRequest).await;
    }
    assert_eq!((world.booked("web-01"), world.definition("web-01").await), (before, definition));
}

/// Who rebuilds from what libvirt shows hands the devices in again; they are the instance's own.
#[tokio::test]
async fn its_own_devices_in_the_xml_are_taken() {
    let world = World::new("two-m60").await;
    world.spawn("web-01", TWO).await;
    let definition = world.definition("web-01").await;
    world.operate(defined(OpKind::Rebuild, "web-01", &definition)).await;
    let mut after = devices_in(&world.definition("web-01").await);
    let mut before = devices_in(&definition);
    after.sort();
    before.sort();
    assert_eq!(after, before);
}
