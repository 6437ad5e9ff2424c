//! Live migration between two hosts: the documents and libvirt's own connection are all that passes.

use std::collections::BTreeMap;
use std::time::Duration;

use mdevirt::host::sim::{Call, Change, FailKind, FailRule};
use mdevirt::model::{ClaimRole, ClaimState, DisplayWish, FaultKind, MdevUuid, OpKind, Version, Versions};
use mdevirt::saga::Action;
use mdevirt::service::api::{LiveOptions, Operate, OperateWith, PrepareRequest, UseCases};

use crate::bench::{ONE, TWO, arriving, devices_in, odd_xml, with};
use crate::world::picture::Picture;
use crate::world::{World, scenario};

/// Two hosts of the same cards, whose drivers number the types differently.
async fn two_hosts() -> (World, World) {
    let host = |name: &'static str| async move {
        World::named(name, &scenario("two-m60.xml"), &scenario("two-m60.toml")).await
    };
    let (source, target) = (host("gpu-01").await, host("gpu-02").await);
    let turned = [("nvidia-18", "nvidia-21"), ("nvidia-21", "nvidia-18")];
    let map: BTreeMap<_, _> = turned.map(|(a, b)| (a.parse().unwrap(), b.parse().unwrap())).into();
    target.sim.change(Change::Renumber(map)).await.unwrap();
    (source, target)
}

async fn picture(world: &World) -> Picture {
    Picture::of(&world.service().store, world.sim.as_ref(), world.sim.as_ref()).await
}

async fn document(source: &World) -> String {
    source.service().live_check_source("web-01").await.unwrap()
}

fn refusing(call: Call) -> FailRule {
    FailRule { call, parent: None, instance: None, nth: 1, times: 1, kind: FailKind::Refused }
}

fn coming(document: &str) -> PrepareRequest {
    PrepareRequest { live: true, ..arriving(document) }
}

/// The target's side; what the source is told.
async fn prepared(source: &World, target: &World) -> Operate {
    let job = target.done(target.service().migrate_prepare(coming(&document(source).await)).await).await;
    sending(target, job.result.unwrap()["document"].to_string())
}

fn sending(target: &World, document: String) -> Operate {
    let live =
        LiveOptions { document: Some(document), uri: Some(target.sim.address()), ..LiveOptions::default() };
    with(OpKind::LiveCommit, "web-01", OperateWith { live, ..OperateWith::default() })
}

#[tokio::test]
async fn a_guest_moves_while_it_runs() {
    let (source, target) = two_hosts().await;
    let nothing = source.scan().await;
    source.spawn_xml(&odd_xml("web-01", 1), TWO, DisplayWish::Off).await;
    let (held, definition) = (source.claims("web-01").await, source.definition("web-01").await);

    let check = target.service().live_check_target(&document(&source).await).await.unwrap();
    assert_eq!((check.host.as_str(), check.devices.len()), ("gpu-02", 2));
    assert!(
        check.devices.iter().all(|d| d.mdev_type.as_str() == "nvidia-21"),
        "the same type under another id"
    );
    assert!(target.made().await.is_empty(), "a check does nothing");

    let commit = prepared(&source, &target).await;
    assert!(
        target.booked("web-01").iter().all(|c| (c.role, c.state) == (ClaimRole::Incoming, ClaimState::Ready))
    );
    assert!(source.runs("web-01").await);
    source.operate(commit).await;
    source.assert_untouched(&nothing).await;
    target.go(OpKind::LiveCommit, "web-01").await;
    assert!(
        target.booked("web-01").iter().all(|c| (c.role, c.state) == (ClaimRole::Primary, ClaimState::InUse))
    );
    assert!(target.runs("web-01").await);

    let moved = target.definition("web-01").await;
    let arrived = target.claims("web-01").await;
    let expected = held
        .iter()
        .zip(&arrived)
        .fold(definition, |xml, (there, here)| xml.replace(&there.uuid.to_string(), &here.uuid.to_string()));
    assert_eq!(moved, expected, "only the devices are other ones");
    assert!(held.iter().all(|h| arrived.iter().all(|a| a.uuid != h.uuid)));
}

