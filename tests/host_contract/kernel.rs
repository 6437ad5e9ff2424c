//! The contract of the calls that ask no libvirt, and what they have to agree on with those that do.

use mdevirt::host::sim::{Change, SimOptions};
use mdevirt::host::{HostError, HostEvent, NodeDevices};
use mdevirt::model::{HostScan, Mdev};

use crate::hosts::{Base, Subject, addr, expect_event, mdev, new, sim, two_m60, type_id};
use crate::on_each_base;

on_each_base!(
    the_kernel_shows_what_a_scan_shows,
    definitions_are_not_seen,
    a_device_of_the_kernel_is_not_defined,
    making_it_again_changes_nothing,
    making_it_defined_keeps_the_device,
    another_device_under_the_uuid_is_refused,
    a_definition_elsewhere_is_no_device,
    what_the_host_does_not_have_is_named,
    room_is_counted_by_both,
    the_rules_of_a_card_hold,
    it_is_announced_and_removed,
    a_boot_takes_it_away,
);

const SCENARIOS: [&str; 3] = ["two-m60.xml", "a2-16vf.xml", "mixed.xml"];

async fn make(on: &Subject, n: u32) {
    on.nodes.create_in_kernel(&new(n, &on.parents[0], &on.type_id)).await.unwrap();
}

/// A scan less what the kernel does not know.
fn without_definitions(scan: HostScan) -> HostScan {
    let active = scan.mdevs.into_iter().filter(|device| device.active);
    let mdevs = active.map(|device| Mdev { defined: false, ..device }).collect();
    HostScan { mdevs, findings: Vec::new(), ..scan }
}

async fn agree(nodes: &dyn NodeDevices) -> HostScan {
    let seen = nodes.scan_kernel().await.unwrap();
    assert_eq!(seen, without_definitions(nodes.scan().await.unwrap()));
    for device in &seen.mdevs {
        assert_eq!(nodes.find_in_kernel(device.uuid).await.unwrap().as_ref(), Some(device));
    }
    seen
}

async fn the_kernel_shows_what_a_scan_shows(base: Base) {
    for name in SCENARIOS {
        let host = sim(base, name, SimOptions::default()).await;
        let seen = agree(host.as_ref()).await;
        let room = |p: &&mdevirt::model::Parent| p.types.iter().any(|t| t.available_instances > 0);
        let parents: Vec<_> = seen.parents.iter().filter(room).map(|p| p.addr.clone()).collect();
        for (n, parent) in (0..).zip(&parents) {
            let now = host.scan_kernel().await.unwrap();
            let open = now.parent(parent).unwrap().types.iter().find(|t| t.available_instances > 0);
            let Some(offered) = open else { continue };
            let device = new(n, parent, &offered.id);
            let made =
                if n % 2 == 0 { host.create(&device).await } else { host.create_in_kernel(&device).await };
            made.unwrap();
            agree(host.as_ref()).await;
        }
        host.change(Change::ParentGone(parents[0].clone())).await.unwrap();
        agree(host.as_ref()).await;
    }
}

async fn definitions_are_not_seen(base: Base) {
    let host = sim(base, "two-m60.xml", SimOptions::default()).await;
    host.create(&new(1, &addr("0000:84:00.0"), &type_id("nvidia-18"))).await.unwrap();
    host.change(Change::Reboot).await.unwrap();
    assert!(host.find(mdev(1)).await.unwrap()[0].defined);
    assert_eq!(host.find_in_kernel(mdev(1)).await.unwrap(), None);
    assert!(agree(host.as_ref()).await.mdevs.is_empty());
    host.create_in_kernel(&new(1, &addr("0000:84:00.0"), &type_id("nvidia-18"))).await.unwrap();
    let [device] = &host.find(mdev(1)).await.unwrap()[..] else { unreachable!("one device") };
    assert!(device.active && device.defined, "its definition stayed");
    assert!(!host.find_in_kernel(mdev(1)).await.unwrap().unwrap().defined);
}

async fn a_device_of_the_kernel_is_not_defined(base: Base) {
    let on = two_m60(base).await;
    assert_eq!(on.nodes.find_in_kernel(mdev(1)).await.unwrap(), None);
    make(&on, 1).await;
    let device = on.nodes.find_in_kernel(mdev(1)).await.unwrap().unwrap();
    assert_eq!((&device.parent, device.type_id.as_ref()), (&on.parents[0], Some(&on.type_id)));
    assert!(device.active && !device.defined && !device.parent_missing && device.iommu_group.is_some());
    assert_eq!(on.nodes.find(mdev(1)).await.unwrap(), std::slice::from_ref(&device));
    assert_eq!(agree(on.nodes.as_ref()).await.mdevs, [device]);
}

async fn making_it_again_changes_nothing(base: Base) {
    let on = two_m60(base).await;
    make(&on, 1).await;
    on.nodes.create(&new(2, &on.parents[0], &on.type_id)).await.unwrap();
    let before = on.nodes.scan().await.unwrap();
    make(&on, 1).await;
    make(&on, 2).await;
    assert_eq!(on.nodes.scan().await.unwrap(), before, "a definition is not lost either");
}

