//! The simulated host itself: vendors' rules end to end, what is not ours, and restarts.

use std::path::Path;
use std::sync::Arc;

use mdevirt::host::sim::{Change, Script, SimHost, SimOptions};
use mdevirt::host::{HostError, Hypervisor, NodeDevices};
use mdevirt::model::{HostScan, InstanceUuid, MdevUuid, TypeId};

use crate::hosts::{Base, addr, css, domain_xml, mdev, new, sim, type_id, vm};
use crate::on_each_base;

on_each_base!(
    four_slices_of_4_gib_fit_on_sixteen_vfs,
    a_vf_of_another_size_has_no_room,
    types_have_the_facts_that_libvirt_leaves_out,
    foreign_things_are_there_from_the_start,
    one_uuid_on_two_parents_is_two_devices,
    a_restart_changes_nothing,
    a_restart_brings_back_a_changed_host,
    what_was_removed_stays_removed,
    a_state_file_serves_one_daemon,
    without_a_state_file_a_restart_begins_anew,
);

const FOREIGN: &str = "3d1f0a52-6c0b-4f0e-9a53-0d5c2f5b7e10";

fn foreign() -> MdevUuid {
    FOREIGN.parse().unwrap()
}

async fn four_slices_of_4_gib_fit_on_sixteen_vfs(base: Base) {
    let host = sim(base, "a2-16vf.xml", SimOptions::default()).await;
    let scan = host.scan().await.unwrap();
    let vfs: Vec<_> =
        scan.parents.iter().filter(|p| p.physical_function.is_some()).map(|p| &p.addr).collect();
    assert_eq!(vfs.len(), 16);
    let four_q = type_id("nvidia-746");
    for (n, vf) in (0..4).zip(vfs.iter().rev()) {
        host.create(&new(n, vf, &four_q)).await.unwrap();
        let card = host.scan_card(&addr("0000:08:00.0")).await.unwrap();
        let offered: std::collections::BTreeSet<&TypeId> =
            card.iter().flat_map(|p| &p.types).filter(|t| t.available_instances > 0).map(|t| &t.id).collect();
        let left: u32 = card.iter().filter_map(|p| p.mdev_type(&four_q)).map(|t| t.available_instances).sum();
        assert_eq!(left, if n == 3 { 0 } else { 15 - n }, "after {} slices", n + 1);
        let same_size = ["nvidia-746", "nvidia-751", "nvidia-754"].map(type_id);
        assert!(offered.iter().all(|id| same_size.contains(id)), "{offered:?}");
    }
    let err = host.create(&new(4, vfs[0], &four_q)).await.unwrap_err();
    assert!(matches!(err, HostError::NoRoom(_)), "{err}");
}

async fn a_vf_of_another_size_has_no_room(base: Base) {
    let host = sim(base, "a2-16vf.xml", SimOptions::default()).await;
    host.create(&new(1, &addr("0000:08:00.4"), &type_id("nvidia-746"))).await.unwrap();
    let err = host.create(&new(2, &addr("0000:08:00.5"), &type_id("nvidia-744"))).await.unwrap_err();
    assert!(matches!(&err, HostError::NoRoom(text) if text.contains("0000:08:00.5")), "{err}");
    host.remove(mdev(1), &addr("0000:08:00.4")).await.unwrap();
    host.create(&new(2, &addr("0000:08:00.5"), &type_id("nvidia-744"))).await.unwrap();
}

async fn types_have_the_facts_that_libvirt_leaves_out(base: Base) {
    let host = sim(base, "mixed.xml", SimOptions::default()).await;
    let scan = host.scan().await.unwrap();
    let facts = |parent: &str, id: &str| {
        let mdev_type = scan.parent(&addr(parent)).unwrap().mdev_type(&type_id(id)).unwrap();
        (mdev_type.facts.framebuffer_mib, mdev_type.facts.max_instances)
    };
    assert_eq!(facts("0000:84:00.0", "nvidia-18"), (Some(2048), Some(4)));
    assert_eq!(facts("0000:3b:00.0", "nvidia-231"), (Some(2048), Some(8)));
    assert_eq!(facts("0000:00:02.0", "i915-GVTg_V5_8"), (None, None));
    let ids: Vec<_> = scan.parent(&addr("0000:84:00.0")).unwrap().types.iter().map(|t| &t.id).collect();
    assert!(ids.is_sorted(), "{ids:?}");
}

