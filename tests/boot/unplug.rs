//! Devices and cards that go while the daemon runs.

use mdevirt::host::sim::Change;
use mdevirt::model::{ClaimState, ParentAddr};
use mdevirt::service::api::UseCases;

use crate::host::Machine;

const ONE: &str = "resources:VGPU=1";

#[test]
fn a_device_that_falls_off_the_bus_is_made_again() {
    let machine = Machine::with("two-m60", &[("web-01", ONE)]);
    machine.on(async |world| world.done(world.service().stop("web-01", None).await).await);
    let before = machine.claim("web-01");
    machine.change(Change::MdevLost(before.uuid));
    assert_eq!((machine.state("web-01"), machine.is_there(&before)), (ClaimState::Parked, true));
    assert_eq!(machine.progress(), "1 of 1 restored");
}

#[test]
fn a_card_that_is_unplugged_and_plugged_in_again() {
    let machine = Machine::with("two-m60", &[("web-01", ONE), ("web-02", ONE)]);
    let (one, two) = (machine.claim("web-01"), machine.claim("web-02"));
    assert_ne!(one.parent, two.parent);
    machine.change(Change::ParentGone(one.parent.clone()));
    assert_eq!(machine.state("web-01"), ClaimState::Missing);
    assert_eq!((machine.state("web-02"), machine.is_there(&two)), (ClaimState::InUse, true));
    machine.change(Change::ParentBack(one.parent.clone()));
    assert!(machine.is_there(&one));
    // The guest names it and ran all the time.
    assert_eq!(machine.state("web-01"), ClaimState::InUse);
}

#[test]
fn an_instance_without_its_device_can_be_started_and_destroyed() {
    let machine = Machine::with("two-m60", &[("web-01", ONE)]);
    machine.on(async |world| world.done(world.service().stop("web-01", None).await).await);
    let parent: ParentAddr = machine.claim("web-01").parent;
    machine.change(Change::ParentGone(parent));
    let failed = machine.on(async |world| {
        let accepted = world.service().start("web-01", None).await.unwrap();
        world.ended(accepted.job).await
    });
    assert!(failed.result.unwrap().to_string().contains("the parent is gone"));
    assert_eq!(machine.state("web-01"), ClaimState::Missing);
    machine.on(async |world| world.done(world.service().destroy("web-01", None).await).await);
    assert_eq!(machine.progress(), "");
}
