//! Discovery through libvirt's test driver, in process, with sysfs and mdevctl's files beside it.
#![cfg(feature = "libvirt")]
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
use std::sync::Arc;

use fixture::{case, plant, plant_mdevctl, test_host, xml_files};
use mdevirt::host::libvirt::LibvirtHost;
use mdevirt::host::sysfs::Sysfs;
use mdevirt::host::{HostError, Hypervisor, NodeDevices};
use mdevirt::model::{
    DeviceApi, FindingKind, Framework, HostScan, Mdev, MdevUuid, NewMdev, Parent, TypeFacts,
};
use mdevirt::xml::render::Templates;
use tempfile::TempDir;

/// A host from the node devices of a case; `root` may be planted before the first call.
fn host_of(name: &str) -> (TempDir, Arc<LibvirtHost>) {
    let root = tempfile::tempdir().unwrap();
    // libvirt prints a device without a type but does not take it from a file.
    let mut files = xml_files(&case(name).join("nodedev"));
    files.retain(|path| path.file_name().unwrap() != "mdev_c.xml");
    let uri = test_host(root.path(), &files);
    let host = LibvirtHost::new(uri, Sysfs::new(root.path()), Templates::load(&[]).unwrap());
    (root, host)
}

fn parents(scan: &HostScan) -> Vec<String> {
    scan.parents.iter().map(|parent| parent.addr.to_string()).collect()
}

fn about(scan: &HostScan, kind: FindingKind) -> Vec<&str> {
    scan.findings.iter().filter(|f| f.kind == kind).map(|f| f.about.as_str()).collect()
}

fn keys(mdevs: &[Mdev]) -> Vec<String> {
    mdevs.iter().map(|mdev| format!("{} {}", &mdev.uuid.to_string()[..8], mdev.parent)).collect()
}

/// Case 03: names of both forms, parents from `<parent>`, and a look-up by UUID whatever the form.
#[tokio::test(flavor = "multi_thread")]
async fn devices_are_known_by_their_xml_whatever_their_name() {
    let (_root, host) = host_of("03-mdev-node-names");
    let scan = host.scan().await.unwrap();
    assert_eq!(keys(&scan.mdevs), ["7035cae6 0000:3b:00.0", "e38f8857 0000:3b:00.0"]);
    assert_eq!(scan.findings, []);
    for uuid in ["e38f8857-e8ba-4559-b696-d9c39e499710", "7035cae6-b8e5-4c7a-926a-48effcbe0ea3"] {
        let found = host.find(uuid.parse().unwrap()).await.unwrap();
        assert_eq!(found.len(), 1, "{uuid}");
        assert_eq!(found[0].type_id.as_ref().unwrap().as_str(), "nvidia-231");
        assert!(found[0].active && found[0].defined, "the test driver cannot tell, so they are both");
    }
    let other: MdevUuid = "ffffffff-e8ba-4559-b696-d9c39e499710".parse().unwrap();
    assert_eq!(host.find(other).await.unwrap(), []);
}

/// Case 04: one UUID below two parents is two devices.
#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_uuid_and_parent() {
    let (root, host) = host_of("04-same-uuid-two-parents");
    plant_mdevctl(&case("04-same-uuid-two-parents").join("mdevctl.d"), root.path());
    let scan = host.scan().await.unwrap();
    assert_eq!(
        keys(&scan.mdevs),
        ["1fc01460 0000:3b:00.0", "1fc01460 0000:86:00.0", "e642cfd7 0000:86:00.0"]
    );
    let uuid = "1fc01460-67d7-4303-a5ea-69a57b994f50".parse().unwrap();
    assert_eq!(host.find(uuid).await.unwrap().len(), 2);
    // The UUID is active elsewhere: whatever libvirt would do, it is not asked.
    let new = NewMdev {
        uuid,
        parent: "0000:86:00.0".parse().unwrap(),
        type_id: "nvidia-231".parse().unwrap(),
        device_api: DeviceApi::VfioPci,
    };
    let refused = host.create(&new).await.unwrap_err();
    assert!(matches!(&refused, HostError::Refused(text) if text.contains("0000:3b:00.0")), "{refused}");
}