#[tokio::test]
async fn what_does_not_fit_is_refused_before_anything_is_touched() {
    let versions = |qemu| Versions { libvirt: Version(11, 3, 0), qemu, kernel: Some(Version(6, 12, 0)) };
    let old = || Change::Versions(versions(Version(7, 2, 0)));
    let driver = |text: &str| Change::Driver(text.to_owned());
    let withdrawn = || Change::Withdraw(["nvidia-18".parse().unwrap()].into());
    for (here, there, kind, words) in [
        (Some(old()), None, FaultKind::NotSupported, "needs QEMU 8.1.0 or later, gpu-01 has 7.2.0"),
        (None, Some(old()), FaultKind::NotSupported, "needs QEMU 8.1.0 or later, gpu-02 has 7.2.0"),
        (
            Some(driver("535.161.05")),
            Some(driver("550.54.16")),
            FaultKind::Incompatible,
            "gpu-01 is 535.161.05, that of gpu-02 is 550.54.16",
        ),
        (None, Some(withdrawn()), FaultKind::Incompatible, "GRID M60-2Q"),
    ] {
        let (source, target) = two_hosts().await;
        target.sim.change(Change::Renumber(BTreeMap::new())).await.unwrap();
        source.spawn("web-01", ONE).await;
        for (world, change) in [(&source, here), (&target, there)] {
            if let Some(change) = change {
                world.sim.change(change).await.unwrap();
            }
        }
        let (before, nothing) = (picture(&source).await, target.scan().await);
        let fault = match source.service().live_check_source("web-01").await {
            Err(fault) => fault,
            Ok(document) => {
                let prepared = target.service().migrate_prepare(coming(&document)).await.unwrap_err();
                let checked = target.service().live_check_target(&document).await.unwrap_err();
                assert_eq!((prepared.kind, &prepared.message), (checked.kind, &checked.message));
                checked
            }
        };
        assert_eq!(fault.kind, kind, "{fault}");
        assert!(fault.message.contains(words), "{fault}");
        assert_eq!(picture(&source).await, before);
        target.assert_untouched(&nothing).await;
    }
}

#[tokio::test]
async fn only_a_guest_that_runs_with_all_its_devices_goes() {
    let (source, target) = two_hosts().await;
    source.spawn("web-01", ONE).await;
    let document = document(&source).await;
    source.go(OpKind::Stop, "web-01").await;
    let fault = source.service().live_check_source("web-01").await.unwrap_err();
    assert!(fault.kind == FaultKind::InvalidRequest && fault.message.contains("without --live"), "{fault}");

    // A document of either kind is none of the other.
    let fault = target.service().migrate_prepare(arriving(&document)).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::InvalidRequest);
    source.go(OpKind::MigrateBegin, "web-01").await;
    let cold = source.service().export_instance("web-01").await.unwrap();
    let fault = target.service().migrate_prepare(coming(&cold)).await.unwrap_err();
    assert!(fault.message.contains("not made for a migration while it runs"), "{fault}");
}

/// The source is told what each of its devices becomes, by a text that somebody carried.
#[tokio::test]
async fn a_document_that_does_not_name_each_device_once_sends_nothing() {
    let (source, target) = two_hosts().await;
    source.spawn("web-01", TWO).await;
    let [a, b] = &source.claims("web-01").await[..] else { panic!("two devices") };
    let other = |n: u128| MdevUuid(uuid::Uuid::from_u128(n)).to_string();
    let pair = |from: &MdevUuid, to: String| serde_json::json!({ "source": from, "target": to });
    let before = picture(&source).await;
    for pairs in [
        vec![pair(&a.uuid, other(1))],
        vec![pair(&a.uuid, other(1)), pair(&b.uuid, other(1))],
        vec![pair(&a.uuid, other(1)), pair(&a.uuid, other(2))],
        vec![
            pair(&a.uuid, other(1)),
            pair(&b.uuid, other(2)),
            pair(&MdevUuid(uuid::Uuid::from_u128(9)), other(3)),
        ],
    ] {
        let document = serde_json::json!({ "host": "gpu-02", "pairs": pairs }).to_string();
        source.refused(sending(&target, document), FaultKind::InvalidRequest).await;
    }
    source.refused(sending(&target, "{}".to_owned()), FaultKind::InvalidRequest).await;
    source.refused(Operate::plain(OpKind::LiveCommit, "web-01", None), FaultKind::InvalidRequest).await;
    assert_eq!(picture(&source).await, before);
}

#[tokio::test]
async fn a_guest_that_cannot_be_sent_stays_and_the_target_gives_everything_back() {
    let (source, target) = two_hosts().await;
    source.spawn("web-01", ONE).await;
    let (before, nothing) = (picture(&source).await, target.scan().await);
    let commit = prepared(&source, &target).await;
    source.sim.faults().fail(refusing(Call::Migrate));
    let why = source.fails(commit, FaultKind::HostRefused).await;
    assert!(why.contains("migrate domain \"web-01\" to gpu-02"), "{why}");
    assert_eq!(picture(&source).await, before);
    target.refused(Operate::plain(OpKind::LiveCommit, "web-01", None), FaultKind::InvalidRequest).await;
    target.go(OpKind::LiveRollback, "web-01").await;
    target.assert_untouched(&nothing).await;
    source.refused(Operate::plain(OpKind::LiveRollback, "web-01", None), FaultKind::InvalidRequest).await;
}

/// libvirt's answer is lost after the guest has gone: it is not called back, nor sent twice.
#[tokio::test]
async fn a_guest_that_has_gone_is_gone_whatever_the_answer() {
    for kind in [FailKind::AnswerLost, FailKind::OutcomeUnknown, FailKind::Unreachable] {
        let (source, target) = two_hosts().await;
        let nothing = source.scan().await;
        source.spawn("web-01", ONE).await;
        let commit = prepared(&source, &target).await;
        source.sim.faults().fail(FailRule { kind, ..refusing(Call::Migrate) });
        source.operate(commit).await;
        source.assert_untouched(&nothing).await;
        target.go(OpKind::LiveCommit, "web-01").await;
        assert!(target.runs("web-01").await);
    }
}

