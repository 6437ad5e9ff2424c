//! Node devices of the cases: what is listed, byte for byte, and what is left out.

use mdevirt::model::{DeviceApi, FindingKind, Framework, MdevType, Parent};
use mdevirt::xml::XmlError;
use mdevirt::xml::nodedev::{NodeDevice, NodeKind, parse};

use crate::case;

fn device(name: &str) -> NodeDevice {
    parse(&case(name)).unwrap_or_else(|err| panic!("{name}: {err}"))
}

fn parent(name: &str) -> Parent {
    device(name).parent().unwrap_or_else(|| panic!("{name} is no parent"))
}

fn offers(parent: &Parent) -> Vec<(&str, Option<&str>, u32)> {
    parent.types.iter().map(|t| (t.id.as_str(), t.name.as_deref(), t.available_instances)).collect()
}

/// Case 01: name and description are optional.
#[test]
fn types_without_a_name_are_listed_by_id() {
    let found = parent("01-type-without-name/nodedev/pci_0000_00_02_0.xml");
    assert_eq!(offers(&found), [("i915-GVTg_V5_4", None, 1), ("i915-GVTg_V5_8", None, 2)]);
    assert_eq!(
        found.types.iter().map(MdevType::label).collect::<Vec<_>>(),
        ["i915-GVTg_V5_4", "i915-GVTg_V5_8"]
    );
    assert!(found.types.iter().all(|t| t.facts.description.is_empty()));
    let device = device("01-type-without-name/nodedev/pci_0000_00_02_0.xml");
    assert_eq!(device.findings, []);
}

/// Case 02: names are shown unchanged but for blanks at the ends.
#[test]
fn odd_type_names_stay_as_they_are() {
    let a100 = parent("02-type-name-odd-characters/nodedev/pci_0000_c1_00_4.xml");
    assert_eq!(
        offers(&a100),
        [("nvidia-474", Some("GRID A100-1-5C"), 1), ("nvidia-706", Some("GRID A100-1-5CME"), 1)]
    );
    assert_eq!(a100.physical_function.unwrap().to_string(), "0000:c1:00.0");
    let demo = parent("02-type-name-odd-characters/nodedev/pci_0000_17_00_0.xml");
    assert_eq!(
        offers(&demo),
        [
            ("demo-1", Some("Demo v1.5/x+me"), 4),
            ("demo-2", Some("Demo v1 5 x me"), 4),
            ("demo-3", Some("Demo  v1.5"), 4)
        ]
    );
    let css = parent("02-type-name-odd-characters/nodedev/css_0_0_00a1.xml");
    assert_eq!(offers(&css), [("vfio_ccw-io", Some("I/O subchannel (Non-QDIO)"), 1)]);
}

/// Case 03: UUIDs from both forms of the name, the parent from `<parent>`, an unknown type stays unknown.
#[test]
fn mdevs_are_found_whatever_their_name() {
    for (file, uuid, type_id, group) in [
        ("mdev_a", "e38f8857-e8ba-4559-b696-d9c39e499710", Some("nvidia-231"), 71),
        ("mdev_b", "7035cae6-b8e5-4c7a-926a-48effcbe0ea3", Some("nvidia-231"), 72),
        ("mdev_c", "b4645cc2-b09f-4e90-895d-5b773cf165cc", None, 73),
    ] {
        let mdev =
            device(&format!("03-mdev-node-names/nodedev/{file}.xml")).mdev(true, false).unwrap().unwrap();
        assert_eq!(mdev.uuid.to_string(), uuid);
        assert_eq!(mdev.parent.node_name(), "pci_0000_3b_00_0");
        assert_eq!(mdev.type_id.as_ref().map(|t| t.as_str()), type_id);
        assert_eq!(mdev.iommu_group, Some(group));
        assert!(mdev.active && !mdev.defined && !mdev.parent_missing);
    }
    let t4 = parent("03-mdev-node-names/nodedev/pci_0000_3b_00_0.xml");
    assert_eq!(t4.mdev_type(&"nvidia-231".parse().unwrap()).unwrap().available_instances, 5);
}