/// Case 04 after libvirt stopped to follow: the kernel says what is active, the directory what is defined.
#[tokio::test(flavor = "multi_thread")]
async fn a_stale_list_is_corrected_and_told() {
    let (root, host) = host_of("04-same-uuid-two-parents");
    plant_mdevctl(&case("04-same-uuid-two-parents").join("mdevctl.d"), root.path());
    let devices = root.path().join("sys/bus/mdev/devices");
    fs::create_dir_all(&devices).unwrap();
    let (twice, gone) = ("1fc01460-67d7-4303-a5ea-69a57b994f50", "e642cfd7-55f9-4481-b9d0-b08b26f7a0f0");
    symlink(format!("../../../devices/0000:3b:00.0/{twice}"), devices.join(twice)).unwrap();
    // The second card has lost its driver.
    fs::create_dir_all(root.path().join("sys/class/mdev_bus/0000:3b:00.0")).unwrap();
    let scan = host.scan().await.unwrap();
    assert_eq!(keys(&scan.mdevs), ["1fc01460 0000:3b:00.0", "1fc01460 0000:86:00.0"]);
    assert_eq!(
        scan.mdevs.iter().map(|m| (m.active, m.defined)).collect::<Vec<_>>(),
        [(true, true), (false, true)]
    );
    let without: Vec<bool> = scan.mdevs.iter().map(|mdev| mdev.parent_missing).collect();
    assert_eq!(without, [false, true]);
    assert!(about(&scan, FindingKind::Unknown).contains(&format!("mdev {gone} on 0000:86:00.0").as_str()));
    assert_eq!(host.find(gone.parse().unwrap()).await.unwrap(), []);
    assert_eq!(host.find(twice.parse().unwrap()).await.unwrap(), scan.mdevs);
}

/// Case 13: a definition whose card is gone keeps the address of its card, which here only the directory knows.
#[tokio::test(flavor = "multi_thread")]
async fn a_definition_without_its_card_is_set_aside() {
    let name = "13-inactive-definition-missing-parent";
    let (root, host) = host_of(name);
    plant_mdevctl(&case(name).join("mdevctl.d"), root.path());
    let scan = host.scan().await.unwrap();
    assert_eq!(parents(&scan), ["0000:3b:00.0"]);
    let lost: Vec<&Mdev> = scan.mdevs.iter().filter(|mdev| mdev.parent_missing).collect();
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].parent, "0000:af:00.0".parse().unwrap());
    assert!(!lost[0].active && lost[0].defined);
    // `status` tells it, from the mark.
    assert_eq!(scan.findings, []);
    let found = host.find(lost[0].uuid).await.unwrap();
    assert_eq!(keys(&found), ["de096639 0000:af:00.0"]);
}

/// Case 14: libvirt lists no definition at all, for mdevctl's listing ends at the first broken file. Nothing is taken for
/// absent because of that.
#[tokio::test(flavor = "multi_thread")]
async fn definitions_that_libvirt_misses_are_told_and_kept() {
    let (root, host) = host_of("14-broken-mdevctl-json");
    plant_mdevctl(&case("14-broken-mdevctl-json").join("mdevctl.d"), root.path());
    let scan = host.scan().await.unwrap();
    assert_eq!(keys(&scan.mdevs), ["0a5b022e 0000:3b:00.0", "6e5515ac 0000:86:00.0"]);
    assert!(scan.mdevs.iter().all(|mdev| mdev.defined && !mdev.active && !mdev.parent_missing));
    assert_eq!(about(&scan, FindingKind::Unknown), ["/etc/mdevctl.d"]);
    assert_eq!(about(&scan, FindingKind::MalformedInput).len(), 2);
}

/// Case 28: parents without any PCI field.
#[tokio::test(flavor = "multi_thread")]
async fn parents_need_not_be_pci_devices() {
    let (_root, host) = host_of("28-non-gpu-mdevs/s390");
    let scan = host.scan().await.unwrap();
    assert_eq!(parents(&scan), ["ap_matrix", "css_0_0_00b2"]);
    assert_eq!(scan.parents[0].types[0].device_api, DeviceApi::VfioAp);
    assert!(scan.parents.iter().all(|parent| parent.vendor_id.is_none()));
    let card = host.scan_card(&"css_0_0_00b2".parse().unwrap()).await.unwrap();
    assert_eq!(card.len(), 1);
}

