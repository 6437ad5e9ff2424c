//! Starts that libvirt's hook refuses: nothing is booked, nothing is made, and the reason says what to do.

use mdevirt::host::Hypervisor;
use mdevirt::host::sim::{Call, Change, FailKind, FailRule, ForeignMdev};
use mdevirt::model::{FaultKind, OpKind, SagaState};
use mdevirt::service::api::{Operate, UseCases};

use crate::bench::{ONE, TWO, device, prepare, vm, xml};
use crate::world::World;

#[tokio::test]
async fn a_clone_does_not_get_its_models_device() {
    let world = World::new("two-m60").await;
    world.sim.define(&xml(1, Some(ONE), &[device(1)])).await.unwrap();
    world.virsh_start(1).await;
    world.until_states(1, &["in-use"]).await;
    for flavor in [Some(ONE), None] {
        let fault = prepare(&world, 2, &xml(2, flavor, &[device(1)])).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::DeviceInUse);
        assert!(fault.message.contains("\"vm-2\"") && fault.message.contains("\"vm-1\""), "{fault}");
    }
    assert_eq!(world.active().await, [device(1)]);
    assert!(world.service().store.books().instance(vm(2)).is_none());
}

#[tokio::test]
async fn no_room_and_no_trait_are_said_with_their_reasons() {
    let world = World::new("two-m60").await;
    let before = world.scan().await;
    for (flavor, kind) in [
        ("resources:VGPU=1,trait:CUSTOM_NOBODY_HAS=required", FaultKind::TraitUnmapped),
        ("resources:CUSTOM_OTHER=1", FaultKind::TypeUnavailable),
        ("resources:VGPU=one", FaultKind::InvalidRequest),
    ] {
        let fault = prepare(&world, 1, &xml(1, Some(flavor), &[device(1)])).await.unwrap_err();
        assert_eq!(fault.kind, kind, "{fault}");
    }
    for (flavor, devices) in [(TWO, 1), (ONE, 2)] {
        let devices: Vec<_> = (1..=devices).map(device).collect();
        let fault = prepare(&world, 1, &xml(1, Some(flavor), &devices)).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::InvalidDomainXml);
        assert!(fault.message.contains("mdevirtctl domain request"), "{fault}");
    }
    world.assert_untouched(&before).await;
}

#[tokio::test]
async fn a_device_that_cannot_be_made_leaves_nothing() {
    let world = World::new("two-m60").await;
    let before = world.scan().await;
    let rule = FailRule {
        call: Call::CreateInKernel,
        parent: None,
        instance: None,
        nth: 2,
        times: 1,
        kind: FailKind::Refused,
    };
    world.sim.faults().fail(rule);
    let both = xml(1, Some(TWO), &[device(1), device(2)]);
    let fault = prepare(&world, 1, &both).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::HostRefused);
    world.quiet().await;
    world.assert_untouched(&before).await;
    prepare(&world, 1, &both).await.unwrap();
}

#[tokio::test]
async fn devices_of_somebody_else_are_his_affair() {
    let world = World::new("two-m60").await;
    let parent = world.scan().await.parents[0].clone();
    let foreign =
        ForeignMdev { uuid: device(1), parent: parent.addr.clone(), type_id: parent.types[0].id.clone() };
    world.sim.change(Change::ForeignMdev(foreign)).await.unwrap();
    let before = world.scan().await;
    for flavor in [Some(ONE), None] {
        assert_eq!(prepare(&world, 1, &xml(1, flavor, &[device(1)])).await.unwrap(), "");
    }
    assert_eq!(
        prepare(&world, 1, &xml(1, None, &[device(7)])).await.unwrap(),
        "",
        "libvirt says what it lacks"
    );
    world.assert_untouched(&before).await;
}

#[tokio::test]
async fn a_guest_that_is_on_its_way_does_not_run_in_two_places() {
    let world = World::new("two-m60").await;
    let spawned = world.spawn("web-01", ONE).await;
    let begin = Operate::plain(OpKind::MigrateBegin, "web-01", None);
    world.done(world.service().operate(begin).await).await;
    let xml = world.sim.definition(spawned.instance).await.unwrap().unwrap();
    let fault = prepare(&world, 0, &xml).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::InstanceBusy);
    assert!(fault.message.contains("revert"), "{fault}");
    let revert = Operate::plain(OpKind::MigrateRevert, "web-01", None);
    world.done(world.service().operate(revert).await).await;
    prepare(&world, 0, &xml).await.unwrap();
}

/// It was sent while it ran, and not everything of it could be given back here.
#[tokio::test]
async fn a_guest_that_has_gone_does_not_run_here_again() {
    let world = World::new("two-m60").await;
    let spawned = world.spawn("web-01", ONE).await;
    let xml = world.sim.definition(spawned.instance).await.unwrap().unwrap();
    let claims: Vec<_> = world.service().store.books().claims_of(spawned.instance).cloned().collect();
    world.make_beside(&claims).await;
    let with = world.send_beside(&claims);
    let refused = FailKind::Refused;
    let rule = FailRule { call: Call::Remove, parent: None, instance: None, nth: 1, times: 0, kind: refused };
    world.sim.faults().fail(rule);
    let commit = Operate { with, ..Operate::plain(OpKind::LiveCommit, "web-01", None) };
    let job = world.ended(world.service().operate(commit).await.unwrap().job).await;
    assert_eq!(job.state, SagaState::Stuck, "{:?}", job.result);
    assert_eq!(prepare(&world, 0, &xml).await.unwrap_err().kind, FaultKind::InstanceBusy);
}

#[tokio::test]
async fn a_suspended_guest_does_not_run_without_its_devices() {
    let world = World::new("two-m60").await;
    let spawned = world.spawn("web-01", ONE).await;
    let suspend = Operate::plain(OpKind::Suspend, "web-01", None);
    world.done(world.service().operate(suspend).await).await;
    let bare = xml(0, None, &[]).replace(&vm(0).to_string(), &spawned.instance.to_string());
    let fault = prepare(&world, 0, &bare).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::InvalidDomainXml);
    assert!(fault.message.contains("mdevirtctl resume web-01"), "{fault}");
    // Our own resume starts it just so, and gives it the devices afterwards.
    let resume = Operate::plain(OpKind::Resume, "web-01", None);
    world.done(world.service().operate(resume).await).await;
}

#[tokio::test]
async fn another_type_under_the_same_uuid_is_no_device_of_the_instance() {
    let world = World::new("two-m60").await;
    let spawned = world.spawn("web-01", ONE).await;
    let claim = world.service().store.books().claims_of(spawned.instance).next().unwrap().clone();
    world.sim.stop(spawned.instance).await.unwrap();
    mdevirt::host::NodeDevices::remove(&*world.sim, claim.uuid, &claim.parent).await.unwrap();
    let parent = world.scan().await.parent(&claim.parent).unwrap().clone();
    let other = parent.types.iter().find(|t| t.id != claim.mdev_type && t.available_instances > 0).unwrap();
    let foreign = ForeignMdev { uuid: claim.uuid, parent: claim.parent.clone(), type_id: other.id.clone() };
    world.sim.change(Change::ForeignMdev(foreign)).await.unwrap();
    let xml = world.sim.definition(spawned.instance).await.unwrap().unwrap();
    let fault = prepare(&world, 0, &xml).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::HostRefused);
    assert!(fault.message.contains(other.id.as_str()) && fault.message.contains(&claim.type_name), "{fault}");
}