async fn foreign_things_are_there_from_the_start(base: Base) {
    let host = sim(base, "mixed.xml", SimOptions::default()).await;
    let device = &host.find(foreign()).await.unwrap()[0];
    assert!(device.active && device.parent == addr("0000:3b:00.0"));
    let t4 = &host.scan_card(&addr("0000:3b:00.0")).await.unwrap()[0];
    let left = |id: &str| t4.mdev_type(&type_id(id)).unwrap().available_instances;
    assert_eq!((left("nvidia-231"), left("nvidia-230")), (7, 0));
    let err = host.remove(foreign(), &addr("0000:3b:00.0")).await.unwrap_err();
    assert!(matches!(&err, HostError::InUse(text) if text.contains("lab-handmade")), "{err}");
    let mut domains = host.domains().await.unwrap();
    domains.sort_by(|a, b| a.name.cmp(&b.name));
    let seen: Vec<_> = domains.iter().map(|d| (d.name.as_str(), d.running, d.persistent)).collect();
    assert_eq!(seen, [("batch-01", false, true), ("lab-handmade", true, true)]);
}

async fn one_uuid_on_two_parents_is_two_devices(base: Base) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.xml");
    let devices = [css("00b2", Some(1)), css("00b3", Some(1)), css("00b4", None)].concat();
    std::fs::write(&path, format!("<node>{devices}</node>")).unwrap();
    let host = sim(base, path.to_str().unwrap(), SimOptions::default()).await;
    let on = |devno: &str| addr(&format!("css_0_0_{devno}"));
    assert_eq!(host.find(mdev(1)).await.unwrap().len(), 2);
    host.create(&new(1, &on("00b3"), &type_id("io"))).await.unwrap();
    let err = host.create(&new(1, &on("00b4"), &type_id("io"))).await.unwrap_err();
    assert!(matches!(err, HostError::Refused(_)), "{err}");
    host.remove(mdev(1), &on("00b2")).await.unwrap();
    let left = host.find(mdev(1)).await.unwrap();
    assert_eq!((left.len(), &left[0].parent), (1, &on("00b3")));
    let err = host.create(&new(1, &on("00b2"), &type_id("io"))).await.unwrap_err();
    assert!(matches!(&err, HostError::Refused(text) if text.contains("css_0_0_00b3")), "{err}");
}

fn kept_in(path: &Path) -> SimOptions {
    SimOptions { state_file: Some(path.to_owned()), script: Script::default() }
}

/// All that a caller sees: devices, and domains as name, running, persistent and devices named.
async fn picture(host: &SimHost) -> (HostScan, Vec<(String, bool, bool, Vec<bool>)>) {
    let mut domains: Vec<_> = host
        .domains()
        .await
        .unwrap()
        .into_iter()
        .map(|d| {
            let names = (0..6).map(|n| d.xml.contains(&mdev(n).to_string())).collect();
            (d.name, d.running, d.persistent, names)
        })
        .collect();
    domains.sort();
    (host.scan().await.unwrap(), domains)
}

/// Devices 1 to 4 and the foreign one; vm-1 runs with 1 and is defined anew with 2, vm-2 is off, vm-3 is transient.
async fn busy(base: Base, path: &Path) -> Arc<SimHost> {
    let host = sim(base, "mixed.xml", kept_in(path)).await;
    for n in 1..5 {
        host.create(&new(n, &addr("0000:84:00.0"), &type_id("nvidia-18"))).await.unwrap();
    }
    host.define(&domain_xml(1, &[mdev(1)])).await.unwrap();
    host.start(vm(1)).await.unwrap();
    host.define(&domain_xml(1, &[mdev(2)])).await.unwrap();
    host.define(&domain_xml(2, &[mdev(2)])).await.unwrap();
    host.define(&domain_xml(3, &[mdev(3)])).await.unwrap();
    host.start(vm(3)).await.unwrap();
    host.undefine(vm(3)).await.unwrap();
    host
}