/// Case 30: what has no mdev types is no parent, and the tree beside libvirt agrees with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_vf_without_types_is_no_parent_here() {
    let (root, host) = host_of("30-mixed-host");
    plant(&case("30-mixed-host").join("sysfs.txt"), root.path());
    let scan = host.scan().await.unwrap();
    assert_eq!(parents(&scan), ["0000:3b:00.0"]);
    assert_eq!(scan.findings, []);
    assert_eq!(host.scan_card(&"0000:26:00.0".parse().unwrap()).await.unwrap(), []);
    assert_eq!(host.scan_card(&"0000:99:00.0".parse().unwrap()).await.unwrap(), []);
}

/// A card with VFs: node devices made from case 07's tree.
fn sriov_host(root: &Path) -> Arc<LibvirtHost> {
    plant(&case("07-sriov-homogeneous-collapse").join("sysfs-before.txt"), root);
    let function = |number: u8, inside: &str| {
        format!(
            "<device><name>pci_0000_e8_00_{number}</name><parent>computer</parent><capability type='pci'>\
             <domain>0</domain><bus>232</bus><slot>0</slot><function>{number}</function>\
             <product id='0x2235'>GA102GL [A40]</product><vendor id='0x10de'>NVIDIA</vendor>{inside}</capability></device>"
        )
    };
    let offered = "<capability type='phys_function'><address domain='0x0000' bus='0xe8' slot='0x00' function='0x0'/>\
         </capability><capability type='mdev_types'><type id='nvidia-558'><name>NVIDIA A40-2Q</name>\
         <deviceAPI>vfio-pci</deviceAPI><availableInstances>1</availableInstances></type></capability>";
    let mut devices = function(0, "");
    devices.extend((4..=7).map(|number| function(number, offered)));
    fs::write(root.join("devices.xml"), devices).unwrap();
    let uri = test_host(root, &[root.join("devices.xml")]);
    LibvirtHost::new(uri, Sysfs::new(root), Templates::load(&[]).unwrap())
}

/// The physical function comes with its VFs though it offers nothing, and the card's limit comes from the description.
#[tokio::test(flavor = "multi_thread")]
async fn a_card_is_its_functions() {
    let root = tempfile::tempdir().unwrap();
    let host = sriov_host(root.path());
    let scan = host.scan().await.unwrap();
    let all = ["0000:e8:00.0", "0000:e8:00.4", "0000:e8:00.5", "0000:e8:00.6", "0000:e8:00.7"];
    assert_eq!(parents(&scan), all);
    let card = &scan.parents[0];
    assert_eq!((card.framework, card.product.as_deref()), (None, Some("GA102GL [A40]")));
    for vf in &scan.parents[1..] {
        assert_eq!((vf.framework, vf.card()), (Some(Framework::Mdev), card.addr.clone()));
        assert_eq!(vf.types[0].facts.max_instances, Some(24));
    }
    let again = host.scan_card(&card.addr).await.unwrap();
    assert_eq!(again, scan.parents);
    let vf = host.scan_card(&"0000:e8:00.5".parse().unwrap()).await.unwrap();
    assert_eq!(vf.len(), 1, "a VF is no card, but what is asked for is looked at");
}

