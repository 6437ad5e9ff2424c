//! Tables for [`assign`]: each line a rule of the configuration against a small host.

use super::*;
use crate::config::parse;
use crate::model::{DeviceApi, FindingKind, TypeFacts};

const NVIDIA: u16 = 0x10de;

fn parent(addr: &str, types: &[(&str, &str)]) -> Parent {
    let offered = |(id, name): &(&str, &str)| MdevType {
        id: id.parse().unwrap(),
        name: Some((*name).to_owned()).filter(|n| !n.is_empty()),
        device_api: DeviceApi::VfioPci,
        available_instances: 1,
        facts: TypeFacts::default(),
    };
    let addr: ParentAddr = addr.parse().unwrap();
    Parent {
        vendor_id: addr.pci().map(|_| NVIDIA),
        addr,
        framework: Some(Framework::Mdev),
        physical_function: None,
        device_id: None,
        product: None,
        numa_node: None,
        iommu_group: None,
        driver: Some("nvidia".to_owned()),
        types: types.iter().map(offered).collect(),
    }
}

fn vf(addr: &str, card: &str, types: &[(&str, &str)]) -> Parent {
    Parent { physical_function: Some(card.parse().unwrap()), ..parent(addr, types) }
}

fn host(parents: Vec<Parent>) -> HostScan {
    HostScan { parents, ..HostScan::default() }.sorted()
}

const ONE: &str = "0000:01:00.0";
const TWO: &str = "0000:02:00.0";
const T4: &[(&str, &str)] = &[("nvidia-231", "GRID T4-2Q"), ("nvidia-232", "GRID T4-4Q")];

/// The lines `ADDR ID` or `ADDR - REASON` in address order, then one `! TEXT` per finding.
fn outcome(config: &str, scan: &HostScan) -> Vec<String> {
    let loaded = parse(config, "m.toml").unwrap();
    let mapping = assign(&loaded.config, scan, &Memory::default());
    let mut lines: Vec<String> =
        mapping.assigned.iter().map(|(addr, one)| format!("{addr} {}", one.mdev_type.id)).collect();
    lines.extend(mapping.without.iter().map(|(addr, reason)| format!("{addr} - {reason}")));
    lines.sort();
    assert_eq!(mapping.assigned.len() + mapping.without.len(), scan.parents.len());
    assert!(mapping.findings.iter().all(|f| f.kind == FindingKind::ConfigWarning));
    lines.extend(mapping.findings.iter().map(|f| format!("! {}", f.text)));
    lines
}

fn devices(enabled: &str, unlisted: &str) -> String {
    format!("[devices]\nenabled_mdev_types = [{enabled}]\nunlisted = \"{unlisted}\"\n")
}

#[test]
fn a_key_is_an_id_or_a_vendor_name() {
    let scan = host(vec![parent(ONE, T4)]);
    for key in ["nvidia-232", "GRID T4-4Q", " GRID T4-4Q "] {
        assert_eq!(
            outcome(&devices(&format!("\"{key}\""), "first"), &scan),
            ["0000:01:00.0 nvidia-232"],
            "{key}"
        );
    }
    for key in ["nvidia-23", "nvidia-2322", "grid t4-4q", "GRID T4", "nvidia 232", "232"] {
        let lines = outcome(&devices(&format!("\"{key}\""), "first"), &scan);
        assert_eq!(
            lines,
            [
                "0000:01:00.0 - it offers none of the enabled types".to_owned(),
                format!(
                    "! enabled, but no parent of this host offers it: {key}; offered are: nvidia-231 (GRID T4-2Q), nvidia-232 (GRID T4-4Q)"
                ),
            ]
        );
    }
}

