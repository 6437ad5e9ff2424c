//! What is read from sysfs and from mdevctl's directory, on planted trees.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on shall stop"
)]

mod fixture;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use fixture::{case, plant, plant_mdevctl};
use mdevirt::host::HostError;
use mdevirt::host::mdevctl_d::MdevctlDir;
use mdevirt::host::sysfs::{SriovCounts, Sysfs};
use mdevirt::model::{DeviceApi, FindingKind, Framework, MdevType, Parent, PciAddress, TypeFacts};
use tempfile::TempDir;

fn planted(description: &Path) -> (TempDir, Sysfs) {
    let root = tempfile::tempdir().unwrap();
    plant(description, root.path());
    let sysfs = Sysfs::new(root.path());
    (root, sysfs)
}

fn pci(text: &str) -> PciAddress {
    text.parse().unwrap()
}

fn parent(addr: &str, driver: &str, types: &[&str]) -> Parent {
    let offered = |id: &&str| MdevType {
        id: id.parse().unwrap(),
        name: None,
        device_api: DeviceApi::VfioPci,
        available_instances: 1,
        facts: TypeFacts::default(),
    };
    Parent {
        addr: addr.parse().unwrap(),
        framework: Some(Framework::Mdev),
        physical_function: None,
        vendor_id: None,
        device_id: None,
        product: None,
        numa_node: None,
        iommu_group: None,
        driver: Some(driver.to_owned()),
        types: types.iter().map(offered).collect(),
    }
}

/// Case 29: six cards in four groups, each under its own address.
#[test]
fn groups_name_their_members_and_replace_none() {
    let (_root, sysfs) = planted(&case("29-device-keys-and-order").join("sysfs.txt"));
    let groups = sysfs.iommu_groups().unwrap();
    assert_eq!(groups.keys().copied().collect::<Vec<_>>(), [14, 31, 45, 58]);
    assert_eq!(groups[&14], [pci("0000:03:00.0"), pci("0000:04:00.0")]);
    assert_eq!(groups[&45], [pci("0000:41:00.0"), pci("0000:42:00.0")]);
    assert_eq!(sysfs.driver(pci("0000:03:00.0")).unwrap().as_deref(), Some("vfio-pci"));
}

/// Case 29: VF 10 comes after VF 9, and VF 7 is a gap.
#[test]
fn virtual_functions_come_in_number_order_with_gaps() {
    let (_root, sysfs) = planted(&case("29-device-keys-and-order").join("sysfs.txt"));
    let card = pci("0000:e8:00.0");
    let functions = sysfs.virtual_functions(card).unwrap();
    let numbers: Vec<u32> = functions.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11]);
    let first: Vec<PciAddress> = functions.iter().take(3).map(|(_, addr)| *addr).collect();
    assert_eq!(first, [pci("0000:e8:00.4"), pci("0000:e8:00.5"), pci("0000:e8:00.6")]);
    assert_eq!(functions[9], (10, pci("0000:e8:01.6")));
    assert_eq!(sysfs.sriov(card).unwrap(), Some(SriovCounts { enabled: 12, most: None }));
    assert_eq!(sysfs.sriov(pci("0000:03:00.0")).unwrap(), None);
}

/// Case 30: a physical and a virtual function have the same ids and are told apart by `physfn`.
#[test]
fn a_virtual_function_knows_its_card() {
    let (_root, sysfs) = planted(&case("30-mixed-host").join("sysfs.txt"));
    assert_eq!(sysfs.physical_function(pci("0000:26:00.5")).unwrap(), Some(pci("0000:26:00.0")));
    assert_eq!(sysfs.physical_function(pci("0000:26:00.0")).unwrap(), None);
    assert_eq!(sysfs.mdev_bus().unwrap(), ["0000:3b:00.0"]);
    assert_eq!(sysfs.active_mdevs().unwrap(), []);
    assert!(sysfs.has_function(pci("0000:26:00.6")).unwrap());
    assert!(!sysfs.has_function(pci("0000:99:00.0")).unwrap());
}

/// Case 01: a description of five lines, and a type without one; both are in order.
#[test]
fn descriptions_are_optional() {
    let (_root, sysfs) = planted(&case("01-type-without-name").join("sysfs.txt"));
    let mut igd = parent("0000:00:02.0", "i915", &["i915-GVTg_V5_4", "i915-GVTg_V5_8"]);
    sysfs.describe(&mut igd).unwrap();
    assert_eq!(igd.types[0].facts.description.len(), 5);
    assert_eq!(igd.types[1].facts, TypeFacts::default());
}