/// Case 03, 5: a name that is too short is malformed input for that one device.
#[test]
fn a_name_without_a_uuid_is_malformed() {
    let text = String::from_utf8(case("03-mdev-node-names/nodedev/mdev_a.xml")).unwrap();
    for name in [
        "mdev_e38f8857",
        "mdev_e38f8857_e8ba_4559_b696_d9c39e49971",
        "mdev_zzzf8857_e8ba_4559_b696_d9c39e499710",
    ] {
        let xml = text.replace("mdev_e38f8857_e8ba_4559_b696_d9c39e499710", name);
        assert!(matches!(parse(xml.as_bytes()), Err(XmlError::Malformed { .. })), "{name}");
    }
    let wrong = "<device><name>mdev_e38f8857_e8ba_4559_b696_d9c39e499710</name><capability type='mdev'>\
                 <uuid>not one</uuid></capability></device>";
    assert!(parse(wrong.as_bytes()).is_err(), "a bad <uuid> is not made up for by the name");
}

/// Case 05: decimal parts in the capability, hexadecimal ones in `<address>`, domains other than 0.
#[test]
fn pci_addresses_keep_their_domain() {
    for (name, numa) in [("pci_0001_d6_00_0", 1), ("pci_0001_c8_00_0", 1), ("pci_0000_d6_00_0", 0)] {
        let device = device(&format!("05-pci-domain-spellings/nodedev/{name}.xml"));
        let NodeKind::Pci(pci) = &device.kind else { panic!("{name} is a PCI device") };
        assert_eq!(pci.addr.node_name(), name);
        let group = pci.iommu_group.as_ref().unwrap();
        assert_eq!(group.members.iter().map(|m| m.node_name()).collect::<Vec<_>>(), [name]);
        let parent = device.parent().unwrap();
        assert_eq!(parent.addr.node_name(), name);
        assert_eq!((parent.vendor_id, parent.device_id), (Some(0x10de), Some(0x1eb8)));
        assert_eq!(parent.product.as_deref(), Some("TU104GL [Tesla T4]"));
        assert_eq!((parent.numa_node, parent.driver.as_deref()), (Some(numa), Some("nvidia")));
        assert_eq!(parent.framework, Some(Framework::Mdev));
    }
}

/// Case 28: no field of a PCI capability is needed, and doubled types count once.
#[test]
fn parents_need_no_pci() {
    let matrix = parent("28-non-gpu-mdevs/s390/nodedev/ap_matrix.xml");
    assert_eq!(matrix.addr.to_string(), "ap_matrix");
    assert_eq!(offers(&matrix), [("vfio_ap-passthrough", Some("VFIO AP Passthrough Device"), 65536)]);
    assert_eq!(matrix.types[0].device_api, DeviceApi::VfioAp);
    let css = parent("28-non-gpu-mdevs/s390/nodedev/css_0_0_00b2.xml");
    assert_eq!(
        (css.addr.to_string().as_str(), css.types[0].device_api),
        ("css_0_0_00b2", DeviceApi::VfioCcw)
    );
    let wanted = [("mtty-1", Some("Single port serial"), 24), ("mtty-2", Some("Dual port serial"), 12)];
    for file in [
        "28-non-gpu-mdevs/x86/nodedev/mtty_mtty.xml",
        "28-non-gpu-mdevs/x86/nodedev-doubled/mtty_mtty.xml",
        "samples/16-mtty-nodedev.xml",
    ] {
        let mtty = parent(file);
        assert_eq!(offers(&mtty), wanted, "{file}");
        assert_eq!((mtty.vendor_id, mtty.device_id, mtty.addr.pci()), (None, None, None));
    }
}

