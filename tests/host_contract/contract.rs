//! The contract of [`NodeDevices`] and [`Hypervisor`], as their docs state it.

use std::sync::Arc;

use mdevirt::host::{Domain, HostError, HostEvent};
use mdevirt::model::Mdev;

use crate::hosts::{Base, Subject, addr, domain_xml, expect_event, mdev, new, two_m60, type_id, vm};
use crate::on_each_base;

on_each_base!(
    a_scan_is_ordered_and_a_card_is_a_part_of_it,
    a_created_device_is_active_defined_and_counted,
    creating_again_changes_nothing,
    another_device_under_the_uuid_is_refused,
    what_the_host_does_not_have_is_named,
    a_parent_is_filled_to_its_last_place,
    one_of_two_gets_the_last_place,
    removing_touches_this_parent_only_and_may_be_repeated,
    a_device_of_a_running_domain_stays,
    a_domain_lives_as_libvirts_do,
    a_definition_is_replaced_and_a_running_domain_keeps_its_own,
    a_transient_domain_goes_when_it_stops,
    a_domain_does_not_start_without_its_device,
    a_device_runs_in_one_domain,
    bad_xml_changes_nothing,
    what_is_not_there_is_no_error_where_the_traits_say_so,
    changes_are_announced,
);

async fn seen(on: &Subject, n: u32) -> Vec<Mdev> {
    on.nodes.find(mdev(n)).await.unwrap()
}

async fn available(on: &Subject) -> u32 {
    let card = on.nodes.scan_card(&on.parents[0]).await.unwrap();
    card[0].mdev_type(&on.type_id).unwrap().available_instances
}

async fn create(on: &Subject, n: u32) {
    on.nodes.create(&new(n, &on.parents[0], &on.type_id)).await.unwrap();
}

async fn domain(on: &Subject, n: u32) -> Option<Domain> {
    on.domains.domain(vm(n)).await.unwrap()
}

/// Defines `vm-N` with these devices and starts it.
async fn run_with(on: &Subject, n: u32, mdevs: &[u32]) -> Result<(), HostError> {
    let mdevs: Vec<_> = mdevs.iter().map(|m| mdev(*m)).collect();
    on.domains.define(&domain_xml(n, &mdevs)).await.unwrap();
    on.domains.start(vm(n)).await
}

async fn a_scan_is_ordered_and_a_card_is_a_part_of_it(base: Base) {
    let on = two_m60(base).await;
    create(&on, 2).await;
    create(&on, 1).await;
    let scan = on.nodes.scan().await.unwrap();
    assert_eq!(scan, scan.clone().sorted());
    assert_eq!(scan.mdevs.len(), 2);
    for parent in &on.parents {
        let card = on.nodes.scan_card(parent).await.unwrap();
        assert_eq!(card, [scan.parent(parent).unwrap().clone()]);
    }
    assert!(on.nodes.scan_card(&addr("0000:ff:00.0")).await.unwrap().is_empty());
}

async fn a_created_device_is_active_defined_and_counted(base: Base) {
    let on = two_m60(base).await;
    assert!(seen(&on, 1).await.is_empty());
    assert_eq!(available(&on).await, on.room);
    create(&on, 1).await;
    let [device] = &seen(&on, 1).await[..] else { unreachable!("one device") };
    assert_eq!((&device.parent, device.type_id.as_ref()), (&on.parents[0], Some(&on.type_id)));
    assert!(device.active && device.defined && !device.parent_missing);
    assert!(device.iommu_group.is_some());
    assert_eq!(on.nodes.scan().await.unwrap().mdevs, std::slice::from_ref(device));
    assert_eq!(available(&on).await, on.room - 1);
}

async fn creating_again_changes_nothing(base: Base) {
    let on = two_m60(base).await;
    create(&on, 1).await;
    let before = on.nodes.scan().await.unwrap();
    create(&on, 1).await;
    assert_eq!(on.nodes.scan().await.unwrap(), before);
}

async fn another_device_under_the_uuid_is_refused(base: Base) {
    let on = two_m60(base).await;
    create(&on, 1).await;
    let before = on.nodes.scan().await.unwrap();
    for other in [new(1, &on.parents[1], &on.type_id), new(1, &on.parents[0], &on.other_type)] {
        let err = on.nodes.create(&other).await.unwrap_err();
        assert!(matches!(&err, HostError::Refused(text) if text.contains(&mdev(1).to_string())), "{err}");
    }
    assert_eq!(on.nodes.scan().await.unwrap(), before);
}

