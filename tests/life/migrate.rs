//! Cold migration between two hosts that share nothing: the document is all that passes.

use std::collections::BTreeMap;

use mdevirt::host::sim::Change;
use mdevirt::model::{ClaimRole, DisplayWish, FaultKind, OpKind};
use mdevirt::service::api::{Operate, PrepareRequest, UseCases};

use crate::bench::{ONE, Site, TWO, arriving, begin, devices_in, odd_xml, with, without_devices};
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

async fn prepare(target: &World, document: &str) -> mdevirt::model::Job {
    target.done(target.service().migrate_prepare(arriving(document)).await).await
}

#[tokio::test]
async fn a_vm_moves_to_the_other_host_and_stays() {
    for running in [true, false] {
        let (source, target) = two_hosts().await;
        let nothing = source.scan().await;
        let xml = odd_xml("web-01", 1);
        source.spawn_xml(&xml, TWO, DisplayWish::Off).await;
        if !running {
            source.go(OpKind::Stop, "web-01").await;
        }
        let (held, definition) = (source.claims("web-01").await, source.definition("web-01").await);

        let document = begin(&source, "web-01").await;
        assert!(!source.runs("web-01").await, "it is off while it is between two hosts");
        assert_eq!(source.made().await.len(), 2, "the source keeps its devices for it");
        assert!(source.booked("web-01").iter().all(|c| c.role == ClaimRole::Outgoing));

        let job = prepare(&target, &document).await;
        let pairs = job.result.unwrap()["document"].clone();
        assert_eq!(pairs["host"], "gpu-02");
        let arrived = target.claims("web-01").await;
        assert_eq!(pairs["pairs"].as_array().unwrap().len(), 2);
        assert_eq!(target.running(source.uuid("web-01")).await, None, "nothing is defined yet");
        let types = |claims: &[mdevirt::model::ClaimView]| {
            claims.iter().map(|c| c.mdev_type.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(types(&held), ["nvidia-18", "nvidia-18"]);
        assert_eq!(types(&arrived), ["nvidia-21", "nvidia-21"], "the same type under another id");
        assert!(arrived.iter().all(|a| held.iter().all(|h| h.uuid != a.uuid)));

        target.go(OpKind::MigrateFinish, "web-01").await;
        assert_eq!(target.runs("web-01").await, running);
        let moved = target.definition("web-01").await;
        assert_eq!(without_devices(&moved), xml);
        let mut expected = definition.clone();
        for pair in pairs["pairs"].as_array().unwrap() {
            expected = expected.replace(pair["source"].as_str().unwrap(), pair["target"].as_str().unwrap());
        }
        assert_eq!(moved, expected, "only the devices' UUIDs are others");

        target.go(OpKind::MigrateConfirm, "web-01").await;
        source.go(OpKind::MigrateConfirm, "web-01").await;
        source.assert_untouched(&nothing).await;
        assert_eq!(target.service().instances().await.unwrap()[0].moving, None);
        assert!(target.booked("web-01").iter().all(|c| c.role == ClaimRole::Primary));
        assert_eq!(target.service().instances().await.unwrap()[0].flavor.as_deref(), Some(TWO));
        target.go(OpKind::Destroy, "web-01").await;
    }
}

/// At any point, and in either order of the hosts.
#[tokio::test]
async fn a_revert_brings_everything_back() {
    for (finished, source_first) in [(false, false), (false, true), (true, false)] {
        let (source, target) = two_hosts().await;
        let nothing = target.scan().await;
        source.spawn("web-01", TWO).await;
        let (claims, definition) = (source.booked("web-01"), source.definition("web-01").await);
        let document = begin(&source, "web-01").await;
        prepare(&target, &document).await;
        if finished {
            target.go(OpKind::MigrateFinish, "web-01").await;
        }
        let sides = if source_first { [&source, &target] } else { [&target, &source] };
        for side in sides {
            side.go(OpKind::MigrateRevert, "web-01").await;
        }
        target.assert_untouched(&nothing).await;
        assert_eq!((source.booked("web-01"), source.definition("web-01").await), (claims, definition));
        assert!(source.runs("web-01").await);
        // And it can leave again, also with the document of the first time.
        let again = begin(&source, "web-01").await;
        prepare(&target, &again).await;
        target.go(OpKind::MigrateFinish, "web-01").await;
    }
}

#[tokio::test]
async fn a_revert_makes_a_lost_device_of_the_source_again() {
    let (source, _) = two_hosts().await;
    source.spawn("web-01", ONE).await;
    let before = source.booked("web-01");
    let held = source.claims("web-01").await;
    begin(&source, "web-01").await;
    source.lose(&held[0]).await;
    source.go(OpKind::MigrateRevert, "web-01").await;
    assert_eq!(source.booked("web-01"), before);
    assert!(source.runs("web-01").await);
}

#[tokio::test]
async fn a_vm_without_devices_moves_as_well() {
    let (source, target) = two_hosts().await;
    let (a, b) = (source.scan().await, target.scan().await);
    source.spawn("web-01", ONE).await;
    crate::bench::resize(&source, "web-01", "").await;
    source.go(OpKind::ResizeConfirm, "web-01").await;
    let document = begin(&source, "web-01").await;
    prepare(&target, &document).await;
    target.go(OpKind::MigrateFinish, "web-01").await;
    target.go(OpKind::MigrateConfirm, "web-01").await;
    source.go(OpKind::MigrateConfirm, "web-01").await;
    source.assert_untouched(&a).await;
    assert!(target.runs("web-01").await);
    target.go(OpKind::Destroy, "web-01").await;
    target.assert_untouched(&b).await;
}

/// The console stays on the device that shows it.
#[tokio::test]
async fn places_in_the_guest_are_kept() {
    let (source, target) = two_hosts().await;
    let xml = odd_xml("web-01", 1).replace("<!-- disks -->", "<graphics type='vnc'/>");
    source.spawn_xml(&xml, TWO, DisplayWish::On).await;
    let there = source.definition("web-01").await;
    let document = begin(&source, "web-01").await;
    prepare(&target, &document).await;
    target.go(OpKind::MigrateFinish, "web-01").await;
    let here = target.definition("web-01").await;
    let masked = |xml: &str| {
        devices_in(xml).iter().fold(xml.to_owned(), |xml, uuid| xml.replace(&uuid.to_string(), "UUID"))
    };
    assert_eq!(masked(&here), masked(&there));
    assert!(here.contains("ramfb='on'"));
}

/// A resize across hosts: the flavor is another one, so the devices are chosen as for a spawn.
#[tokio::test]
async fn a_vm_moves_to_another_flavor() {
    for (flavor, count) in [(TWO, 2), ("", 0)] {
        let (source, target) = two_hosts().await;
        let nothing = source.scan().await;
        let xml = odd_xml("web-01", 1);
        source.spawn_xml(&xml, ONE, DisplayWish::Off).await;
        let document = begin(&source, "web-01").await;
        let request = PrepareRequest { flavor: Some(flavor.to_owned()), ..arriving(&document) };
        target.done(target.service().migrate_prepare(request).await).await;
        target.go(OpKind::MigrateFinish, "web-01").await;
        assert_eq!(target.guest_devices("web-01").await.len(), count);
        assert_eq!(without_devices(&target.definition("web-01").await), xml);
        assert_eq!(target.service().instances().await.unwrap()[0].flavor.as_deref(), Some(flavor));
        target.go(OpKind::MigrateConfirm, "web-01").await;
        source.go(OpKind::MigrateConfirm, "web-01").await;
        source.assert_untouched(&nothing).await;
    }
}

const SMALLER: &str = "[devices]\nenabled_mdev_types = ['nvidia-17']\n";

/// The traits of the flavor are served by another type here; whoever moves it says that this is meant.
#[tokio::test]
async fn another_type_only_if_it_is_asked_for() {
    let (source, _) = two_hosts().await;
    let target = Site::new("gpu-03", &[(0x81, "0x10de", &[("nvidia-17", "GRID M60-1Q", 8)])], SMALLER).await;
    source.spawn("web-01", ONE).await;
    let document = begin(&source, "web-01").await;
    let fault = target.service().migrate_prepare(arriving(&document)).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Incompatible, "{fault}");
    let text = format!("{fault} {}", fault.details);
    assert!(["gpu-01", "M60-2Q", "M60-1Q", "0000:81:00.0"].iter().all(|word| text.contains(word)), "{text}");
    let request = PrepareRequest { allow_type_change: true, ..arriving(&document) };
    target.done(target.service().migrate_prepare(request).await).await;
    target.go(OpKind::MigrateFinish, "web-01").await;
    assert_eq!(target.claims("web-01").await[0].type_name, "GRID M60-1Q");
    assert!(target.runs("web-01").await);
}

#[tokio::test]
async fn the_same_document_again_is_the_same_job() {
    let (source, target) = two_hosts().await;
    source.spawn("web-01", ONE).await;
    let document = begin(&source, "web-01").await;
    let first = target.service().migrate_prepare(arriving(&document)).await.unwrap();
    target.ended(first.job).await;
    let again = target.service().migrate_prepare(arriving(&document)).await.unwrap();
    assert_eq!((again.job, again.fresh), (first.job, false));
    let request = PrepareRequest { flavor: Some(TWO.into()), ..arriving(&document) };
    let other = target.service().migrate_prepare(request).await.unwrap_err();
    assert_eq!(other.kind, FaultKind::InstanceExists);
}

#[tokio::test]
async fn while_it_is_away_the_source_does_nothing_with_it() {
    let (source, target) = two_hosts().await;
    source.spawn("web-01", ONE).await;
    let document = begin(&source, "web-01").await;
    for op in [
        OpKind::Start,
        OpKind::Stop,
        OpKind::Destroy,
        OpKind::Suspend,
        OpKind::MigrateBegin,
        OpKind::MigrateFinish,
        OpKind::ResizeRevert,
    ] {
        let fault = source.refused(Operate::plain(op, "web-01", None), FaultKind::InstanceBusy).await;
        assert!(fault.message.contains("confirm or revert the migration"), "{fault}");
    }
    prepare(&target, &document).await;
    for op in [OpKind::Start, OpKind::MigrateConfirm, OpKind::Destroy, OpKind::ResizePrepare] {
        target.refused(with(op, "web-01", Default::default()), FaultKind::InstanceBusy).await;
    }
    target.go(OpKind::MigrateFinish, "web-01").await;
    target.go(OpKind::Stop, "web-01").await;
    target.go(OpKind::Start, "web-01").await;
    target.go(OpKind::Destroy, "web-01").await;
}
