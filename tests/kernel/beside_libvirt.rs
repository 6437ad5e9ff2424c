//! What libvirt lists and what the kernel shows of one host, through libvirt's test driver with a tree beside it.

use std::fmt::Write;
use std::sync::Arc;

use mdevirt::host::libvirt::LibvirtHost;
use mdevirt::host::sysfs::Sysfs;
use mdevirt::host::{HostError, NodeDevices};
use mdevirt::model::{HostScan, Mdev, Parent, PciAddress};
use mdevirt::xml::render::Templates;
use tempfile::TempDir;

use crate::fixture::test_host;
use crate::{DEVICE, FRESH, new, planted};

/// The planted tree as libvirt prints it: each PCI function by its address, ids, and what else is in its capability.
const FUNCTIONS: [(&str, &str, &str); 5] = [
    (
        "0000:84:00.0",
        "<product id='0x13f2'>GM204GL [Tesla M60]</product><vendor id='0x10de'/><numa node='1'/>\
         <iommuGroup number='41'><address domain='0x0000' bus='0x84' slot='0x00' function='0x0'/></iommuGroup>",
        "<type id='nvidia-18'><name> GRID  M60-2Q </name><deviceAPI>vfio-pci</deviceAPI>\
         <availableInstances>3</availableInstances></type><type id='nvidia-22'><name>GRID M60-8Q</name>\
         <deviceAPI>vfio-pci</deviceAPI><availableInstances>0</availableInstances></type>",
    ),
    (
        "0000:85:00.0",
        "<product id='0x13f2'>GM204GL [Tesla M60]</product><vendor id='0x10de'/>",
        "<type id='nvidia-18'><deviceAPI>vfio-pci</deviceAPI><availableInstances>4</availableInstances></type>",
    ),
    ("0000:08:00.0", "<product id='0x25b6'>GA107GL [A2]</product><vendor id='0x10de'/><numa node='0'/>", ""),
    ("0000:08:00.4", VF, OF_VF),
    ("0000:08:00.5", VF, OF_VF),
];

const VF: &str = "<product id='0x25b6'/><vendor id='0x10de'/><capability type='phys_function'>\
                  <address domain='0x0000' bus='0x08' slot='0x00' function='0x0'/></capability>";
const OF_VF: &str = "<type id='nvidia-746'><name>NVIDIA A2-4Q</name><deviceAPI>vfio-pci</deviceAPI>\
                     <availableInstances>1</availableInstances></type>";

fn devices() -> String {
    let mut all = String::new();
    for (addr, facts, types) in FUNCTIONS {
        let at: PciAddress = addr.parse().unwrap();
        let offered = format!("<capability type='mdev_types'>{types}</capability>");
        let offered = if types.is_empty() { "" } else { &offered };
        write!(
            all,
            "<device><name>{}</name><parent>computer</parent><capability type='pci'><domain>0</domain><bus>{}</bus><slot>0</slot><function>{}</function>\
             {facts}{offered}</capability></device>",
            at.node_name(),
            at.bus(),
            at.function()
        )
        .unwrap();
    }
    let name = DEVICE.replace('-', "_");
    all + &format!(
        "<device><name>mdev_{name}_0000_84_00_0</name><parent>pci_0000_84_00_0</parent><capability type='mdev'>\
         <type id='nvidia-18'/><uuid>{DEVICE}</uuid><iommuGroup number='97'/></capability></device>"
    )
}

fn host() -> (TempDir, Arc<LibvirtHost>) {
    let (root, sysfs) = planted();
    // The test driver takes no parent that is no hardware.
    std::fs::remove_file(root.path().join("sys/class/mdev_bus/mtty")).unwrap();
    let file = root.path().join("devices.xml");
    std::fs::write(&file, devices()).unwrap();
    let uri = test_host(root.path(), &[file]);
    (root, LibvirtHost::new(uri, sysfs, Templates::load(&[]).unwrap()))
}

/// A scan less what only one of the two tells: the kernel no products and definitions, libvirt's test driver no drivers.
fn common(scan: HostScan) -> HostScan {
    let parents = scan.parents.into_iter().map(|parent| Parent { product: None, driver: None, ..parent });
    let mdevs = scan.mdevs.into_iter().map(|mdev| Mdev { defined: false, ..mdev });
    HostScan { parents: parents.collect(), mdevs: mdevs.collect(), findings: scan.findings }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_give_the_same_parents_and_devices() {
    let (_root, host) = host();
    let listed = host.scan().await.unwrap();
    assert_eq!((listed.parents.len(), listed.mdevs.len()), (5, 1));
    assert_eq!(common(host.scan_kernel().await.unwrap()), common(listed));
    let found = host.find(DEVICE.parse().unwrap()).await.unwrap();
    let [found] = &found[..] else { unreachable!("one device") };
    let in_kernel = host.find_in_kernel(found.uuid).await.unwrap();
    assert_eq!(in_kernel, Some(Mdev { defined: false, ..found.clone() }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_is_made_past_libvirt() {
    let (root, host) = host();
    host.create_in_kernel(&new(DEVICE, "0000:84:00.0", "nvidia-18")).await.unwrap();
    let err = host.create_in_kernel(&new(FRESH, "0000:84:00.0", "nvidia-18")).await.unwrap_err();
    assert!(matches!(err, HostError::OutcomeUnknown(_)), "nothing makes devices here: {err}");
    let file = crate::types(root.path(), "0000:84:00.0").join("nvidia-18/create");
    assert_eq!(std::fs::read_to_string(file).unwrap(), FRESH);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_sysfs_there_is_no_kernel_to_ask() {
    let root = tempfile::tempdir().unwrap();
    let host = LibvirtHost::new("test:///default", Sysfs::new(root.path()), Templates::load(&[]).unwrap());
    assert!(matches!(host.scan_kernel().await, Err(HostError::NotSupported(_))));
    assert!(matches!(host.find_in_kernel(DEVICE.parse().unwrap()).await, Err(HostError::NotSupported(_))));
    let made = host.create_in_kernel(&new(DEVICE, "0000:84:00.0", "nvidia-18")).await;
    assert!(matches!(made, Err(HostError::NotSupported(_))));
}
