//! Hosts for the cases, read from their listings. Small on purpose: it knows the fields that the configuration looks at.

use std::fs;
use std::path::{Path, PathBuf};

use mdevirt::model::{DeviceApi, Framework, HostScan, MdevType, Parent, ParentAddr, PciAddress, TypeFacts};

pub(super) fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name)
}

fn bare(addr: PciAddress) -> Parent {
    Parent {
        addr: ParentAddr::Pci(addr),
        framework: None,
        physical_function: None,
        vendor_id: Some(0x10de),
        device_id: None,
        product: None,
        numa_node: None,
        iommu_group: None,
        driver: None,
        types: Vec::new(),
    }
}

fn blank_type(id: &str) -> MdevType {
    MdevType {
        id: id.parse().unwrap(),
        name: None,
        device_api: DeviceApi::VfioPci,
        available_instances: 0,
        facts: TypeFacts::default(),
    }
}

fn between<'t>(text: &'t str, from: &str, to: &str) -> Option<&'t str> {
    text.split_once(from)?.1.split_once(to).map(|(found, _)| found)
}

/// The parents of `nodedev/*.xml`.
pub(super) fn from_nodedev(name: &str) -> HostScan {
    let mut scan = HostScan::default();
    for entry in fs::read_dir(case(name).join("nodedev")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        if text.contains("<capability type='mdev'>") {
            continue;
        }
        let mut parent = bare(between(&text, "<name>", "</name>").unwrap().parse().unwrap());
        let vendor = between(&text, "<vendor id='0x", "'").unwrap();
        parent.vendor_id = Some(u16::from_str_radix(vendor, 16).unwrap());
        if let Some(pf) = between(&text, "phys_function'>", "/>") {
            let part = |key: &str| between(pf, &format!("{key}='0x"), "'").unwrap();
            let addr = format!("{}:{}:{}.{}", part("domain"), part("bus"), part("slot"), part("function"));
            parent.physical_function = Some(addr.parse().unwrap());
        }
        for chunk in text.split("<type id='").skip(1) {
            let offered = blank_type(chunk.split_once('\'').unwrap().0);
            parent.framework = Some(Framework::Mdev);
            parent.types.push(MdevType {
                name: between(chunk, "<name>", "</name>").map(str::to_owned),
                available_instances: between(chunk, "<availableInstances>", "<").unwrap().parse().unwrap(),
                ..offered
            });
        }
        scan.parents.push(parent);
    }
    assert!(!scan.parents.is_empty(), "{name}");
    scan.sorted()
}

/// The parents of a listing of sysfs, and the physical functions.
pub(super) fn from_sysfs(name: &str, file: &str) -> HostScan {
    let text = fs::read_to_string(case(name).join(file)).unwrap();
    let mut parents: Vec<Parent> = Vec::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("/sys/bus/pci/devices/")) {
        let (addr, rest) = line.split_once('/').unwrap();
        let addr: PciAddress = addr.parse().unwrap();
        let at = parents.iter().position(|p| p.addr.pci() == Some(addr)).unwrap_or_else(|| {
            parents.push(bare(addr));
            parents.len() - 1
        });
        entry(&mut parents[at], rest);
    }
    assert!(!parents.is_empty(), "{name}");
    HostScan { parents, ..HostScan::default() }.sorted()
}

fn entry(parent: &mut Parent, line: &str) {
    let last = |path: &str| path.rsplit_once('/').unwrap().1.to_owned();
    if let Some(target) = line.strip_prefix("physfn -> ") {
        parent.physical_function = Some(last(target).parse().unwrap());
    } else if let Some(target) = line.strip_prefix("driver -> ") {
        parent.driver = Some(last(target));
    } else if let Some(list) = line.strip_prefix("nvidia/creatable_vgpu_types = ") {
        parent.framework = Some(Framework::VendorVfio);
        let rows = list.split('|').filter_map(|row| row.split_once(':'));
        for (id, name) in rows.filter(|(id, _)| id.trim() != "ID") {
            parent.types.push(MdevType { name: Some(name.trim().to_owned()), ..blank_type(id.trim()) });
        }
    } else if let Some(rest) = line.strip_prefix("mdev_supported_types/") {
        parent.framework = Some(Framework::Mdev);
        let (id, rest) = rest.split_once('/').unwrap();
        if parent.types.last().is_none_or(|t| t.id.as_str() != id) {
            parent.types.push(blank_type(id));
        }
        let offered = parent.types.last_mut().unwrap();
        let (key, value) = rest.split_once(" = ").unwrap();
        let value = value.trim_end_matches('|');
        match key {
            "name" => offered.name = Some(value.to_owned()),
            "available_instances" => offered.available_instances = value.parse().unwrap(),
            "description" => offered.facts = TypeFacts::parse(value),
            _ => {}
        }
    }
}
