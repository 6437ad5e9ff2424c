//! Parents and devices as the kernel alone shows and makes them, on planted trees.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on shall stop"
)]

#[cfg(feature = "libvirt")]
#[path = "kernel/beside_libvirt.rs"]
mod beside_libvirt;
mod fixture;

use std::fs;
use std::path::{Path, PathBuf};

use fixture::plant;
use mdevirt::host::HostError;
use mdevirt::host::sysfs::Sysfs;
use mdevirt::model::{DeviceApi, FindingKind, Framework, HostScan, NewMdev, Parent};
use tempfile::TempDir;

const DEVICE: &str = "1fc01460-67d7-4303-a5ea-69a57b994f50";
const FRESH: &str = "e642cfd7-55f9-4481-b9d0-b08b26f7a0f0";

/// Two GPUs of an M60, an A2 with two VFs, and the kernel's sample of a parent that is no hardware.
const TREE: &str = "\
/sys/class/mdev_bus/0000:84:00.0 -> ../../bus/pci/devices/0000:84:00.0
/sys/class/mdev_bus/0000:85:00.0 -> ../../bus/pci/devices/0000:85:00.0
/sys/class/mdev_bus/0000:08:00.4 -> ../../bus/pci/devices/0000:08:00.4
/sys/class/mdev_bus/0000:08:00.5 -> ../../bus/pci/devices/0000:08:00.5
/sys/class/mdev_bus/mtty -> ../../devices/virtual/mtty/mtty
/sys/bus/pci/devices/0000:84:00.0/vendor = 0x10de|
/sys/bus/pci/devices/0000:84:00.0/device = 0x13f2|
/sys/bus/pci/devices/0000:84:00.0/numa_node = 1|
/sys/bus/pci/devices/0000:84:00.0/iommu_group -> ../../../../kernel/iommu_groups/41
/sys/bus/pci/devices/0000:84:00.0/driver -> ../../../../bus/pci/drivers/nvidia
/sys/bus/pci/devices/0000:84:00.0/mdev_supported_types/nvidia-22/name = GRID M60-8Q|
/sys/bus/pci/devices/0000:84:00.0/mdev_supported_types/nvidia-22/device_api = vfio-pci|
/sys/bus/pci/devices/0000:84:00.0/mdev_supported_types/nvidia-22/available_instances = 0|
/sys/bus/pci/devices/0000:84:00.0/mdev_supported_types/nvidia-22/create =
/sys/bus/pci/devices/0000:84:00.0/mdev_supported_types/nvidia-18/name =  GRID  M60-2Q |
/sys/bus/pci/devices/0000:84:00.0/mdev_supported_types/nvidia-18/device_api = vfio-pci|
/sys/bus/pci/devices/0000:84:00.0/mdev_supported_types/nvidia-18/available_instances = 3|
/sys/bus/pci/devices/0000:84:00.0/mdev_supported_types/nvidia-18/description = num_heads=4, frl_config=60, framebuffer=2048M, max_resolution=4096x2160, max_instance=4|
/sys/bus/pci/devices/0000:84:00.0/mdev_supported_types/nvidia-18/create =
/sys/bus/pci/devices/0000:84:00.0/1fc01460-67d7-4303-a5ea-69a57b994f50/mdev_type -> ../mdev_supported_types/nvidia-18
/sys/bus/pci/devices/0000:84:00.0/1fc01460-67d7-4303-a5ea-69a57b994f50/iommu_group -> ../../../kernel/iommu_groups/97
/sys/bus/mdev/devices/1fc01460-67d7-4303-a5ea-69a57b994f50 -> ../../pci/devices/0000:84:00.0/1fc01460-67d7-4303-a5ea-69a57b994f50
/sys/bus/pci/devices/0000:85:00.0/vendor = 0x10de|
/sys/bus/pci/devices/0000:85:00.0/device = 0x13f2|
/sys/bus/pci/devices/0000:85:00.0/numa_node = -1|
/sys/bus/pci/devices/0000:85:00.0/driver -> ../../../../bus/pci/drivers/nvidia
/sys/bus/pci/devices/0000:85:00.0/mdev_supported_types/nvidia-18/device_api = vfio-pci|
/sys/bus/pci/devices/0000:85:00.0/mdev_supported_types/nvidia-18/available_instances = 4|
/sys/bus/pci/devices/0000:08:00.0/vendor = 0x10de|
/sys/bus/pci/devices/0000:08:00.0/device = 0x25b6|
/sys/bus/pci/devices/0000:08:00.0/numa_node = 0|
/sys/bus/pci/devices/0000:08:00.0/driver -> ../../../../bus/pci/drivers/nvidia
/sys/bus/pci/devices/0000:08:00.4/vendor = 0x10de|
/sys/bus/pci/devices/0000:08:00.4/device = 0x25b6|
/sys/bus/pci/devices/0000:08:00.4/driver -> ../../../../bus/pci/drivers/nvidia
/sys/bus/pci/devices/0000:08:00.4/physfn -> ../0000:08:00.0
/sys/bus/pci/devices/0000:08:00.4/mdev_supported_types/nvidia-746/name = NVIDIA A2-4Q|
/sys/bus/pci/devices/0000:08:00.4/mdev_supported_types/nvidia-746/device_api = vfio-pci|
/sys/bus/pci/devices/0000:08:00.4/mdev_supported_types/nvidia-746/available_instances = 1|
/sys/bus/pci/devices/0000:08:00.5/vendor = 0x10de|
/sys/bus/pci/devices/0000:08:00.5/device = 0x25b6|
/sys/bus/pci/devices/0000:08:00.5/driver -> ../../../../bus/pci/drivers/nvidia
/sys/bus/pci/devices/0000:08:00.5/physfn -> ../0000:08:00.0
/sys/bus/pci/devices/0000:08:00.5/mdev_supported_types/nvidia-746/name = NVIDIA A2-4Q|
/sys/bus/pci/devices/0000:08:00.5/mdev_supported_types/nvidia-746/device_api = vfio-pci|
/sys/bus/pci/devices/0000:08:00.5/mdev_supported_types/nvidia-746/available_instances = 1|
/sys/devices/virtual/mtty/mtty/subsystem -> ../../../../class/mtty
/sys/devices/virtual/mtty/mtty/mdev_supported_types/mtty-1/name = Single port serial|
/sys/devices/virtual/mtty/mtty/mdev_supported_types/mtty-1/device_api = vfio-pci|
/sys/devices/virtual/mtty/mtty/mdev_supported_types/mtty-1/available_instances = 24|
/sys/devices/virtual/mtty/mtty/mdev_supported_types/mtty-1/create =
";