#[test]
fn an_unlisted_parent_follows_the_rule() {
    let scan = host(vec![parent(ONE, T4), parent(TWO, T4)]);
    let listed = "[mdev.\"nvidia-231\"]\ndevice_addresses = [\"0000:01:00.0\"]\n";
    let rows: [(&str, &str, &[&str]); 5] = [
        ("\"nvidia-231\", \"nvidia-232\"", "first", &["0000:01:00.0 nvidia-231", "0000:02:00.0 nvidia-231"]),
        (
            "\"nvidia-231\", \"nvidia-232\"",
            "default",
            &["0000:01:00.0 nvidia-231", "0000:02:00.0 nvidia-232"],
        ),
        (
            "\"nvidia-231\"",
            "default",
            &[
                "0000:01:00.0 nvidia-231",
                "0000:02:00.0 - no enabled type lists it, and every enabled type lists addresses",
            ],
        ),
        (
            "\"nvidia-231\"",
            "ignore",
            &[
                "0000:01:00.0 nvidia-231",
                "0000:02:00.0 - no enabled type lists it, and unlisted is \"ignore\"",
            ],
        ),
        ("", "first", &["0000:01:00.0 - no mdev type is enabled", "0000:02:00.0 - no mdev type is enabled"]),
    ];
    for (enabled, unlisted, want) in rows {
        let lines = outcome(&(devices(enabled, unlisted) + listed), &scan);
        let parents: Vec<&String> = lines.iter().filter(|line| !line.starts_with('!')).collect();
        assert_eq!(parents, want, "{enabled} {unlisted}");
    }
    let lines = outcome(&(devices("\"nvidia-231\", \"nvidia-232\"", "first") + listed), &scan);
    assert_eq!(
        lines[2..],
        ["! enabled, but each parent that offers it gets another type or none: nvidia-232"]
    );
    // A second default is said when the configuration is read, not again on each inventory.
    let two = outcome(&devices("\"nvidia-231\", \"nvidia-232\"", "default"), &scan);
    assert_eq!(two, ["0000:01:00.0 nvidia-231", "0000:02:00.0 nvidia-231"]);
}

#[test]
fn a_listed_parent_gets_its_type_or_none() {
    let scan = host(vec![parent(ONE, T4)]);
    let config = devices("\"nvidia-231\", \"nvidia-474\"", "first")
        + "[mdev.\"nvidia-474\"]\ndevice_addresses = [\"0000:01:00.0\", \"0000:af:00.0\"]\n";
    assert_eq!(
        outcome(&config, &scan),
        [
            "0000:01:00.0 - nvidia-474 is configured for it, but it does not offer that type; it offers nvidia-231 (GRID T4-2Q), nvidia-232 (GRID T4-4Q)",
            "! 0000:01:00.0: nvidia-474 is configured for it, but it does not offer that type; it offers nvidia-231 (GRID T4-2Q), nvidia-232 (GRID T4-4Q)",
            "! 0000:af:00.0 is configured for nvidia-474 but not present: no device that can be sliced has this address; it is taken up when one appears",
            "! enabled, but each parent that offers it gets another type or none: nvidia-231",
        ]
    );
    let unread = Finding::new(FindingKind::Unknown, "pci_0000_af_00_0", "cannot be read");
    let scan = HostScan { findings: vec![unread], ..scan };
    assert!(!outcome(&config, &scan).iter().any(|line| line.contains("not present")));
}

#[test]
fn the_same_number_under_another_prefix_needs_the_same_name() {
    let enabled = devices("\"nvidia-575\"", "default");
    let with = |name: &str| {
        host(vec![parent(ONE, &[("nvidia-575", "A40-24A")]), parent(TWO, &[("vfio-pci-575", name)])])
    };
    assert_eq!(outcome(&enabled, &with("A40-24A")), ["0000:01:00.0 nvidia-575", "0000:02:00.0 vfio-pci-575"]);
    let other = outcome(&enabled, &with("A40-24Q"));
    assert_eq!(other[1..], ["0000:02:00.0 - it does not offer nvidia-575, the default type"]);
    let unnamed = outcome(&enabled, &with(""));
    assert!(unnamed[2].starts_with("! 0000:02:00.0: it does not offer nvidia-575"), "{unnamed:?}");
    assert!(unnamed[2].contains("vfio-pci-575 may be the enabled nvidia-575"), "{unnamed:?}");
    let alone = host(vec![parent(TWO, &[("vfio-pci-575", "A40-24A")])]);
    assert!(outcome(&enabled, &alone)[1].contains("it offers vfio-pci-575 (A40-24A)"));
    // A number means nothing on a card of another vendor, or to another framework.
    let mut scan = with("A40-24A");
    scan.parents[1].vendor_id = Some(0x1002);
    assert_eq!(outcome(&enabled, &scan).len(), 3);
    let mut scan = with("A40-24A");
    scan.parents[1].framework = Some(Framework::VendorVfio);
    assert!(outcome(&enabled, &scan)[1].starts_with("0000:02:00.0 - "));
}

