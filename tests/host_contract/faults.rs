//! Every fault a script can ask for, seen through the traits.

use std::sync::Arc;

use mdevirt::host::sim::{Change, SimHost};
use mdevirt::host::{HostError, HostEvent, Hypervisor, NodeDevices};
use mdevirt::model::Mdev;

use crate::hosts::{Base, addr, css, domain_xml, expect_event, mdev, new, scripted, type_id, vm};
use crate::on_each_base;

on_each_base!(
    a_call_fails_in_the_way_it_is_told_and_does_nothing,
    a_lost_answer_has_its_effect,
    an_unknown_outcome_has_none,
    libvirt_is_away_for_some_calls,
    libvirt_comes_back_when_healed,
    the_kernel_is_there_while_libvirt_is_away,
    a_parent_vanishes_and_returns,
    a_parent_appears_late,
    a_card_takes_its_vfs_along,
    a_foreign_device_takes_a_place,
    a_lost_device_is_made_again_under_its_definition,
    a_boot_leaves_definitions_alone,
    types_that_are_withdrawn_are_not_made,
    ids_move_from_a_scan_on,
    a_renumbered_slice_of_the_file_still_gives_its_share_back,
    rules_are_added_while_the_host_runs,
);

const GPU: &str = "0000:84:00.0";

async fn create(host: &SimHost, n: u32) -> Result<(), HostError> {
    host.create(&new(n, &addr(GPU), &type_id("nvidia-18"))).await
}

async fn find(host: &SimHost, n: u32) -> Vec<Mdev> {
    host.find(mdev(n)).await.unwrap()
}

/// A host with device 1, `vm-1` running with it and `vm-2` off, and one rule for the next such call.
async fn about_to_fail(base: Base, call: &str, kind: &str) -> Arc<SimHost> {
    let host = scripted(base, "two-m60.xml", "").await;
    create(&host, 1).await.unwrap();
    host.define(&domain_xml(1, &[mdev(1)])).await.unwrap();
    host.start(vm(1)).await.unwrap();
    host.define(&domain_xml(2, &[])).await.unwrap();
    let text = format!("[[fail]]\ncall = '{call}'\nkind = '{kind}'");
    let script = mdevirt::host::sim::Script::parse(&text).unwrap();
    script.fail.into_iter().for_each(|rule| host.faults().fail(rule));
    host
}

/// One call of each kind that changes something.
async fn do_call(host: &SimHost, call: &str) -> Result<(), HostError> {
    match call {
        "scan" => host.scan().await.map(|_| ()),
        "find" => host.find(mdev(1)).await.map(|_| ()),
        "create" => create(host, 2).await,
        "scan-kernel" => host.scan_kernel().await.map(|_| ()),
        "find-in-kernel" => host.find_in_kernel(mdev(1)).await.map(|_| ()),
        "create-in-kernel" => host.create_in_kernel(&new(2, &addr(GPU), &type_id("nvidia-18"))).await,
        "remove" => host.remove(mdev(2), &addr(GPU)).await,
        "domains" => host.domains().await.map(|_| ()),
        "define" => host.define(&domain_xml(3, &[])).await,
        "undefine" => host.undefine(vm(2)).await,
        "start" => host.start(vm(2)).await,
        "stop" => host.stop(vm(1)).await,
        other => unreachable!("{other}"),
    }
}

const CALLS: [&str; 12] = [
    "scan",
    "find",
    "create",
    "scan-kernel",
    "find-in-kernel",
    "create-in-kernel",
    "remove",
    "domains",
    "define",
    "undefine",
    "start",
    "stop",
];

const CHANGES: [&str; 6] = ["create", "create-in-kernel", "define", "undefine", "start", "stop"];

async fn state(host: &SimHost) -> (Vec<Mdev>, Vec<(String, bool)>) {
    let domains = host.domains().await.unwrap().into_iter().map(|d| (d.name, d.running)).collect();
    (host.scan().await.unwrap().mdevs, domains)
}