fn planted() -> (TempDir, Sysfs) {
    let root = tempfile::tempdir().unwrap();
    let description = root.path().join("tree.txt");
    fs::write(&description, TREE).unwrap();
    plant(&description, root.path());
    let sysfs = Sysfs::new(root.path());
    (root, sysfs)
}

fn types(root: &Path, addr: &str) -> PathBuf {
    root.join("sys/bus/pci/devices").join(addr).join("mdev_supported_types")
}

fn parents(scan: &HostScan) -> Vec<String> {
    scan.parents.iter().map(|parent| parent.addr.to_string()).collect()
}

fn parent<'s>(scan: &'s HostScan, addr: &str) -> &'s Parent {
    scan.parent(&addr.parse().unwrap()).unwrap()
}

fn new(uuid: &str, parent: &str, type_id: &str) -> NewMdev {
    NewMdev {
        uuid: uuid.parse().unwrap(),
        parent: parent.parse().unwrap(),
        type_id: type_id.parse().unwrap(),
        device_api: DeviceApi::VfioPci,
    }
}

#[test]
fn parents_come_with_what_the_kernel_says_of_them() {
    let (_root, sysfs) = planted();
    let scan = sysfs.scan().unwrap();
    assert_eq!(scan.findings, []);
    let wanted =
        ["0000:08:00.0", "0000:08:00.4", "0000:08:00.5", "0000:84:00.0", "0000:85:00.0", "mtty_mtty"];
    assert_eq!(parents(&scan), wanted);
    let gpu = parent(&scan, "0000:84:00.0");
    assert_eq!(
        (gpu.framework, gpu.vendor_id, gpu.device_id),
        (Some(Framework::Mdev), Some(0x10de), Some(0x13f2))
    );
    assert_eq!((gpu.numa_node, gpu.iommu_group, gpu.driver.as_deref()), (Some(1), Some(41), Some("nvidia")));
    assert_eq!(parent(&scan, "0000:85:00.0").numa_node, None);
    let card = parent(&scan, "0000:08:00.0");
    assert_eq!((card.framework, card.device_id, card.types.len()), (None, Some(0x25b6), 0));
    for vf in ["0000:08:00.4", "0000:08:00.5"] {
        assert_eq!(parent(&scan, vf).card(), card.addr);
    }
    let mtty = parent(&scan, "mtty_mtty");
    assert_eq!((mtty.vendor_id, mtty.types[0].available_instances), (None, 24));
}

#[test]
fn types_come_in_order_with_names_room_and_descriptions() {
    let (_root, sysfs) = planted();
    let scan = sysfs.scan().unwrap();
    let offered: Vec<(&str, Option<&str>, u32, Option<u32>)> = parent(&scan, "0000:84:00.0")
        .types
        .iter()
        .map(|t| (t.id.as_str(), t.name.as_deref(), t.available_instances, t.facts.max_instances))
        .collect();
    let wanted =
        [("nvidia-18", Some("GRID  M60-2Q"), 3, Some(4)), ("nvidia-22", Some("GRID M60-8Q"), 0, None)];
    assert_eq!(offered, wanted);
    assert_eq!(parent(&scan, "0000:85:00.0").types[0].name, None);
}