/// libvirt leaves a parent out without a word when one attribute cannot be read.
#[tokio::test(flavor = "multi_thread")]
async fn what_libvirt_leaves_out_is_told() {
    let root = tempfile::tempdir().unwrap();
    let host = sriov_host(root.path());
    let bus = root.path().join("sys/class/mdev_bus");
    fs::create_dir_all(bus.join("0000:e8:00.4")).unwrap();
    fs::create_dir_all(bus.join("0000:e8:01.0")).unwrap();
    let devices = root.path().join("sys/bus/mdev/devices");
    fs::create_dir_all(&devices).unwrap();
    let uuid = "e642cfd7-55f9-4481-b9d0-b08b26f7a0f0";
    symlink(format!("../../../devices/0000:e8:00.5/{uuid}"), devices.join(uuid)).unwrap();
    fs::remove_file(root.path().join("sys/bus/pci/devices/0000:e8:00.0/virtfn2")).unwrap();

    let scan = host.scan().await.unwrap();
    let unknown = about(&scan, FindingKind::Unknown);
    assert_eq!(unknown, ["0000:e8:01.0", &format!("mdev {uuid} on 0000:e8:00.5")]);
    assert_eq!(about(&scan, FindingKind::ConfigWarning), ["0000:e8:00.0"]);
    assert_eq!(keys(&scan.mdevs), ["e642cfd7 0000:e8:00.5"]);
    assert!(scan.mdevs[0].active && !scan.mdevs[0].defined);
    // It cannot be removed through a libvirt that does not know it, and that is no success.
    let parent = "0000:e8:00.5".parse().unwrap();
    let stays = host.remove(uuid.parse().unwrap(), &parent).await.unwrap_err();
    assert!(matches!(stays, HostError::Unreadable { .. }), "{stays}");
}

/// A description that cannot be read leaves the card's limit unknown; such a parent is not offered.
#[tokio::test(flavor = "multi_thread")]
async fn a_parent_with_an_unknown_limit_is_left_out() {
    let root = tempfile::tempdir().unwrap();
    let host = sriov_host(root.path());
    let types = root.path().join("sys/bus/pci/devices/0000:e8:00.6/mdev_supported_types/nvidia-558");
    fs::remove_file(types.join("description")).unwrap();
    fs::create_dir(types.join("description")).unwrap();
    let scan = host.scan().await.unwrap();
    assert!(!parents(&scan).contains(&"0000:e8:00.6".to_owned()));
    assert_eq!(about(&scan, FindingKind::Unknown), ["0000:e8:00.6"]);
    let card = host.scan_card(&"0000:e8:00.0".parse().unwrap()).await.unwrap_err();
    assert!(matches!(card, HostError::Unreadable { .. }), "{card}");
}

/// One device whose XML cannot be understood hides no other.
#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_cannot_be_understood_is_named() {
    let root = tempfile::tempdir().unwrap();
    let files = xml_files(&case("13-inactive-definition-missing-parent").join("nodedev"));
    let uri = test_host(root.path(), &files);
    let host = LibvirtHost::new(uri, Sysfs::new(root.path()), Templates::load(&[]).unwrap());
    // Without mdevctl's directory nothing tells which card the definition below `computer` had.
    let scan = host.scan().await.unwrap();
    assert_eq!(scan.mdevs.len(), 2);
    assert_eq!(
        about(&scan, FindingKind::MalformedInput),
        ["mdev_de096639_f9f2_4a2e_9f7d_dd82bbf293dc_0000_af_00_0"]
    );
}

/// The test driver makes no mediated device, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_cannot_create_refuses() {
    let (_root, host) = host_of("03-mdev-node-names");
    let new = NewMdev {
        uuid: "0a5b022e-bdb7-42e6-b3ce-490b4ced4963".parse().unwrap(),
        parent: "0000:3b:00.0".parse().unwrap(),
        type_id: "nvidia-231".parse().unwrap(),
        device_api: DeviceApi::VfioPci,
    };
    let refused = host.create(&new).await.unwrap_err();
    assert!(matches!(refused, HostError::Refused(_)), "{refused:?}");
    assert_eq!(host.find(new.uuid).await.unwrap(), []);
    host.remove(new.uuid, &new.parent).await.unwrap();
    let facts: Vec<TypeFacts> = host
        .scan()
        .await
        .unwrap()
        .parents
        .into_iter()
        .flat_map(|p: Parent| p.types)
        .map(|t| t.facts)
        .collect();
    assert!(facts.iter().all(|facts| *facts == TypeFacts::default()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_without_mdevs_is_empty_and_no_error() {
    let root = tempfile::tempdir().unwrap();
    let host = LibvirtHost::new("test:///default", Sysfs::new(root.path()), Templates::load(&[]).unwrap());
    assert_eq!(host.scan().await.unwrap(), HostScan::default());
    assert!(!host.domains().await.unwrap().is_empty());
}
