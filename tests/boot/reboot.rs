//! The host boots again.

use std::time::Duration;

use mdevirt::host::NodeDevices;
use mdevirt::host::sim::{Call, Change, FailKind, FailRule};
use mdevirt::model::{Claim, ClaimState, DomainOwner, FaultKind, MdevUuid, ParentAddr};
use mdevirt::service::api::{ClaimRequest, UseCases};

use crate::host::{DEADLINE, Machine, SIX};

const ONE: &str = "resources:VGPU=1";
const A2: &str = "0000:08:00.0";

fn addr(text: &str) -> ParentAddr {
    text.parse().unwrap()
}

fn gvt_gone() -> Change {
    Change::Withdraw(["i915-GVTg_V5_8".parse().unwrap()].into())
}

/// mdevctl's definitions are on a disk of the boot that is over, so that nothing comes back by itself.
async fn undefine(sim: &mdevirt::host::sim::SimHost, claims: &[Claim]) {
    for claim in claims {
        sim.remove(claim.uuid, &claim.parent).await.unwrap();
    }
}

#[test]
fn five_of_six_come_back_and_wait_for_nothing() {
    let mut machine = Machine::with("mixed", &SIX);
    let before: Vec<Claim> = SIX.iter().map(|(name, _)| machine.claim(name)).collect();
    machine.restart(async |sim| {
        sim.change(Change::Reboot).await.unwrap();
        sim.change(Change::ParentGone(addr(A2))).await.unwrap();
        sim.change(gvt_gone()).await.unwrap();
        undefine(sim, &before).await;
    });
    machine.on(async |world| world.service().first_look().await);
    machine.settle();
    let of = |name: &str| &before[SIX.iter().position(|(n, _)| *n == name).unwrap()];
    assert_eq!(
        machine.states(&SIX),
        ["gold-1 ready", "gold-2 ready", "silver-1 missing", "silver-2 missing", "t4 ready", "gvt lost"]
    );
    assert_eq!(machine.progress(), "3 of 6 restored, 1 lost");
    assert!(
        machine
            .finding(of("silver-1").uuid)
            .ends_with(&format!("parent {} is not there yet", of("silver-1").parent))
    );
    let lost = machine.finding(of("gvt").uuid);
    assert!(
        lost.contains("\"gvt\" is lost") && lost.contains("does not offer i915-GVTg_V5_8 any more"),
        "{lost}"
    );

    machine.on(async |_| tokio::time::sleep(Duration::from_secs(20)).await);
    machine.change(Change::ParentBack(addr(A2)));
    assert_eq!(
        machine.states(&SIX),
        ["gold-1 ready", "gold-2 ready", "silver-1 ready", "silver-2 ready", "t4 ready", "gvt lost"]
    );
    assert_eq!(machine.progress(), "5 of 6 restored, 1 lost");
    for claim in before.iter().filter(|c| c.uuid != of("gvt").uuid) {
        assert!(machine.is_there(claim), "{claim:?}");
    }
    machine.change(Change::Withdraw([].into()));
    assert_eq!((machine.state("gvt"), machine.is_there(of("gvt"))), (ClaimState::Ready, true));
}

#[test]
fn a_boot_in_which_nothing_was_lost_changes_nothing_of_the_devices() {
    let mut machine = Machine::with("two-m60", &[("web-01", ONE)]);
    machine.restart(async |_| ());
    machine.settle();
    assert_eq!((machine.state("web-01"), machine.progress()), (ClaimState::InUse, String::new()));
    assert!(machine.runs("web-01"));
}

#[test]
fn definitions_that_come_back_by_themselves_are_taken_as_they_are() {
    let mut machine = Machine::with("mixed", &SIX[2..4]);
    let before = machine.claim("silver-1");
    machine.reboot(&[Change::ParentGone(addr(A2))]);
    assert_eq!(machine.state("silver-1"), ClaimState::Missing);
    machine.change(Change::ParentBack(addr(A2)));
    assert_eq!((machine.state("silver-1"), machine.is_there(&before)), (ClaimState::Ready, true));
}

#[test]
fn a_parent_that_does_not_come_in_time_is_given_up_and_made_when_it_comes() {
    let mut machine = Machine::with("mixed", &SIX[2..3]);
    let before = machine.claim("silver-1");
    machine.restart(async |sim| {
        sim.change(Change::Reboot).await.unwrap();
        sim.change(Change::ParentGone(addr(A2))).await.unwrap();
        undefine(sim, std::slice::from_ref(&before)).await;
    });
    machine.settle();
    machine.on(async |_| tokio::time::sleep(DEADLINE / 2).await);
    assert_eq!(machine.state("silver-1"), ClaimState::Missing);
    machine.on(async |_| tokio::time::sleep(DEADLINE / 2).await);
    machine.settle();
    assert_eq!(machine.state("silver-1"), ClaimState::Lost);
    assert!(machine.finding(before.uuid).contains("did not come in time"));
    machine.change(Change::ParentBack(addr(A2)));
    assert_eq!((machine.state("silver-1"), machine.is_there(&before)), (ClaimState::Ready, true));
}