/// Case 28: types told in both shapes at once are still counted once; a contradiction is reported.
#[test]
fn types_told_twice_count_once() {
    let one = |n: u32| {
        format!(
            "<type id='mtty-1'><deviceAPI>vfio-pci</deviceAPI><availableInstances>{n}</availableInstances></type>"
        )
    };
    let nested = |outer: u32, inner: u32| {
        format!(
            "<device><name>mtty_mtty</name><capability type='mdev_types'>{}<capability type='mdev_types'>{}\
             </capability></capability></device>",
            one(outer),
            one(inner)
        )
    };
    let behind = nested(24, 24).replace("</capability></device>", &one(3).replace("mtty-1", "mtty-2"))
        + "</capability></device>";
    let all = parse(behind.as_bytes()).unwrap().parent().unwrap();
    assert_eq!(offers(&all), [("mtty-1", None, 24), ("mtty-2", None, 3)]);
    let same = parse(nested(24, 24).as_bytes()).unwrap();
    assert_eq!(offers(&same.parent().unwrap()), [("mtty-1", None, 24)]);
    assert_eq!(same.findings, []);
    let differ = parse(nested(24, 12).as_bytes()).unwrap();
    assert_eq!(offers(&differ.parent().unwrap()), [("mtty-1", None, 24)]);
    assert!(differ.findings[0].text.contains("told twice"), "{:?}", differ.findings);
}

/// Case 28, 6: attributes keep their order, a name may come twice.
#[test]
fn attributes_keep_their_order() {
    let xml = "<device><name>mdev_bc361496_354d_4381_817e_a01eead2f751_matrix</name><parent>ap_matrix</parent>\
        <capability type='mdev'><type id='vfio_ap-passthrough'/><uuid>bc361496-354d-4381-817e-a01eead2f751</uuid>\
        <attr name='assign_adapter' value='3'/><attr name='assign_domain' value='0x1f'/>\
        <attr name='assign_adapter' value='4'/><attr name='assign_domain' value='6'/>\
        <attr name='dropped'/><attr name='assign_control_domain' value='6'/></capability></device>";
    let NodeKind::Mdev(mdev) = parse(xml.as_bytes()).unwrap().kind else { panic!("an mdev") };
    let attrs: Vec<String> = mdev.attrs.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(
        attrs,
        [
            "assign_adapter=3",
            "assign_domain=0x1f",
            "assign_adapter=4",
            "assign_domain=6",
            "assign_control_domain=6"
        ]
    );
    let escape = xml.replace("assign_control_domain", "../../../remove");
    assert!(parse(escape.as_bytes()).is_err(), "a path-like attribute spoils the device");
}

/// A definition whose parent is gone says so, and is lost only if nothing tells whose it was.
#[test]
fn a_definition_outlives_its_parent() {
    let xml = "<device><name>mdev_1e91f3df_bf44_42ea_9400_c389ba1dd4c6_0_0_00b2</name><parent>computer</parent>\
        <capability type='mdev'><type id='vfio_ccw-io'/><uuid>1e91f3df-bf44-42ea-9400-c389ba1dd4c6</uuid>\
        <parent_addr>0.0.00b2</parent_addr></capability></device>";
    let mdev = parse(xml.as_bytes()).unwrap().mdev(false, true).unwrap().unwrap();
    assert!(mdev.parent_missing && mdev.defined && !mdev.active);
    assert_eq!(mdev.parent.node_name(), "css_0_0_00b2");
    let silent = xml.replace("<parent_addr>0.0.00b2</parent_addr>", "");
    let err = parse(silent.as_bytes()).unwrap().mdev(false, true).unwrap_err();
    assert!(err.to_string().contains("1e91f3df-bf44-42ea-9400-c389ba1dd4c6"), "{err}");
}