/// Case 06: the directory is looked for under the id that this parent really has.
#[test]
fn a_prefix_is_a_part_of_the_id() {
    let (root, sysfs) = planted(&case("06-type-prefix-by-driver").join("sysfs.txt"));
    let types = root.path().join("sys/class/mdev_bus/0000:e8:04.0/mdev_supported_types/vfio-pci-575");
    fs::write(types.join("description"), "framebuffer=24576M, max_instance=2\n").unwrap();
    let mut vf = parent("0000:e8:04.0", "vfio-pci", &["nvidia-575", "vfio-pci-575"]);
    sysfs.describe(&mut vf).unwrap();
    assert_eq!((vf.types[0].facts.max_instances, vf.types[1].facts.max_instances), (None, Some(2)));
}

/// Case 07, and a driver that is bound anew and states other facts under the same ids.
#[test]
fn descriptions_are_read_once_for_each_registration() {
    let (root, sysfs) = planted(&case("07-sriov-homogeneous-collapse").join("sysfs-before.txt"));
    let mut vf = parent("0000:e8:00.4", "nvidia", &["nvidia-558"]);
    sysfs.describe(&mut vf).unwrap();
    assert_eq!((vf.types[0].facts.max_instances, vf.types[0].facts.framebuffer_mib), (Some(24), Some(2048)));

    let types = root.path().join("sys/bus/pci/devices/0000:e8:00.4/mdev_supported_types");
    fs::write(types.join("nvidia-558/description"), "max_instance=1\n").unwrap();
    sysfs.describe(&mut vf).unwrap();
    assert_eq!(vf.types[0].facts.max_instances, Some(24), "the same registration is not read again");

    fs::rename(&types, root.path().join("old")).unwrap();
    fs::create_dir_all(types.join("nvidia-558")).unwrap();
    fs::write(types.join("nvidia-558/description"), "max_instance=3\n").unwrap();
    sysfs.describe(&mut vf).unwrap();
    assert_eq!(vf.types[0].facts.max_instances, Some(3));

    fs::write(types.join("nvidia-558/description"), "max_instance=4\n").unwrap();
    vf.driver = Some("other".to_owned());
    sysfs.describe(&mut vf).unwrap();
    assert_eq!(vf.types[0].facts.max_instances, Some(4), "another driver is another registration");
}

#[test]
fn active_devices_are_known_by_their_links() {
    let root = tempfile::tempdir().unwrap();
    let devices = root.path().join("sys/bus/mdev/devices");
    fs::create_dir_all(&devices).unwrap();
    let (here, bare) = ("1fc01460-67d7-4303-a5ea-69a57b994f50", "e642cfd7-55f9-4481-b9d0-b08b26f7a0f0");
    let card = root.path().join("sys/devices/pci0000:3a/0000:3b:00.0");
    fs::create_dir_all(card.join(here)).unwrap();
    symlink("../../../devices/pci0000:3a/0000:3b:00.0/".to_owned() + here, devices.join(here)).unwrap();
    symlink("../mdev_supported_types/nvidia-231", card.join(here).join("mdev_type")).unwrap();
    symlink("../../../devices/virtual/mtty/mtty/".to_owned() + bare, devices.join(bare)).unwrap();
    let sysfs = Sysfs::new(root.path());
    assert_eq!(sysfs.active_mdevs().unwrap(), [here.parse().unwrap(), bare.parse().unwrap()]);
    let found = sysfs.active_mdev(here.parse().unwrap()).unwrap().unwrap();
    assert_eq!((found.parent.as_str(), found.type_id), ("0000:3b:00.0", Some("nvidia-231".parse().unwrap())));
    let found = sysfs.active_mdev(bare.parse().unwrap()).unwrap().unwrap();
    assert_eq!((found.parent.as_str(), found.type_id), ("mtty", None));
    assert_eq!(sysfs.active_mdev("ffffffff-55f9-4481-b9d0-b08b26f7a0f0".parse().unwrap()).unwrap(), None);
}

#[test]
fn kernel_names_of_parents_become_libvirts() {
    let root = tempfile::tempdir().unwrap();
    let mtty = root.path().join("sys/class/mdev_bus/mtty");
    fs::create_dir_all(&mtty).unwrap();
    symlink("../../mtty", mtty.join("subsystem")).unwrap();
    let sysfs = Sysfs::new(root.path());
    for (kernel, node) in [
        ("0000:3b:00.0", Some("pci_0000_3b_00_0")),
        ("0.0.00b2", Some("css_0_0_00b2")),
        ("matrix", Some("ap_matrix")),
        ("mtty", Some("mtty_mtty")),
        ("gone", None),
        ("../../etc", None),
    ] {
        assert_eq!(
            sysfs.parent_called(kernel).unwrap().map(|addr| addr.node_name()).as_deref(),
            node,
            "{kernel}"
        );
    }
}