async fn what_the_host_does_not_have_is_named(base: Base) {
    let on = two_m60(base).await;
    let err = on.nodes.create(&new(1, &addr("0000:ff:00.0"), &on.type_id)).await.unwrap_err();
    assert!(matches!(&err, HostError::NotFound(text) if text.contains("0000:ff:00.0")), "{err}");
    let err = on.nodes.create(&new(1, &on.parents[0], &type_id("nvidia-99999"))).await.unwrap_err();
    assert!(matches!(&err, HostError::Refused(text) if text.contains("nvidia-99999")), "{err}");
    assert!(on.nodes.scan().await.unwrap().mdevs.is_empty());
}

async fn a_parent_is_filled_to_its_last_place(base: Base) {
    let on = two_m60(base).await;
    for n in 0..on.room {
        create(&on, n).await;
    }
    let err = on.nodes.create(&new(on.room, &on.parents[0], &on.type_id)).await.unwrap_err();
    assert!(matches!(&err, HostError::NoRoom(text) if text.contains(&on.parents[0].to_string())), "{err}");
    assert!(seen(&on, on.room).await.is_empty());
    on.nodes.remove(mdev(0), &on.parents[0]).await.unwrap();
    create(&on, on.room).await;
    on.nodes.create(&new(90, &on.parents[1], &on.type_id)).await.unwrap();
}

async fn one_of_two_gets_the_last_place(base: Base) {
    let on = Arc::new(two_m60(base).await);
    for n in 1..on.room {
        create(&on, n).await;
    }
    for round in 0..50 {
        let both = [50, 51].map(|n| {
            let on = Arc::clone(&on);
            tokio::spawn(async move { on.nodes.create(&new(n, &on.parents[0], &on.type_id)).await })
        });
        let [a, b] = both;
        let (a, b) = (a.await.unwrap(), b.await.unwrap());
        assert_eq!([&a, &b].iter().filter(|r| r.is_ok()).count(), 1, "round {round}: {a:?} {b:?}");
        assert!(matches!(a.and(b), Err(HostError::NoRoom(_))));
        for n in [50, 51] {
            on.nodes.remove(mdev(n), &on.parents[0]).await.unwrap();
        }
    }
}

async fn removing_touches_this_parent_only_and_may_be_repeated(base: Base) {
    let on = two_m60(base).await;
    create(&on, 1).await;
    on.nodes.remove(mdev(1), &on.parents[1]).await.unwrap();
    assert_eq!(seen(&on, 1).await.len(), 1);
    on.nodes.remove(mdev(1), &on.parents[0]).await.unwrap();
    assert!(seen(&on, 1).await.is_empty());
    assert_eq!(available(&on).await, on.room);
    on.nodes.remove(mdev(1), &on.parents[0]).await.unwrap();
}

async fn a_device_of_a_running_domain_stays(base: Base) {
    let on = two_m60(base).await;
    create(&on, 1).await;
    create(&on, 2).await;
    run_with(&on, 1, &[1]).await.unwrap();
    let err = on.nodes.remove(mdev(1), &on.parents[0]).await.unwrap_err();
    assert!(matches!(&err, HostError::InUse(text) if text.contains(&mdev(1).to_string())), "{err}");
    assert!(seen(&on, 1).await[0].active);
    on.nodes.remove(mdev(2), &on.parents[0]).await.unwrap();
    on.domains.stop(vm(1)).await.unwrap();
    on.nodes.remove(mdev(1), &on.parents[0]).await.unwrap();
}

async fn a_domain_lives_as_libvirts_do(base: Base) {
    let on = two_m60(base).await;
    create(&on, 1).await;
    assert_eq!(domain(&on, 1).await, None);
    on.domains.define(&domain_xml(1, &[mdev(1)])).await.unwrap();
    let off = domain(&on, 1).await.unwrap();
    assert_eq!((off.uuid, off.name.as_str(), off.running, off.persistent), (vm(1), "vm-1", false, true));
    assert!(off.xml.contains(&mdev(1).to_string()));
    for _ in 0..2 {
        on.domains.start(vm(1)).await.unwrap();
        assert!(domain(&on, 1).await.unwrap().running);
    }
    assert_eq!(on.domains.domains().await.unwrap(), [domain(&on, 1).await.unwrap()]);
    for _ in 0..2 {
        on.domains.stop(vm(1)).await.unwrap();
        assert!(!domain(&on, 1).await.unwrap().running);
    }
    for _ in 0..2 {
        on.domains.undefine(vm(1)).await.unwrap();
        assert_eq!(domain(&on, 1).await, None);
    }
}