/// Case 32: a type id that is a path is left out with a finding; the other types stay.
#[test]
fn bad_types_are_left_out_and_named() {
    let text = String::from_utf8(case("32-hostile-names/nodedev/pci_0000_3b_00_0.xml")).unwrap();
    let good = "<type id='nvidia-231'>";
    let api = "<deviceAPI>vfio-pci</deviceAPI><availableInstances>8</availableInstances>";
    for bad in [
        format!("<type id='../../x'>{api}</type>"),
        format!("<type id='..'>{api}</type>"),
        format!("<type>{api}</type>"),
        format!("<type id='a\u{1b}'>{api}</type>"),
        "<type id='nvidia-9'><availableInstances>8</availableInstances></type>".to_owned(),
        "<type id='nvidia-9'><deviceAPI>vfio-pci</deviceAPI></type>".to_owned(),
        format!("<type id='nvidia-9'>{}</type>", api.replace('8', "-1")),
        format!("<type id='nvidia-9'>{}</type>", api.replace('8', "99999999999")),
        format!("<type id='nvidia-9'>{}</type>", api.replace("vfio-pci", "vfio-x")),
        format!("<type id='nvidia-9'><name>T4 \u{b}</name>{api}</type>"),
    ] {
        let device = parse(text.replace(good, &format!("{bad}{good}")).as_bytes()).unwrap();
        assert_eq!(offers(&device.parent().unwrap()), [("nvidia-231", Some("GRID T4-2Q"), 7)], "{bad}");
        let [finding] = &device.findings[..] else { panic!("{bad}: {:?}", device.findings) };
        assert_eq!((finding.kind, finding.about.as_str()), (FindingKind::MalformedInput, "pci_0000_3b_00_0"));
        assert!(finding.text.contains("left out"), "{finding:?}");
        assert!(!finding.text.contains(|c: char| c.is_control()), "{finding:?}");
    }
}

/// A device whose own type is a path is not taken at all.
#[test]
fn an_mdev_with_a_path_for_a_type_is_malformed() {
    let text = String::from_utf8(case("32-hostile-names/nodedev/mdev_m.xml")).unwrap();
    assert_eq!(
        parse(text.as_bytes()).unwrap().mdev(true, true).unwrap().unwrap().type_id.unwrap().as_str(),
        "nvidia-231"
    );
    let err = parse(text.replace("nvidia-231", "../../../../tmp/x").as_bytes()).unwrap_err();
    assert!(matches!(&err, XmlError::Malformed { .. }) && err.to_string().contains("mdev type id"), "{err}");
}

/// Devices that are nothing to us are told apart from parents, and PCI functions may become parents later.
#[test]
fn what_is_no_parent() {
    let other = parse(
        b"<device><name>computer</name><capability type='system'><product>x</product></capability></device>",
    );
    let other = other.unwrap();
    assert_eq!(
        (&other.kind, other.parent(), other.mdev(true, true).unwrap()),
        (&NodeKind::Other, None, None)
    );
    let pf = "<device><name>pci_0000_26_00_0</name><parent>pci_0000_25_00_0</parent><capability type='pci'>\
        <domain>0</domain><bus>38</bus><slot>0</slot><function>0</function>\
        <capability type='virt_functions' maxCount='32'>\
        <address domain='0x0000' bus='0x26' slot='0x00' function='0x4'/></capability>\
        <numa node='-1'/></capability></device>";
    let device = parse(pf.as_bytes()).unwrap();
    let NodeKind::Pci(pci) = &device.kind else { panic!("a PCI device") };
    assert!(pci.has_virtual_functions && pci.types.is_none() && pci.physical_function.is_none());
    let parent = device.parent().unwrap();
    assert_eq!((parent.framework, parent.numa_node, parent.iommu_group), (None, None, None));
    assert_eq!(parent.addr.to_string(), "0000:26:00.0");
}

/// The sample of an older kernel and of nova's own tests.
#[test]
fn samples_of_others_are_read() {
    let mdev = device("samples/15-rtx6000-turing-mdev-nodedev.xml").mdev(true, false).unwrap().unwrap();
    assert_eq!(mdev.uuid.to_string(), "b2107403-110c-45b0-af87-32cc91597b8a");
    assert_eq!(mdev.type_id.unwrap().as_str(), "nvidia-442");
    assert_eq!((mdev.parent.to_string().as_str(), mdev.iommu_group), ("0000:41:00.0", Some(57)));
}