/// A read that fails is not an absence.
#[test]
fn what_cannot_be_read_is_no_answer() {
    let root = tempfile::tempdir().unwrap();
    let device = root.path().join("sys/bus/pci/devices/0000:e8:00.0");
    fs::create_dir_all(device.join("sriov_numvfs")).unwrap();
    fs::write(device.join("driver"), "no link").unwrap();
    let sysfs = Sysfs::new(root.path());
    let addr = pci("0000:e8:00.0");
    assert!(matches!(sysfs.sriov(addr), Err(HostError::Unreadable { .. })));
    assert!(matches!(sysfs.driver(addr), Err(HostError::Unreadable { .. })));
    fs::remove_dir(device.join("sriov_numvfs")).unwrap();
    fs::write(device.join("sriov_numvfs"), "many\n").unwrap();
    assert!(matches!(sysfs.sriov(addr), Err(HostError::Unreadable { .. })));
}

/// Case 14: two definitions can be used, two are named with their paths, notes and scripts are passed over, no byte moves.
#[test]
fn broken_definitions_are_named_and_left_alone() {
    let root = tempfile::tempdir().unwrap();
    plant_mdevctl(&case("14-broken-mdevctl-json").join("mdevctl.d"), root.path());
    let all = MdevctlDir::new(root.path()).read().unwrap();
    let good: Vec<String> = all
        .all
        .iter()
        .filter_map(|d| Some(format!("{} {} {}", d.parent, d.uuid, d.type_id.as_ref()?)))
        .collect();
    assert_eq!(
        good,
        [
            "0000:3b:00.0 0a5b022e-bdb7-42e6-b3ce-490b4ced4963 nvidia-231",
            "0000:86:00.0 6e5515ac-409b-4808-9059-2d41c39c346d nvidia-232"
        ]
    );
    let about: Vec<&str> = all.findings.iter().map(|finding| finding.about.as_str()).collect();
    assert_eq!(
        about,
        [
            "/etc/mdevctl.d/0000:3b:00.0/ec3c541c-ac94-46ad-b97c-2d22c5a89f46",
            "/etc/mdevctl.d/0000:86:00.0/2808d0bd-ef6f-4f34-9479-bcf8a4191037"
        ]
    );
    assert!(all.findings.iter().all(|finding| finding.kind == FindingKind::MalformedInput));
    let broken = "0000:3b:00.0/ec3c541c-ac94-46ad-b97c-2d22c5a89f46";
    assert_eq!(
        fs::read(root.path().join("etc/mdevctl.d").join(broken)).unwrap(),
        fs::read(case("14-broken-mdevctl-json").join("mdevctl.d").join(broken)).unwrap()
    );
}

/// Case 32: a type and an attribute that would be paths.
#[test]
fn definitions_that_lead_elsewhere_are_malformed() {
    let root = tempfile::tempdir().unwrap();
    plant_mdevctl(&case("32-hostile-names").join("mdevctl.d"), root.path());
    let all = MdevctlDir::new(root.path()).read().unwrap();
    assert!(all.all.iter().all(|definition| definition.type_id.is_none()));
    let about: String = all.findings.iter().map(|finding| finding.about.as_str()).collect();
    assert!(about.contains("4b521763-face-44e3-8e9e-6145592e16ae"));
    assert!(about.contains("eb88840c-4ba3-404e-97ea-dd2ed426b97c"));
}

/// Case 04, step 3: one of two definitions of a UUID goes, the other stays byte for byte.
#[test]
fn one_definition_of_two_is_removed() {
    let root = tempfile::tempdir().unwrap();
    let from = case("04-same-uuid-two-parents").join("mdevctl.d");
    plant_mdevctl(&from, root.path());
    let definitions = MdevctlDir::new(root.path());
    let uuid = "1fc01460-67d7-4303-a5ea-69a57b994f50".parse().unwrap();
    let parents = || definitions.of(uuid).unwrap().into_iter().map(|d| d.parent).collect::<Vec<_>>();
    assert_eq!(parents(), ["0000:3b:00.0", "0000:86:00.0"]);
    definitions.remove(uuid, &"0000:86:00.0".parse().unwrap()).unwrap();
    definitions.remove(uuid, &"0000:86:00.0".parse().unwrap()).unwrap();
    assert_eq!(parents(), ["0000:3b:00.0"]);
    let kept = format!("0000:3b:00.0/{uuid}");
    assert_eq!(
        fs::read(root.path().join("etc/mdevctl.d").join(&kept)).unwrap(),
        fs::read(from.join(&kept)).unwrap()
    );
}