async fn making_it_defined_keeps_the_device(base: Base) {
    let on = two_m60(base).await;
    for n in 0..on.room {
        make(&on, n).await;
    }
    let before = on.nodes.find_in_kernel(mdev(0)).await.unwrap().unwrap();
    on.nodes.create(&new(0, &on.parents[0], &on.type_id)).await.unwrap();
    let defined = Mdev { defined: true, ..before };
    assert_eq!(on.nodes.find(mdev(0)).await.unwrap(), [defined]);
}

async fn another_device_under_the_uuid_is_refused(base: Base) {
    let on = two_m60(base).await;
    make(&on, 1).await;
    let before = on.nodes.scan().await.unwrap();
    for other in [new(1, &on.parents[1], &on.type_id), new(1, &on.parents[0], &on.other_type)] {
        let err = on.nodes.create_in_kernel(&other).await.unwrap_err();
        assert!(matches!(&err, HostError::Refused(text) if text.contains(&mdev(1).to_string())), "{err}");
    }
    assert_eq!(on.nodes.scan().await.unwrap(), before);
}

async fn a_definition_elsewhere_is_no_device(base: Base) {
    let host = sim(base, "two-m60.xml", SimOptions::default()).await;
    host.create(&new(1, &addr("0000:84:00.0"), &type_id("nvidia-18"))).await.unwrap();
    host.change(Change::Reboot).await.unwrap();
    host.create_in_kernel(&new(1, &addr("0000:85:00.0"), &type_id("nvidia-18"))).await.unwrap();
    assert_eq!(host.find_in_kernel(mdev(1)).await.unwrap().unwrap().parent, addr("0000:85:00.0"));
    assert_eq!(host.find(mdev(1)).await.unwrap().len(), 2);
}

async fn what_the_host_does_not_have_is_named(base: Base) {
    let on = two_m60(base).await;
    let err = on.nodes.create_in_kernel(&new(1, &addr("0000:ff:00.0"), &on.type_id)).await.unwrap_err();
    assert!(matches!(&err, HostError::NotFound(text) if text.contains("0000:ff:00.0")), "{err}");
    let err = on.nodes.create_in_kernel(&new(1, &on.parents[0], &type_id("nvidia-99999"))).await.unwrap_err();
    assert!(matches!(&err, HostError::Refused(text) if text.contains("nvidia-99999")), "{err}");
    assert!(on.nodes.scan().await.unwrap().mdevs.is_empty());
}

async fn room_is_counted_by_both(base: Base) {
    let on = two_m60(base).await;
    for n in 0..on.room {
        let device = new(n, &on.parents[0], &on.type_id);
        if n % 2 == 0 { on.nodes.create(&device).await } else { on.nodes.create_in_kernel(&device).await }
            .unwrap();
    }
    let more = new(on.room, &on.parents[0], &on.type_id);
    for err in [on.nodes.create(&more).await, on.nodes.create_in_kernel(&more).await] {
        let err = err.unwrap_err();
        assert!(
            matches!(&err, HostError::NoRoom(text) if text.contains(&on.parents[0].to_string())),
            "{err}"
        );
    }
    assert_eq!(on.nodes.find_in_kernel(mdev(on.room)).await.unwrap(), None);
}

async fn the_rules_of_a_card_hold(base: Base) {
    let host = sim(base, "a2-16vf.xml", SimOptions::default()).await;
    let vf = |n: u32| addr(&format!("0000:08:00.{n}"));
    host.create_in_kernel(&new(1, &vf(4), &type_id("nvidia-746"))).await.unwrap();
    let err = host.create_in_kernel(&new(2, &vf(4), &type_id("nvidia-746"))).await.unwrap_err();
    assert!(matches!(err, HostError::NoRoom(_)), "a VF makes one slice: {err}");
    let err = host.create_in_kernel(&new(2, &vf(5), &type_id("nvidia-745"))).await.unwrap_err();
    assert!(matches!(err, HostError::NoRoom(_)), "a card has one size: {err}");
    host.create_in_kernel(&new(2, &vf(5), &type_id("nvidia-746"))).await.unwrap();
}

async fn it_is_announced_and_removed(base: Base) {
    let on = two_m60(base).await;
    let mut events = on.nodes.events();
    make(&on, 1).await;
    expect_event(&mut events, &HostEvent::NodeDevices).await;
    on.nodes.remove(mdev(1), &on.parents[0]).await.unwrap();
    assert_eq!(on.nodes.find_in_kernel(mdev(1)).await.unwrap(), None);
    assert!(on.nodes.find(mdev(1)).await.unwrap().is_empty());
}

async fn a_boot_takes_it_away(base: Base) {
    let host = sim(base, "two-m60.xml", SimOptions::default()).await;
    host.create_in_kernel(&new(1, &addr("0000:84:00.0"), &type_id("nvidia-18"))).await.unwrap();
    host.change(Change::Reboot).await.unwrap();
    assert!(host.find(mdev(1)).await.unwrap().is_empty());
    assert_eq!(host.find_in_kernel(mdev(1)).await.unwrap(), None);
}
