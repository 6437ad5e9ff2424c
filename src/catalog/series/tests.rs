//! Answers on hosts built by hand.

use super::*;
use crate::model::{DeviceApi, TypeFacts};

const MDEV: Framework = Framework::Mdev;
const VF: Framework = Framework::VendorVfio;

fn parent(vendor: u16, device: u16, framework: Framework) -> Parent {
    Parent {
        addr: "0000:3b:00.0".parse().unwrap(),
        framework: Some(framework),
        physical_function: None,
        vendor_id: Some(vendor),
        device_id: Some(device),
        product: None,
        numa_node: None,
        iommu_group: None,
        driver: None,
        types: Vec::new(),
    }
}

fn named(name: Option<&str>) -> MdevType {
    MdevType {
        id: "nvidia-1".parse().unwrap(),
        name: name.map(str::to_owned),
        device_api: DeviceApi::VfioPci,
        available_instances: 1,
        facts: TypeFacts::default(),
    }
}

#[test]
fn every_row_is_good() {
    let rows = parse(include_str!("several_per_vm.toml")).unwrap();
    assert!(rows.len() > 5);
    for bad in [
        "[sources]\n[[row]]\nvendor = \"10de\"\nreason = \"x\"\nsource = [\"none\"]",
        "[sources]\n[[row]]\nvendor = \"10de\"\nreason = \"x\"\nsource = []",
        "[sources]\na = \"b\"\n[[row]]\nvendor = \"10de\"\nreason = \"\"\nsource = [\"a\"]",
        "[sources]\na = \"b\"\n[[row]]\nvendor = \"nvidia\"\nreason = \"x\"\nsource = [\"a\"]",
        "[sources]\na = \"b\"\n[[row]]\nvendor = \"10de\"\nseries = [\"X\"]\nreason = \"x\"\nsource = [\"a\"]",
        "[sources]\na = \"b\"\n[[row]]\nvendor = \"10de\"\nserie = [\"Q\"]\nreason = \"x\"\nsource = [\"a\"]",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_vendor_answers_by_series_card_and_framework() {
    for (device, framework, name, want) in [
        (0x1eb8, MDEV, "GRID T4-2B", Some(false)),
        (0x25b6, MDEV, "NVIDIA A2-4A", Some(false)),
        (0x26b9, VF, "NVIDIA L40S-3B", Some(false)),
        (0x13f2, MDEV, "GRID M60-2Q", Some(false)),
        (0x1b38, MDEV, "GRID P40-6C", Some(false)),
        (0x1eb8, MDEV, "GRID T4-2Q", None),
        (0x1db4, MDEV, "GRID V100-4C", None),
        (0x2235, MDEV, "NVIDIA A40-4Q", None),
        (0x2235, VF, "NVIDIA A40-4Q", Some(true)),
        (0x20f1, VF, "GRID A100-4C", Some(true)),
        (0x20b0, VF, "GRID A100X-4C", None),
        (0x20f1, VF, "GRID A100-1-5CME", None),
        (0x26b9, VF, "NVIDIA L40S-4Q", Some(true)),
        (0x26b1, MDEV, "NVIDIA RTX6000-Ada-4Q", Some(true)),
        (0x2331, VF, "NVIDIA H100-4C", Some(true)),
        (0x2335, VF, "NVIDIA H200X-141C", None),
        (0x2bb5, VF, "NVIDIA RTX Pro 6000 Blackwell DC-3Q", None),
        (0x2bb5, VF, "NVIDIA RTX Pro 6000 Blackwell DC-1-3A", Some(false)),
        (0xffff, MDEV, "NVIDIA X1-4Q", None),
        (0xffff, MDEV, "NVIDIA X1-4B", Some(false)),
    ] {
        let answer = several_per_vm(&parent(0x10de, device, framework), &named(Some(name)));
        assert_eq!(answer.allowed, want, "{device:04x} {framework:?} {name}");
        assert!(answer.reason.starts_with(&format!("{name} is ")), "{}", answer.reason);
    }
}

#[test]
fn a_refusal_names_the_series() {
    let answer = several_per_vm(&parent(0x10de, 0x1eb8, MDEV), &named(Some("GRID T4-2B")));
    assert_eq!(
        answer.reason,
        "GRID T4-2B is B-series: NVIDIA allows several vGPUs in one VM for Q- and C-series types only"
    );
}

#[test]
fn what_nobody_states_has_no_answer() {
    let nameless = several_per_vm(&parent(0x10de, 0x26b9, VF), &named(None));
    assert_eq!(nameless.allowed, None);
    assert!(nameless.reason.contains("driver release"), "{}", nameless.reason);
    for vendor in [0x8086, 0x1002] {
        let other = several_per_vm(&parent(vendor, 0x3ea0, MDEV), &named(Some("GVTg_V5_4")));
        assert_eq!((other.allowed, other.reason.as_str()), (None, ""));
    }
    let mut virtual_parent = parent(0x10de, 0x1eb8, MDEV);
    virtual_parent.vendor_id = None;
    assert_eq!(several_per_vm(&virtual_parent, &named(Some("GRID T4-2B"))).allowed, None);
}