#[test]
fn a_guest_that_was_off_is_parked_again() {
    let mut machine = Machine::with("two-m60", &[("web-01", ONE)]);
    machine.on(async |world| world.done(world.service().stop("web-01", None).await).await);
    machine.reboot(&[]);
    assert_eq!(machine.state("web-01"), ClaimState::Parked);
    assert!(machine.is_there(&machine.claim("web-01")));
}

#[test]
fn guests_that_libvirt_was_to_start_are_started_once_their_devices_are_there() {
    let (web, lab, off) = ("silver-1", "gold-1", "gold-2");
    let names = [SIX[2], SIX[0], SIX[1]];
    let mut machine = Machine::with("mixed", &names);
    let before: Vec<Claim> = names.iter().map(|(name, _)| machine.claim(name)).collect();
    machine.on(async |world| world.done(world.service().stop(off, None).await).await);
    machine.change(Change::Autostart(machine.instance(web).uuid));
    machine.change(Change::Autostart(machine.instance(off).uuid));
    machine.restart(async |sim| {
        sim.change(Change::Reboot).await.unwrap();
        sim.change(Change::ParentGone(addr(A2))).await.unwrap();
        undefine(sim, &before).await;
    });
    machine.settle();
    assert_eq!(names.map(|(name, _)| machine.runs(name)), [false; 3]);
    // Not before the device is there, and by the daemon of that moment.
    machine.restart(async |_| ());
    machine.settle();
    machine.change(Change::ParentBack(addr(A2)));
    assert_eq!((machine.runs(web), machine.state(web)), (true, ClaimState::InUse));
    assert_eq!((machine.runs(lab), machine.state(lab)), (false, ClaimState::Ready));
    assert_eq!((machine.runs(off), machine.state(off)), (false, ClaimState::Parked));
    // What an operator stops afterwards stays off.
    machine.on(async |world| world.done(world.service().stop(web, None).await).await);
    machine.change(Change::ParentBack(addr(A2)));
    assert!(!machine.runs(web));
}

#[test]
fn one_device_that_cannot_be_made_stops_no_other() {
    let two = "resources1:VGPU=1,resources2:VGPU=1";
    let mut machine = Machine::with("two-m60", &[("web-01", two), ("web-02", ONE)]);
    let first = machine.claims("web-01").remove(0);
    let rule = FailRule {
        call: Call::Create,
        parent: Some(first.parent.clone()),
        instance: None,
        nth: 1,
        times: 0,
        kind: FailKind::Refused,
    };
    let others: Vec<Claim> = [machine.claims("web-01"), machine.claims("web-02")].concat();
    machine.restart(async |sim| {
        sim.change(Change::Reboot).await.unwrap();
        undefine(sim, &others).await;
        sim.faults().fail(rule);
    });
    machine.settle();
    for claim in &others {
        let stuck = claim.parent == first.parent;
        assert_eq!(machine.is_there(claim), !stuck, "{claim:?}");
    }
    assert_eq!(machine.state("web-01"), ClaimState::Lost);
    let records = machine.on(async |world| world.service().inventory().await.unwrap());
    let record = records.iter().find(|r| r.parent == first.parent).unwrap();
    assert_eq!((record.total, record.reserved), (4, 4), "{record:?}");
    assert!(machine.finding(first.uuid).contains("fault script"), "{}", machine.finding(first.uuid));
    // It is tried again by hand, whatever was tried before.
    machine.on(async |world| {
        world.sim.heal();
        let restore = mdevirt::service::api::Operate::plain(mdevirt::model::OpKind::Restore, "web-01", None);
        world.done(world.service().operate(restore).await).await
    });
    assert!(machine.claims("web-01").iter().all(|c| c.state == ClaimState::Ready));
}