async fn a_call_fails_in_the_way_it_is_told_and_does_nothing(base: Base) {
    let kinds = ["not-found", "in-use", "no-room", "invalid-xml", "unreadable", "not-supported", "refused"];
    for (call, kind) in CALLS.iter().flat_map(|call| kinds.map(|kind| (*call, kind))) {
        let host = about_to_fail(base, call, kind).await;
        let err = do_call(&host, call).await.unwrap_err();
        let right = match kind {
            "not-found" => matches!(err, HostError::NotFound(_)),
            "in-use" => matches!(err, HostError::InUse(_)),
            "no-room" => matches!(err, HostError::NoRoom(_)),
            "invalid-xml" => matches!(err, HostError::InvalidXml(_)),
            "unreadable" => matches!(err, HostError::Unreadable { .. }),
            "not-supported" => matches!(err, HostError::NotSupported(_)),
            _ => matches!(err, HostError::Refused(_)),
        };
        assert!(right && err.to_string().contains("fault script"), "{call} {kind}: {err:?}");
        let fresh = about_to_fail(base, "any", "refused").await;
        fresh.heal();
        assert_eq!(state(&host).await, state(&fresh).await, "{call} {kind}");
        do_call(&host, call).await.unwrap();
    }
}

async fn a_lost_answer_has_its_effect(base: Base) {
    for call in CHANGES {
        let host = about_to_fail(base, call, "answer-lost").await;
        let before = state(&host).await;
        let err = do_call(&host, call).await.unwrap_err();
        assert!(matches!(err, HostError::OutcomeUnknown(_)), "{call}: {err:?}");
        assert_ne!(state(&host).await, before, "{call}");
        do_call(&host, call).await.unwrap();
    }
}

async fn an_unknown_outcome_has_none(base: Base) {
    for call in CHANGES {
        let host = about_to_fail(base, call, "outcome-unknown").await;
        let before = state(&host).await;
        let err = do_call(&host, call).await.unwrap_err();
        assert!(matches!(err, HostError::OutcomeUnknown(_)), "{call}: {err:?}");
        assert_eq!(state(&host).await, before, "{call}");
    }
}

async fn libvirt_is_away_for_some_calls(base: Base) {
    let script = "[[fail]]\ncall = 'any'\nnth = 2\ntimes = 3\nkind = 'unreachable'";
    let host = scripted(base, "two-m60.xml", script).await;
    let mut events = host.events();
    host.scan().await.unwrap();
    for _ in 0..3 {
        let err = host.domains().await.unwrap_err();
        assert!(matches!(err, HostError::Unreachable(_)), "{err:?}");
    }
    // Both are there before the next call: a daemon that waits for the connection makes none.
    let got = [events.try_recv().unwrap(), events.try_recv().unwrap()];
    assert_eq!(got, [HostEvent::Disconnected, HostEvent::Connected]);
    host.scan().await.unwrap();
    assert!(events.try_recv().is_err());
}

async fn libvirt_comes_back_when_healed(base: Base) {
    let host = scripted(base, "two-m60.xml", "[[fail]]\ncall = 'any'\ntimes = 0\nkind = 'unreachable'").await;
    let mut events = host.events();
    host.scan().await.unwrap_err();
    host.scan().await.unwrap_err();
    host.heal();
    host.heal();
    let got = [events.try_recv().unwrap(), events.try_recv().unwrap()];
    assert_eq!(got, [HostEvent::Disconnected, HostEvent::Connected]);
    assert!(events.try_recv().is_err());
    host.scan().await.unwrap();
}

async fn the_kernel_is_there_while_libvirt_is_away(base: Base) {
    let host = scripted(base, "two-m60.xml", "[[fail]]\ncall = 'any'\ntimes = 0\nkind = 'unreachable'").await;
    let mut events = host.events();
    host.scan().await.unwrap_err();
    host.create_in_kernel(&new(1, &addr(GPU), &type_id("nvidia-18"))).await.unwrap();
    assert!(host.find_in_kernel(mdev(1)).await.unwrap().is_some());
    assert_eq!(host.scan_kernel().await.unwrap().mdevs.len(), 1);
    assert_eq!(events.recv().await.unwrap(), HostEvent::Disconnected);
    assert_eq!(events.recv().await.unwrap(), HostEvent::NodeDevices);
    assert!(events.try_recv().is_err(), "libvirt is still away");
    host.scan().await.unwrap_err();
}