async fn a_restart_changes_nothing(base: Base) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.json");
    let host = busy(base, &path).await;
    let before = picture(&host).await;
    assert_eq!(before.1.len(), 5);
    drop(host);
    // What a kill in the middle of a write leaves.
    std::fs::write(dir.path().join("host.json.new"), "{\"devi").unwrap();
    let host = sim(base, "mixed.xml", kept_in(&path)).await;
    assert_eq!(picture(&host).await, before);
    for (n, held) in [(1, true), (3, true), (4, false)] {
        let removed = host.remove(mdev(n), &addr("0000:84:00.0")).await;
        assert_eq!(matches!(removed, Err(HostError::InUse(_))), held, "{removed:?}");
    }
    host.stop(vm(1)).await.unwrap();
    assert!(host.domain(vm(1)).await.unwrap().unwrap().xml.contains(&mdev(2).to_string()));
    host.stop(vm(3)).await.unwrap();
    assert_eq!(host.domain(vm(3)).await.unwrap(), None);
}

async fn a_restart_brings_back_a_changed_host(base: Base) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.json");
    let host = busy(base, &path).await;
    let swap = [("nvidia-18", "nvidia-20"), ("nvidia-20", "nvidia-18")];
    let swap = swap.map(|(a, b)| (type_id(a), type_id(b))).into();
    host.change(Change::Renumber(swap)).await.unwrap();
    host.change(Change::ParentGone(addr("0000:08:00.0"))).await.unwrap();
    let before = picture(&host).await;
    drop(host);
    let host = sim(base, "mixed.xml", kept_in(&path)).await;
    assert_eq!(picture(&host).await, before);
    assert!(host.scan_card(&addr("0000:08:00.0")).await.unwrap().is_empty());
}

async fn what_was_removed_stays_removed(base: Base) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.json");
    let host = sim(base, "mixed.xml", kept_in(&path)).await;
    let lab: InstanceUuid = "7b9c1f62-52f3-4d0d-9a4e-3f6f0f8a1c01".parse().unwrap();
    host.stop(lab).await.unwrap();
    host.undefine(lab).await.unwrap();
    host.remove(foreign(), &addr("0000:3b:00.0")).await.unwrap();
    drop(host);
    let host = sim(base, "mixed.xml", kept_in(&path)).await;
    assert!(host.find(foreign()).await.unwrap().is_empty());
    assert_eq!(host.domain(lab).await.unwrap(), None);
    assert_eq!(host.domains().await.unwrap().len(), 1);
    let t4 = &host.scan_card(&addr("0000:3b:00.0")).await.unwrap()[0];
    assert_eq!(t4.mdev_type(&type_id("nvidia-234")).unwrap().available_instances, 1, "the card is free");
}

async fn a_state_file_serves_one_daemon(base: Base) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.json");
    let _first = sim(base, "two-m60.xml", kept_in(&path)).await;
    let (nodes, domains) = crate::hosts::base(base, &crate::hosts::scenario("two-m60.xml")).await;
    let err = SimHost::new(nodes, domains, kept_in(&path)).await.unwrap_err();
    assert!(err.to_string().contains("another daemon"), "{err}");
}

async fn without_a_state_file_a_restart_begins_anew(base: Base) {
    let host = sim(base, "two-m60.xml", SimOptions::default()).await;
    host.create(&new(1, &addr("0000:84:00.0"), &type_id("nvidia-18"))).await.unwrap();
    drop(host);
    let host = sim(base, "two-m60.xml", SimOptions::default()).await;
    assert!(host.scan().await.unwrap().mdevs.is_empty());
}