#[test]
fn room_is_read_each_time_and_what_is_stated_once_for_each_registration() {
    let (root, sysfs) = planted();
    sysfs.scan().unwrap();
    let directory = types(root.path(), "0000:85:00.0");
    fs::write(directory.join("nvidia-18/available_instances"), "2\n").unwrap();
    fs::write(directory.join("nvidia-18/name"), "GRID M60-2Q\n").unwrap();
    let now = sysfs.scan().unwrap();
    let offered = &parent(&now, "0000:85:00.0").types[0];
    assert_eq!((offered.available_instances, offered.name.as_deref()), (2, None));
    let moved = root.path().join("moved");
    fs::rename(&directory, &moved).unwrap();
    fs::create_dir(&directory).unwrap();
    fs::rename(moved.join("nvidia-18"), directory.join("nvidia-18")).unwrap();
    let now = sysfs.scan().unwrap();
    assert_eq!(parent(&now, "0000:85:00.0").types[0].name.as_deref(), Some("GRID M60-2Q"));
}

#[test]
fn devices_that_exist_are_found_and_not_defined() {
    let (_root, sysfs) = planted();
    let scan = sysfs.scan().unwrap();
    let [device] = &scan.mdevs[..] else { panic!("one device: {:?}", scan.mdevs) };
    assert_eq!(
        (device.uuid.to_string().as_str(), device.parent.to_string().as_str()),
        (DEVICE, "0000:84:00.0")
    );
    assert_eq!((device.type_id.as_ref().unwrap().as_str(), device.iommu_group), ("nvidia-18", Some(97)));
    assert!(device.active && !device.defined && !device.parent_missing);
    assert_eq!(sysfs.mdev(device.uuid).unwrap().as_ref(), Some(device));
    assert_eq!(sysfs.mdev(FRESH.parse().unwrap()).unwrap(), None);
}

#[test]
fn a_type_that_cannot_be_understood_is_left_out_and_told() {
    let (root, sysfs) = planted();
    let directory = types(root.path(), "0000:84:00.0");
    fs::write(directory.join("nvidia-18/name"), b"GRID \xff M60\n").unwrap();
    fs::write(directory.join("nvidia-22/device_api"), "vfio-new\n").unwrap();
    fs::create_dir(directory.join("a b")).unwrap();
    for _ in 0..2 {
        let scan = sysfs.scan().unwrap();
        assert!(parent(&scan, "0000:84:00.0").types.is_empty());
        let told: Vec<(FindingKind, &str)> =
            scan.findings.iter().map(|f| (f.kind, f.about.as_str())).collect();
        assert_eq!(told, [(FindingKind::MalformedInput, "pci_0000_84_00_0"); 3]);
        assert!(
            ["a b", "nvidia-18", "nvidia-22"].iter().zip(&scan.findings).all(|(id, f)| f.text.contains(id))
        );
    }
}

/// As with libvirt, which does not list a parent one of whose attributes it cannot read.
#[test]
fn a_parent_whose_room_is_not_known_is_left_out_and_told() {
    type Break = fn(&Path);
    let breaks: [Break; 6] = [
        |types| fs::write(types.join("nvidia-18/available_instances"), "many\n").unwrap(),
        |types| fs::write(types.join("nvidia-18/available_instances"), "-1\n").unwrap(),
        |types| fs::remove_file(types.join("nvidia-18/available_instances")).unwrap(),
        |types| fs::remove_file(types.join("nvidia-18/device_api")).unwrap(),
        |types| fs::remove_dir_all(types.join("nvidia-18")).unwrap(),
        |types| fs::write(types.join("../vendor"), "none\n").unwrap(),
    ];
    for (n, break_it) in breaks.iter().enumerate() {
        let (root, sysfs) = planted();
        break_it(&types(root.path(), "0000:85:00.0"));
        let scan = sysfs.scan().unwrap();
        assert!(!parents(&scan).contains(&"0000:85:00.0".to_owned()), "{n}");
        assert_eq!(scan.parents.len(), 5, "{n}: the others are there");
        let told: Vec<(FindingKind, &str)> =
            scan.findings.iter().map(|f| (f.kind, f.about.as_str())).collect();
        assert_eq!(told, [(FindingKind::Unknown, "0000:85:00.0")], "{n}");
    }
}

#[test]
fn a_name_that_no_parent_has_is_told() {
    let (root, sysfs) = planted();
    fs::create_dir(root.path().join("sys/class/mdev_bus/strange")).unwrap();
    let scan = sysfs.scan().unwrap();
    assert_eq!((scan.parents.len(), scan.findings[0].about.as_str()), (6, "strange"));
}