async fn a_parent_vanishes_and_returns(base: Base) {
    let script = "
        [[change]]
        after = { call = 'create', count = 2 }
        do = { parent-gone = '0000:84:00.0' }
        [[change]]
        after = { call = 'create', parent = '0000:84:00.0', count = 3 }
        do = { parent-back = '0000:84:00.0' }";
    let host = scripted(base, "two-m60.xml", script).await;
    let mut events = host.events();
    create(&host, 1).await.unwrap();
    expect_event(&mut events, &HostEvent::NodeDevices).await;
    host.create(&new(2, &addr("0000:85:00.0"), &type_id("nvidia-18"))).await.unwrap();
    let scan = host.scan().await.unwrap();
    assert_eq!(scan.parents.iter().map(|p| p.addr.to_string()).collect::<Vec<_>>(), ["0000:85:00.0"]);
    let lost = &find(&host, 1).await[0];
    assert!(!lost.active && lost.defined && lost.parent_missing && lost.iommu_group.is_none());
    assert!(find(&host, 2).await[0].active);
    for n in [3, 4] {
        let err = create(&host, n).await.unwrap_err();
        assert!(matches!(&err, HostError::NotFound(text) if text.contains(GPU)), "{err}");
    }
    let back = &find(&host, 1).await[0];
    assert!(back.active && !back.parent_missing, "autostart makes the defined device again");
    create(&host, 3).await.unwrap();
}

async fn a_parent_appears_late(base: Base) {
    let script = "
        [[change]]
        do = { parent-gone = '0000:85:00.0' }
        [[change]]
        after = { call = 'scan', count = 1 }
        do = { parent-back = '0000:85:00.0' }";
    let host = scripted(base, "two-m60.xml", script).await;
    let mut events = host.events();
    assert_eq!(host.scan().await.unwrap().parents.len(), 1);
    expect_event(&mut events, &HostEvent::NodeDevices).await;
    assert_eq!(host.scan().await.unwrap().parents.len(), 2);
}

async fn a_card_takes_its_vfs_along(base: Base) {
    let host = scripted(base, "a2-16vf.xml", "").await;
    host.create(&new(1, &addr("0000:08:00.4"), &type_id("nvidia-746"))).await.unwrap();
    host.change(Change::ParentGone(addr("0000:08:00.0"))).await.unwrap();
    assert!(host.scan().await.unwrap().parents.is_empty());
    assert!(find(&host, 1).await[0].parent_missing);
    host.change(Change::ParentBack(addr("0000:08:00.0"))).await.unwrap();
    assert_eq!(host.scan().await.unwrap().parents.len(), 17);
    assert!(find(&host, 1).await[0].active);
}

async fn a_foreign_device_takes_a_place(base: Base) {
    let script = format!(
        "[[change]]\nafter = {{ call = 'create', count = 3 }}\n\
         do = {{ foreign-mdev = {{ uuid = '{}', parent = '{GPU}', type = 'nvidia-18' }} }}",
        mdev(90)
    );
    let host = scripted(base, "two-m60.xml", &script).await;
    for n in 1..4 {
        create(&host, n).await.unwrap();
    }
    let foreign = &find(&host, 90).await[0];
    assert!(foreign.active && !foreign.defined);
    assert!(matches!(create(&host, 4).await, Err(HostError::NoRoom(_))));
    host.change(Change::ParentGone(addr(GPU))).await.unwrap();
    assert!(find(&host, 90).await.is_empty(), "nothing stays of a device without definition");
}

async fn a_lost_device_is_made_again_under_its_definition(base: Base) {
    let script =
        format!("[[change]]\nafter = {{ call = 'find', count = 1 }}\ndo = {{ mdev-lost = '{}' }}", mdev(1));
    let host = scripted(base, "two-m60.xml", &script).await;
    create(&host, 1).await.unwrap();
    host.define(&domain_xml(1, &[mdev(1)])).await.unwrap();
    assert!(find(&host, 1).await[0].active);
    let lost = &find(&host, 1).await[0];
    assert!(!lost.active && lost.defined && !lost.parent_missing);
    assert!(matches!(host.start(vm(1)).await, Err(HostError::Refused(_))));
    create(&host, 1).await.unwrap();
    host.start(vm(1)).await.unwrap();
}