#[test]
fn two_types_of_one_name_are_not_guessed() {
    let scan = host(vec![parent(ONE, &[("demo-1", "Demo"), ("demo-2", "Demo")])]);
    let lines = outcome(&devices("\"Demo\"", "first"), &scan);
    let reason = "Demo fits two of its types, demo-1 and demo-2; enable one of them by its id";
    assert_eq!(lines[..2], [format!("0000:01:00.0 - {reason}"), format!("! 0000:01:00.0: {reason}")]);
    assert_eq!(outcome(&devices("\"demo-2\"", "first"), &scan), ["0000:01:00.0 demo-2"]);
}

#[test]
fn functions_that_cannot_be_sliced_say_why() {
    let card = Parent { framework: None, ..parent(ONE, &[]) };
    let bare = Parent { framework: None, driver: Some("vfio-pci".into()), ..vf("0000:01:00.5", ONE, &[]) };
    let full = Parent { framework: Some(Framework::VendorVfio), ..vf("0000:01:00.6", ONE, &[]) };
    let scan = host(vec![card, vf("0000:01:00.4", ONE, T4), bare, full, parent(TWO, &[])]);
    let config = devices("\"nvidia-231\"", "default")
        + "[mdev.\"nvidia-231\"]\ndevice_addresses = [\"0000:01:00.0\", \"0000:01:00.4\", \"0000:01:00.5\", \"0000:01:00.6\", \"0000:02:00.0\"]\n";
    assert_eq!(
        outcome(&config, &scan)[5..],
        [
            "! 0000:01:00.0: nvidia-231 is configured for it, but it is a physical function; the parents are its virtual functions: 0000:01:00.4, 0000:01:00.5, 0000:01:00.6",
            "! 0000:01:00.5: nvidia-231 is configured for it, but this virtual function has neither mdev types nor the vendor's vGPU files (driver: vfio-pci)",
            "! 0000:02:00.0: nvidia-231 is configured for it, but it offers no types at present",
        ]
    );
    let unlisted = outcome(&devices("\"nvidia-231\"", "first"), &scan);
    assert_eq!(unlisted.len(), 5, "{unlisted:?}");
    assert_eq!(unlisted[1], "0000:01:00.4 nvidia-231");
    assert_eq!(unlisted[3], "0000:01:00.6 - its card has room for no type at present");
}

#[test]
fn one_card_has_one_size() {
    let sized = |addr: &str, mib: &[u32]| {
        let mut function = vf(addr, ONE, &T4[..mib.len()]);
        for (offered, mib) in function.types.iter_mut().zip(mib) {
            offered.facts.framebuffer_mib = Some(*mib);
        }
        function
    };
    let config = devices("\"nvidia-231\", \"nvidia-232\"", "first")
        + "[mdev.\"nvidia-232\"]\ndevice_addresses = [\"0000:01:00.5\"]\n";
    let mut scan = host(vec![sized("0000:01:00.4", &[512, 4096]), sized("0000:01:00.5", &[512, 4096])]);
    let lines = outcome(&config, &scan);
    assert!(lines[2].contains("one card 0000:01:00.0"), "{lines:?}");
    assert!(lines[2].contains("512 MiB on 0000:01:00.4; 4 GiB on 0000:01:00.5"), "{lines:?}");
    scan.parents[1].physical_function = Some(TWO.parse().unwrap());
    assert_eq!(outcome(&config, &scan).len(), 2);
}