/// Unplugged while the VFs were read.
#[test]
fn a_card_that_is_gone_is_no_finding() {
    let (root, sysfs) = planted();
    fs::remove_dir_all(root.path().join("sys/bus/pci/devices/0000:08:00.0")).unwrap();
    let scan = sysfs.scan().unwrap();
    assert_eq!((scan.parents.len(), scan.findings.len()), (5, 0));
    assert_eq!(parent(&scan, "0000:08:00.4").card().to_string(), "0000:08:00.0");
}

#[test]
fn a_card_that_cannot_be_read_is_told() {
    let (root, sysfs) = planted();
    fs::write(root.path().join("sys/bus/pci/devices/0000:08:00.0/device"), "?\n").unwrap();
    let scan = sysfs.scan().unwrap();
    assert_eq!((scan.parents.len(), scan.findings[0].about.as_str()), (5, "0000:08:00.0"));
}

#[test]
fn what_cannot_be_listed_is_no_empty_list() {
    let (root, sysfs) = planted();
    let devices = root.path().join("sys/bus/mdev/devices");
    fs::remove_file(devices.join(DEVICE)).unwrap();
    fs::write(devices.join(DEVICE), "no link").unwrap();
    assert!(matches!(sysfs.scan(), Err(HostError::Unreadable { .. })));
    assert!(matches!(sysfs.mdev(DEVICE.parse().unwrap()), Err(HostError::Unreadable { .. })));
    assert!(matches!(
        sysfs.create(&new(DEVICE, "0000:84:00.0", "nvidia-18")),
        Err(HostError::Unreadable { .. })
    ));
}

#[test]
fn a_device_is_made_by_one_write_of_its_uuid() {
    for (parent, type_id, place) in [
        ("0000:84:00.0", "nvidia-18", "bus/pci/devices/0000:84:00.0"),
        ("mtty_mtty", "mtty-1", "devices/virtual/mtty/mtty"),
    ] {
        let (root, sysfs) = planted();
        let err = sysfs.create(&new(FRESH, parent, type_id)).unwrap_err();
        assert!(
            matches!(&err, HostError::OutcomeUnknown(text) if text.contains(FRESH)),
            "no device came: {err}"
        );
        let file =
            root.path().join("sys").join(place).join("mdev_supported_types").join(type_id).join("create");
        assert_eq!(fs::read_to_string(file).unwrap(), FRESH);
    }
}

#[test]
fn a_device_that_is_there_is_not_made_again() {
    let (root, sysfs) = planted();
    sysfs.create(&new(DEVICE, "0000:84:00.0", "nvidia-18")).unwrap();
    for (parent, type_id) in [("0000:84:00.0", "nvidia-22"), ("0000:85:00.0", "nvidia-18")] {
        let err = sysfs.create(&new(DEVICE, parent, type_id)).unwrap_err();
        assert!(matches!(&err, HostError::Refused(text) if text.contains("0000:84:00.0")), "{err}");
    }
    let file = types(root.path(), "0000:84:00.0").join("nvidia-18/create");
    assert_eq!(fs::read_to_string(file).unwrap(), "");
}

#[test]
fn what_cannot_be_made_is_refused_before_the_write() {
    let (root, sysfs) = planted();
    let create = |parent, type_id| sysfs.create(&new(FRESH, parent, type_id)).unwrap_err();
    assert!(
        matches!(create("0000:84:00.0", "nvidia-22"), HostError::NoRoom(text) if text.contains("nvidia-22"))
    );
    assert!(
        matches!(create("0000:84:00.0", "nvidia-9"), HostError::Refused(text) if text.contains("nvidia-9"))
    );
    for gone in ["0000:99:00.0", "mtty_other", "0000:08:00.0"] {
        assert!(matches!(create(gone, "nvidia-18"), HostError::NotFound(text) if text.contains(gone)));
    }
    let of_type = types(root.path(), "0000:84:00.0").join("nvidia-18");
    fs::write(of_type.join("available_instances"), "some\n").unwrap();
    assert!(matches!(create("0000:84:00.0", "nvidia-18"), HostError::Unreadable { .. }));
    assert_eq!(fs::read_to_string(of_type.join("create")).unwrap(), "");
}

#[test]
fn a_tree_without_mdev_is_empty_and_one_without_sysfs_is_none() {
    let root = tempfile::tempdir().unwrap();
    let sysfs = Sysfs::new(root.path());
    assert!(!sysfs.is_mounted());
    fs::create_dir_all(root.path().join("sys/class")).unwrap();
    assert!(sysfs.is_mounted());
    assert_eq!(sysfs.scan().unwrap(), HostScan::default());
}