async fn a_boot_leaves_definitions_alone(base: Base) {
    let host = scripted(base, "two-m60.xml", "").await;
    create(&host, 1).await.unwrap();
    host.define(&domain_xml(1, &[mdev(1)])).await.unwrap();
    host.start(vm(1)).await.unwrap();
    assert!(!host.autostarts(vm(1)).await.unwrap());
    host.change(Change::Autostart(vm(1))).await.unwrap();
    let before = host.boot_id().unwrap();
    host.change(Change::Reboot).await.unwrap();
    assert_ne!(host.boot_id().unwrap(), before);
    let device = &find(&host, 1).await[0];
    assert!(!device.active && device.defined);
    assert!(!host.domain(vm(1)).await.unwrap().unwrap().running);
    assert!(host.autostarts(vm(1)).await.unwrap());
    create(&host, 1).await.unwrap();
    host.start(vm(1)).await.unwrap();
}

async fn types_that_are_withdrawn_are_not_made(base: Base) {
    let host = scripted(base, "two-m60.xml", "").await;
    let change = |types: &[&str]| Change::Withdraw(types.iter().map(|t| type_id(t)).collect());
    host.change(change(&["nvidia-18"])).await.unwrap();
    assert!(matches!(create(&host, 1).await, Err(HostError::Refused(_))));
    host.change(change(&[])).await.unwrap();
    create(&host, 1).await.unwrap();
}

async fn ids_move_from_a_scan_on(base: Base) {
    let script = "
        [[change]]
        after = { call = 'scan', count = 1 }
        do = { renumber = { nvidia-18 = 'nvidia-20', nvidia-20 = 'nvidia-18' } }";
    let host = scripted(base, "two-m60.xml", script).await;
    create(&host, 1).await.unwrap();
    let names = |scan: &mdevirt::model::HostScan| {
        ["nvidia-18", "nvidia-20"].map(|id| {
            let mdev_type = scan.parents[0].mdev_type(&type_id(id)).unwrap();
            (mdev_type.label().to_owned(), mdev_type.available_instances)
        })
    };
    let before = names(&host.scan().await.unwrap());
    assert_eq!(before, [("GRID M60-2Q".to_owned(), 3), ("GRID M60-4Q".to_owned(), 0)]);
    let after = host.scan().await.unwrap();
    assert_eq!(names(&after), [("GRID M60-4Q".to_owned(), 0), ("GRID M60-2Q".to_owned(), 3)]);
    assert_eq!(after.mdevs[0].type_id, Some(type_id("nvidia-20")), "an active device moves along");
    // Renumbered again, the ids are those of the file: it does not add up.
    host.change(Change::Renumber([].into())).await.unwrap();
    assert_eq!(names(&host.scan().await.unwrap()), before);
}

async fn a_renumbered_slice_of_the_file_still_gives_its_share_back(base: Base) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.xml");
    std::fs::write(&path, format!("<node>{}</node>", css("00b2", Some(90)))).unwrap();
    let host = scripted(base, path.to_str().unwrap(), "").await;
    host.change(Change::Renumber([(type_id("io"), type_id("io-2"))].into())).await.unwrap();
    let uuid = mdev(90);
    assert_eq!(host.find(uuid).await.unwrap()[0].type_id, Some(type_id("io-2")));
    host.remove(uuid, &addr("css_0_0_00b2")).await.unwrap();
    let css = &host.scan().await.unwrap().parents[0];
    assert_eq!((css.types[0].id.as_str(), css.types[0].available_instances), ("io-2", 2));
}

async fn rules_are_added_while_the_host_runs(base: Base) {
    let host = about_to_fail(base, "create", "no-room").await;
    assert!(matches!(create(&host, 2).await, Err(HostError::NoRoom(_))));
    create(&host, 2).await.unwrap();
    assert_eq!(find(&host, 2).await.len(), 1);
}
