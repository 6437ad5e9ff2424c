//! Parents that are no plain GPU, and what identifies a device.
//!
//! | case | what is right | test |
//! |---|---|---|
//! | 28 | the table, 1 | `parents_need_no_pci`, `types_told_twice_count_once` |
//! | 28 | 2, 3, 6 | later: attributes of vfio-ap; that they are read in order is tested in `tests/xml` |
//! | 28 | 4 | `models_follow_the_device_api`, `one_ap_matrix_for_a_vm` |
//! | 28 | 5 | `an_empty_configuration_removes_nothing`; the reconcile run itself is later |
//! | 29 | 1, 2, 3, 4, 5 | `groups_and_functions_in_order`: the cards as if they could be sliced, since mdevirt lists no others |
//! | 29 | 2, one VM for a group | later: vendor-vfio; a mediated device has a group of its own |

use mdevirt::host::sim::{Change, ForeignMdev};
use mdevirt::model::{DisplayWish, FaultKind};
use mdevirt::service::api::{SpawnRequest, UseCases};
use mdevirt::xml::domain::DomainDoc;

use crate::listing::Listing;
use crate::setup::{Case, Setup, two_lives};
use crate::world::domain_xml;

const S390: &str = "28-non-gpu-mdevs/s390";
const X86: &str = "28-non-gpu-mdevs/x86";

/// 28
#[tokio::test]
async fn parents_need_no_pci() {
    let host = Setup::new(S390).nova("nova.conf").start().await;
    assert_eq!(host.totals().await, ["ap_matrix CUSTOM_VFIO_AP 4", "css_0_0_00b2 CUSTOM_VFIO_CCW 1"]);
    assert_eq!(host.record("ap_matrix").await.provider, "h1_ap_matrix");
    for device in host.devices().await {
        assert_eq!((&device.vendor_id, &device.device_id, device.physical_function), (&None, &None, None));
        assert_eq!((device.iommu_group, device.status.as_str()), (None, "ok"));
    }
    assert_eq!(host.findings().await, [""; 0]);
    assert_eq!(
        host.claimed("resources:CUSTOM_VFIO_CCW=1").await.claims[0].parent.to_string(),
        "css_0_0_00b2"
    );
    for _ in 0..4 {
        host.claimed("resources:CUSTOM_VFIO_AP=1").await;
    }
    assert_eq!(host.totals().await, ["ap_matrix CUSTOM_VFIO_AP 4", "css_0_0_00b2 CUSTOM_VFIO_CCW 1"]);
    let (kind, text) = host.refused("resources:CUSTOM_VFIO_AP=1").await;
    assert_eq!(kind, FaultKind::NoCapacity);
    assert!(text.contains("max_instances = 4"), "{text}");
}

/// 28, both shapes of mtty
#[tokio::test]
async fn types_told_twice_count_once() {
    for shape in ["nodedev", "nodedev-doubled"] {
        let listing = Listing::of_files(&crate::fixture::case(X86).join(shape));
        let host = Setup::new(X86).on(listing).nova("nova.conf").start().await;
        assert_eq!(host.totals().await, ["mtty_mtty VGPU 12"], "{shape}");
        let held = host.claimed("resources:VGPU=1").await;
        assert_eq!(held.claims[0].mdev_type.as_str(), "mtty-2");
        assert_eq!(host.totals().await, ["mtty_mtty VGPU 12"], "{shape}");
        assert_eq!(host.free("mtty_mtty").await, 11);
        assert_eq!(host.findings().await, [""; 0]);
    }
}

fn spawn(xml: String, flavor: &str) -> SpawnRequest {
    SpawnRequest {
        domain_xml: xml,
        flavor: flavor.to_owned(),
        display: DisplayWish::Off,
        operation_id: None,
        dry_run: false,
    }
}

/// 28, 4
#[tokio::test]
async fn models_follow_the_device_api() {
    let host = Setup::new(S390).nova("nova.conf").start().await;
    let flavor = "resources1:CUSTOM_VFIO_AP=1,resources2:CUSTOM_VFIO_CCW=1";
    let job = host.done(host.service().spawn(spawn(domain_xml("z-01"), flavor)).await).await;
    let xml = host.domain_xml(job.instance).await;
    let doc = DomainDoc::parse(&xml).unwrap();
    let models: Vec<&str> = doc.hostdevs.iter().map(|h| h.model().unwrap().as_str()).collect();
    assert_eq!(models, ["vfio-ap", "vfio-ccw"]);
    assert!(!xml.contains("type='pci'") && !xml.contains("display="), "{xml}");
}

/// 28, 4: whatever is configured and however it is asked for.
#[tokio::test]
async fn one_ap_matrix_for_a_vm() {
    let table = "[mdev.\"vfio_ap-passthrough\"]";
    let host = Setup::new(S390)
        .nova("nova.conf")
        .edit(table, &format!("{table}\nseveral_per_vm = true"))
        .start()
        .await;
    assert_eq!(host.record("ap_matrix").await.max_unit, 1);
    for two in ["resources:CUSTOM_VFIO_AP=2", "resources1:CUSTOM_VFIO_AP=1,resources2:CUSTOM_VFIO_AP=1"] {
        let (kind, text) = host.refused(two).await;
        assert_eq!(kind, FaultKind::NoCapacity);
        assert!(text.contains("ap_matrix: "), "{text}");
    }
    let theirs = host.claimed("resources:CUSTOM_VFIO_AP=1").await.claims[0].uuid;
    host.done(
        host.service().release(&host.service().instances().await.unwrap()[0].uuid.to_string(), None).await,
    )
    .await;
    let foreign = ForeignMdev {
        uuid: theirs,
        parent: "ap_matrix".parse().unwrap(),
        type_id: "vfio_ap-passthrough".parse().unwrap(),
    };
    host.sim.change(Change::ForeignMdev(foreign)).await.unwrap();
    let before = host.scan().await;
    let xml = domain_xml("z-02").replace(
        "  </devices>",
        &format!(
            "  <hostdev mode='subsystem' type='mdev' model='vfio-ap'><source><address uuid='{theirs}'/></source></hostdev></devices>"
        ),
    );
    let fault = host.service().spawn(spawn(xml, "resources:CUSTOM_VFIO_AP=1")).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::InvalidDomainXml);
    assert!(
        fault.message.contains("only one vfio-ap") && fault.message.contains(&theirs.to_string()),
        "{fault}"
    );
    host.assert_untouched(&before).await;
}