/// A guest that has come is never given up, whoever asks for it.
#[tokio::test]
async fn what_has_come_is_not_rolled_back() {
    let (source, target) = two_hosts().await;
    source.spawn("web-01", ONE).await;
    let commit = prepared(&source, &target).await;
    source.operate(commit).await;
    let accepted =
        target.service().operate(Operate::plain(OpKind::LiveRollback, "web-01", None)).await.unwrap();
    let job = target.ended(accepted.job).await;
    assert_eq!(job.result.unwrap()["kind"], "InstanceBusy");
    target.go(OpKind::LiveCommit, "web-01").await;
    assert!(target.runs("web-01").await);
}

/// Nobody tells the target: it finds out.
#[tokio::test]
async fn the_target_takes_a_guest_by_itself() {
    let (source, _) = two_hosts().await;
    let target = World::acting("gpu-02", &scenario("two-m60.xml"), &scenario("two-m60.toml")).await;
    source.spawn("web-01", ONE).await;
    let commit = prepared(&source, &target).await;
    source.operate(commit).await;
    target.until_at_home("web-01").await;
    assert!(
        target.booked("web-01").iter().all(|c| (c.role, c.state) == (ClaimRole::Primary, ClaimState::InUse))
    );
}

/// Nor does anybody tell it that the guest will not come.
#[tokio::test]
async fn devices_for_a_guest_that_does_not_come_are_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("mdevirt.toml");
    let text = std::fs::read_to_string(scenario("two-m60.toml")).unwrap();
    std::fs::write(&config, format!("{text}\n[policy]\nlive_deadline_sec = 1\n")).unwrap();
    let (source, _) = two_hosts().await;
    let target = World::acting("gpu-02", &scenario("two-m60.xml"), &config).await;
    let nothing = target.scan().await;
    source.spawn("web-01", ONE).await;
    let _ = prepared(&source, &target).await;
    target.until_at_home("web-01").await;
    target.assert_untouched(&nothing).await;
    assert!(source.runs("web-01").await);
}

/// A guest that was given up and is booked again has its time anew.
#[tokio::test(start_paused = true)]
async fn who_comes_again_is_waited_for_anew() {
    let (source, _) = two_hosts().await;
    let target = World::acting("gpu-02", &scenario("two-m60.xml"), &scenario("two-m60.toml")).await;
    let nothing = target.scan().await;
    source.spawn("web-01", ONE).await;
    let _ = prepared(&source, &target).await;
    // Of 300 seconds that the default gives.
    tokio::time::sleep(Duration::from_secs(200)).await;
    target.go(OpKind::LiveRollback, "web-01").await;
    let _ = prepared(&source, &target).await;
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(target.booked("web-01").len(), 1);
    tokio::time::sleep(Duration::from_secs(101)).await;
    target.until_at_home("web-01").await;
    target.assert_untouched(&nothing).await;
}

/// A device that cannot be taken away is not tried again all the time.
#[tokio::test(start_paused = true)]
async fn a_rollback_that_fails_is_tried_again_later() {
    let (source, _) = two_hosts().await;
    let target = World::acting("gpu-02", &scenario("two-m60.xml"), &scenario("two-m60.toml")).await;
    let nothing = target.scan().await;
    source.spawn("web-01", ONE).await;
    let _ = prepared(&source, &target).await;
    target.sim.faults().fail(FailRule { times: 0, ..refusing(Call::Remove) });
    let rollbacks = async || {
        let jobs = target.service().jobs().await.unwrap();
        jobs.iter().filter(|job| job.op == OpKind::LiveRollback).count()
    };
    tokio::time::sleep(Duration::from_secs(400)).await;
    assert_eq!((rollbacks().await, target.booked("web-01").len()), (1, 1));
    target.sim.heal();
    tokio::time::sleep(Duration::from_secs(60)).await;
    target.until_at_home("web-01").await;
    target.assert_untouched(&nothing).await;
    assert_eq!(rollbacks().await, 2);
}

/// While a guest is sent its instance is on its way; a second command finds that.
#[tokio::test]
async fn one_sending_at_a_time() {
    let (source, target) = two_hosts().await;
    source.spawn("web-01", ONE).await;
    let commit = prepared(&source, &target).await;
    source.points.arm("live-commit.move_guest.before_effect", Action::Pause, None);
    let job = source.service().operate(commit.clone()).await.unwrap().job;
    source.points.reached("live-commit.move_guest.before_effect").await;
    let [view] = &source.service().instances().await.unwrap()[..] else { panic!("one instance") };
    assert_eq!((view.moving.as_deref(), view.peer.as_deref()), (Some("live-out prepared"), Some("gpu-02")));
    source.refused(commit, FaultKind::InstanceBusy).await;
    // To break it off is answered with the job that is broken off.
    let again = source.service().operate(Operate::plain(OpKind::LiveRollback, "web-01", None)).await.unwrap();
    assert_eq!(again.job, job);
    source.points.release("live-commit.move_guest.before_effect");
    source.ended(job).await;
    assert!(target.runs("web-01").await && devices_in(&target.definition("web-01").await).len() == 1);
}