#[test]
fn a_foreign_device_under_our_uuid_is_left_alone() {
    let mut machine = Machine::with("two-m60", &[("web-01", ONE)]);
    let ours = machine.claim("web-01");
    let other = if ours.parent == addr("0000:84:00.0") { "0000:85:00.0" } else { "0000:84:00.0" };
    let foreign = mdevirt::host::sim::ForeignMdev {
        uuid: ours.uuid,
        parent: addr(other),
        type_id: "nvidia-18".parse().unwrap(),
    };
    machine.restart(async |sim| {
        sim.change(Change::Reboot).await.unwrap();
        undefine(sim, std::slice::from_ref(&ours)).await;
        sim.change(Change::ForeignMdev(foreign)).await.unwrap();
    });
    machine.settle();
    assert_eq!(machine.state("web-01"), ClaimState::Lost);
    assert!(machine.finding(ours.uuid).contains(&format!("is on {other}")), "{}", machine.finding(ours.uuid));
    let scan = machine.on(async |world| world.scan().await);
    let there: Vec<_> = scan.mdevs_with(ours.uuid).map(|m| (m.parent.to_string(), m.active)).collect();
    assert_eq!(there, [(other.to_owned(), true)]);
}

#[test]
fn libvirt_that_comes_late_holds_nothing_up_and_loses_nothing() {
    let mut machine = Machine::with("two-m60", &[("web-01", ONE)]);
    machine.change(Change::Autostart(machine.instance("web-01").uuid));
    let away = FailRule {
        call: Call::Scan,
        parent: None,
        instance: None,
        nth: 1,
        times: 0,
        kind: FailKind::Unreachable,
    };
    machine.restart(async |sim| {
        sim.change(Change::Reboot).await.unwrap();
        sim.faults().fail(away);
    });
    machine.on(async |world| world.service().first_look().await);
    machine.settle();
    // Domains can be read, but the boot is not in the books yet: nothing is taken for stopped.
    assert_eq!(machine.state("web-01"), ClaimState::InUse);
    machine.on(async |world| world.sim.heal());
    machine.settle();
    assert_eq!((machine.state("web-01"), machine.runs("web-01")), (ClaimState::InUse, true));
}

#[test]
fn devices_of_an_orchestrators_domain_come_back_too() {
    let mut machine = Machine::with("two-m60", &[]);
    let instance = "1fc01460-67d7-4303-a5ea-69a57b994f50".parse().unwrap();
    let request = ClaimRequest { instance, name: "theirs".into(), flavor: ONE.into(), operation_id: None };
    machine.on(async |world| world.done(world.service().claim(request).await).await);
    assert_eq!(machine.instance("theirs").owner, DomainOwner::Caller);
    let before = machine.claim("theirs");
    machine.reboot(&[]);
    assert_eq!((machine.state("theirs"), machine.is_there(&before)), (ClaimState::Ready, true));
}

#[test]
fn parents_that_lack_a_device_keep_their_record_and_give_out_nothing() {
    let mut machine = Machine::with("mixed", &[SIX[2], SIX[5]]);
    let (silver, gvt) = (machine.claim("silver-1"), machine.claim("gvt"));
    machine.reboot(&[Change::ParentGone(addr(A2)), gvt_gone()]);
    let records = machine.on(async |world| world.service().inventory().await.unwrap());
    for claim in [&silver, &gvt] {
        let of: Vec<_> = records.iter().filter(|r| r.parent == claim.parent).collect();
        let [record] = &of[..] else { panic!("{of:?}") };
        assert_eq!((record.total, record.reserved, record.used), (1, 1, 1), "{record:?}");
        assert_eq!(record.resource_class, claim.resource_class);
    }
    machine.change(Change::ParentBack(addr(A2)));
    let records = machine.on(async |world| world.service().inventory().await.unwrap());
    let record = records.iter().find(|r| r.parent == silver.parent).unwrap();
    assert_eq!((record.total - record.reserved, record.used), (1, 1), "{record:?}");
}

#[test]
fn an_operation_meets_a_restore() {
    let mut machine = Machine::with("two-m60", &[("web-01", ONE)]);
    machine.restart(async |sim| sim.change(Change::Reboot).await.unwrap());
    machine.world().points.arm("restore.make_device.0.before_effect", mdevirt::saga::Action::Pause, Some(1));
    let refused = machine.on(async |world| {
        world.points.reached("restore.make_device.0.before_effect").await;
        let refused = world.service().start("web-01", None).await.unwrap_err();
        world.points.release("restore.make_device.0.before_effect");
        refused
    });
    assert_eq!(refused.kind, FaultKind::RestorePending);
    machine.settle();
    machine.on(async |world| world.done(world.service().start("web-01", None).await).await);
    assert_eq!((machine.state("web-01"), machine.runs("web-01")), (ClaimState::InUse, true));
    assert_ne!(machine.claim("web-01").uuid, MdevUuid(uuid::Uuid::nil()));
}