/// 28, 5: at a reload and at the next start.
#[test]
fn an_empty_configuration_removes_nothing() {
    let first = async |host: &Case| {
        let held = host.claimed("resources:CUSTOM_VFIO_AP=1").await;
        let foreign = ForeignMdev {
            uuid: "1e91f3df-bf44-42ea-9400-c389ba1dd4c6".parse().unwrap(),
            parent: "css_0_0_00b2".parse().unwrap(),
            type_id: "vfio_ccw-io".parse().unwrap(),
        };
        host.sim.change(Change::ForeignMdev(foreign)).await.unwrap();
        host.write_config("");
        host.service().reload().await.unwrap();
        (held.uuid, host.scan().await)
    };
    two_lives(Setup::new(S390).nova("nova.conf"), first, async |host, (held, before)| {
        assert_eq!(host.scan().await, before);
        assert_eq!(before.mdevs.len(), 2);
        assert_eq!(host.totals().await, [""; 0]);
        assert_eq!(host.held_by(held).await.claims.len(), 1);
    });
}

/// The description of case 29, with types for the cards and VFs; each VF says 1, the card holds three.
#[cfg(feature = "libvirt")]
fn sliceable(description: &str) -> String {
    use std::fmt::Write;
    let mut text = description.to_owned();
    let mut add = |addr: &str, id: &str, name: &str, available: u32, description: &str| {
        let dir = format!("/sys/bus/pci/devices/{addr}/mdev_supported_types/{id}");
        writeln!(text, "{dir}/name = {name}|").unwrap();
        writeln!(text, "{dir}/device_api = vfio-pci|").unwrap();
        writeln!(text, "{dir}/available_instances = {available}|").unwrap();
        writeln!(text, "{dir}/description = {description}|").unwrap();
    };
    for bus in ["03", "04", "23", "41", "42", "61"] {
        add(
            &format!("0000:{bus}:00.0"),
            "nvidia-231",
            "Case 29 card",
            4,
            "framebuffer=2048M, max_instance=4",
        );
    }
    let links = description.lines().filter_map(|line| line.split_once(" -> ../0000:e8:"));
    let functions: Vec<String> = links.map(|(_, rest)| format!("0000:e8:{rest}")).collect();
    for vf in &functions {
        add(vf, "nvidia-575", "Case 29 VF", 1, "framebuffer=4096M, max_instance=3");
    }
    for vf in &functions {
        writeln!(text, "/sys/bus/pci/devices/{vf}/physfn -> ../0000:e8:00.0").unwrap();
    }
    text
}

/// 29, through libvirt's test driver and the tree beside it.
#[cfg(feature = "libvirt")]
#[tokio::test(flavor = "multi_thread")]
async fn groups_and_functions_in_order() {
    let case = "29-device-keys-and-order";
    let text = sliceable(&crate::setup::case_text("29-device-keys-and-order/sysfs.txt"));
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("sysfs.txt"), &text).unwrap();
    crate::fixture::plant(&root.path().join("sysfs.txt"), root.path());
    let devices = root.path().join("devices");
    std::fs::create_dir(&devices).unwrap();
    // In text order, as libvirt may well list them: the tenth VF before the second.
    for (number, xml) in crate::sysfs_text::node_devices(&text).iter().rev().enumerate() {
        std::fs::write(devices.join(format!("{number}.xml")), xml).unwrap();
    }
    let enabled = "[devices]\nenabled_mdev_types = [\"nvidia-231\", \"nvidia-575\"]\n";
    let host = Setup::new(case).on_libvirt(root.path(), &devices).toml(enabled).start().await;

    let all = host.devices().await;
    let shared: Vec<String> = all
        .iter()
        .filter(|d| d.iommu_group.is_some())
        .map(|d| format!("{} {} {:?}", d.address, d.iommu_group.unwrap(), d.iommu_group_shared_with))
        .collect();
    assert_eq!(
        shared,
        [
            "0000:03:00.0 14 [0000:04:00.0]",
            "0000:04:00.0 14 [0000:03:00.0]",
            "0000:23:00.0 31 []",
            "0000:41:00.0 45 [0000:42:00.0]",
            "0000:42:00.0 45 [0000:41:00.0]",
            "0000:61:00.0 58 []",
        ]
    );
    let functions: Vec<String> = all
        .iter()
        .filter(|d| d.physical_function.is_some())
        .map(|d| d.address.to_string()[8..].into())
        .collect();
    assert_eq!(
        functions,
        ["00.4", "00.5", "00.6", "00.7", "01.0", "01.1", "01.2", "01.4", "01.5", "01.6", "01.7"]
    );
    let first_three: Vec<String> =
        host.totals().await.into_iter().filter(|record| record.starts_with("0000:e8")).collect();
    assert_eq!(first_three, ["0000:e8:00.4 VGPU 1", "0000:e8:00.5 VGPU 1", "0000:e8:00.6 VGPU 1"]);
    let findings = host.findings().await;
    assert_eq!(findings, ["0000:e8:00.0: sriov_numvfs says 12, 11 virtual functions are there"]);
}