async fn a_definition_is_replaced_and_a_running_domain_keeps_its_own(base: Base) {
    let on = two_m60(base).await;
    create(&on, 1).await;
    create(&on, 2).await;
    on.domains.define(&domain_xml(1, &[])).await.unwrap();
    run_with(&on, 1, &[1]).await.unwrap();
    on.domains.define(&domain_xml(1, &[mdev(2)])).await.unwrap();
    let live = domain(&on, 1).await.unwrap();
    assert!(live.running && live.xml.contains(&mdev(1).to_string()), "{}", live.xml);
    on.nodes.remove(mdev(1), &on.parents[0]).await.unwrap_err();
    on.domains.stop(vm(1)).await.unwrap();
    let off = domain(&on, 1).await.unwrap();
    assert!(off.xml.contains(&mdev(2).to_string()) && !off.xml.contains(&mdev(1).to_string()), "{}", off.xml);
}

async fn a_transient_domain_goes_when_it_stops(base: Base) {
    let on = two_m60(base).await;
    run_with(&on, 1, &[]).await.unwrap();
    on.domains.undefine(vm(1)).await.unwrap();
    let transient = domain(&on, 1).await.unwrap();
    assert!(transient.running && !transient.persistent);
    on.domains.stop(vm(1)).await.unwrap();
    assert_eq!(domain(&on, 1).await, None);
}

async fn a_domain_does_not_start_without_its_device(base: Base) {
    let on = two_m60(base).await;
    let err = run_with(&on, 1, &[1]).await.unwrap_err();
    let wanted = format!("mediated device '{}' not found", mdev(1));
    assert!(matches!(&err, HostError::Refused(text) if text.contains(&wanted)), "{err}");
    assert!(!domain(&on, 1).await.unwrap().running);
    create(&on, 1).await;
    on.domains.start(vm(1)).await.unwrap();
}

async fn a_device_runs_in_one_domain(base: Base) {
    let on = two_m60(base).await;
    create(&on, 1).await;
    run_with(&on, 1, &[1]).await.unwrap();
    let err = run_with(&on, 2, &[1]).await.unwrap_err();
    assert!(matches!(&err, HostError::InUse(text) if text.contains(&mdev(1).to_string())), "{err}");
    assert!(!domain(&on, 2).await.unwrap().running);
    on.domains.stop(vm(1)).await.unwrap();
    on.domains.start(vm(2)).await.unwrap();
}

async fn bad_xml_changes_nothing(base: Base) {
    let on = two_m60(base).await;
    for bad in ["", "<domain", "<network><name>x</name></network>", "<domain type='kvm'></domain>"] {
        let err = on.domains.define(bad).await.unwrap_err();
        assert!(matches!(err, HostError::InvalidXml(_)), "{bad}: {err}");
    }
    assert!(on.domains.domains().await.unwrap().is_empty());
}

async fn what_is_not_there_is_no_error_where_the_traits_say_so(base: Base) {
    let on = two_m60(base).await;
    on.domains.stop(vm(9)).await.unwrap();
    on.domains.undefine(vm(9)).await.unwrap();
    let err = on.domains.start(vm(9)).await.unwrap_err();
    assert!(matches!(&err, HostError::NotFound(text) if text.contains(&vm(9).to_string())), "{err}");
}

async fn changes_are_announced(base: Base) {
    let on = two_m60(base).await;
    let mut nodes = on.nodes.events();
    create(&on, 1).await;
    expect_event(&mut nodes, &HostEvent::NodeDevices).await;
    run_with(&on, 1, &[1]).await.unwrap();
    expect_event(&mut nodes, &HostEvent::Domain(vm(1))).await;
    let mut nodes = on.nodes.events();
    on.domains.stop(vm(1)).await.unwrap();
    expect_event(&mut nodes, &HostEvent::Domain(vm(1))).await;
    let mut nodes = on.nodes.events();
    on.nodes.remove(mdev(1), &on.parents[0]).await.unwrap();
    expect_event(&mut nodes, &HostEvent::NodeDevices).await;
}
