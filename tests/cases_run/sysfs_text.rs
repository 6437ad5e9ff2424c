//! A description of sysfs as the node devices that libvirt would print for it.
//!
//! Only what the cases need: PCI functions with their card, driver, group and mdev types, and active mediated devices.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use mdevirt::model::PciAddress;

/// Entries by path; the value is a file's text or a link's target.
#[derive(Debug)]
struct Tree<'t> {
    entries: BTreeMap<&'t str, &'t str>,
}

/// One document for each PCI function that the description has anything of, and for each active device.
pub(crate) fn node_devices(description: &str) -> Vec<String> {
    let tree = Tree::read(description);
    let mut documents: Vec<String> =
        tree.functions().into_iter().map(|(addr, dir)| tree.function(addr, dir)).collect();
    documents.extend(tree.entries.iter().filter_map(|(path, target)| {
        let uuid = path.strip_prefix("/sys/bus/mdev/devices/").filter(|uuid| !uuid.is_empty())?;
        Some(tree.mdev(uuid, target))
    }));
    documents
}

impl<'t> Tree<'t> {
    fn read(description: &'t str) -> Self {
        let lines = description.lines().filter(|line| line.starts_with("/sys/") && !line.contains(" !E "));
        let split = |line: &'t str| {
            let (path, value) =
                line.split_once(" -> ").or_else(|| line.split_once(" =")).unwrap_or((line, ""));
            (path, value.trim_end_matches('|').trim())
        };
        Self { entries: lines.map(split).collect() }
    }

    /// Every PCI function of which there is a file, link or type, with its directory.
    fn functions(&self) -> BTreeMap<PciAddress, &'t str> {
        self.entries.keys().filter_map(|path| function_of(path)).collect()
    }

    fn value(&self, dir: &str, name: &str) -> Option<&'t str> {
        self.entries.get(format!("{dir}/{name}").as_str()).copied()
    }

    fn link_name(&self, dir: &str, name: &str) -> Option<&'t str> {
        self.value(dir, name)?.rsplit('/').next()
    }

    fn function(&self, addr: PciAddress, dir: &str) -> String {
        let driver = self.link_name(dir, "driver").unwrap_or("nvidia");
        let vendor = if driver == "i915" { "0x8086" } else { "0x10de" };
        let product = self.value(dir, "device").unwrap_or("0x0001");
        let mut inside = String::new();
        if let Some(card) = self.link_name(dir, "physfn") {
            let card = address(card.parse().unwrap());
            write!(inside, "<capability type='phys_function'>{card}</capability>").unwrap();
        }
        inside += &self.types(dir);
        if let Some(group) = self.link_name(dir, "iommu_group") {
            write!(inside, "<iommuGroup number='{group}'>{}</iommuGroup>", address(addr)).unwrap();
        }
        format!(
            "<device><name>{}</name><path>{dir}</path><parent>computer</parent>\
             <driver><name>{driver}</name></driver><capability type='pci'><domain>{}</domain><bus>{}</bus>\
             <slot>{}</slot><function>{}</function><product id='{product}'/><vendor id='{vendor}'/>{inside}</capability></device>",
            addr.node_name(),
            addr.domain(),
            addr.bus(),
            addr.slot(),
            addr.function()
        )
    }

    fn types(&self, dir: &str) -> String {
        let below = format!("{dir}/mdev_supported_types/");
        let of_types = self.entries.keys().filter_map(|path| path.strip_prefix(below.as_str()));
        let ids: BTreeSet<&str> = of_types.filter_map(|path| path.split('/').next()).collect();
        if ids.is_empty() {
            return String::new();
        }
        let mut xml = "<capability type='mdev_types'>".to_owned();
        for id in ids {
            let value = |name: &str| self.value(&format!("{below}{id}"), name);
            write!(xml, "<type id='{id}'>").unwrap();
            if let Some(name) = value("name") {
                write!(xml, "<name>{name}</name>").unwrap();
            }
            let (api, available) = (value("device_api").unwrap(), value("available_instances").unwrap());
            write!(
                xml,
                "<deviceAPI>{api}</deviceAPI><availableInstances>{available}</availableInstances></type>"
            )
            .unwrap();
        }
        xml + "</capability>"
    }

    fn mdev(&self, uuid: &str, target: &str) -> String {
        let path = target.trim_start_matches("../");
        let parent: PciAddress = path.rsplit('/').nth(1).unwrap().parse().unwrap();
        let type_id = self.link_name(&format!("/sys/{path}"), "mdev_type").unwrap();
        format!(
            "<device><name>mdev_{}_{}</name><path>/sys/{path}</path><parent>{}</parent>\
             <capability type='mdev'><type id='{type_id}'/><uuid>{uuid}</uuid></capability></device>",
            uuid.replace('-', "_"),
            &parent.node_name()[4..],
            parent.node_name()
        )
    }
}

/// The last PCI function on the way to an entry; of a mediated device below it nothing is said here.
fn function_of(path: &str) -> Option<(PciAddress, &str)> {
    let mut start = 0;
    let mut last = None;
    for part in path.split('/') {
        let end = start + part.len();
        if let Ok(addr) = part.parse::<PciAddress>() {
            last = Some((addr, &path[..end]));
        }
        start = end + 1;
    }
    let (addr, dir) = last?;
    let inside = path[dir.len()..].split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>();
    let plain = inside.first().is_some_and(|first| first.parse::<uuid::Uuid>().is_err());
    (plain && !path.contains("/mdev_bus/")).then_some((addr, dir))
}

fn address(addr: PciAddress) -> String {
    format!(
        "<address domain='{:#06x}' bus='{:#04x}' slot='{:#04x}' function='{:#x}'/>",
        addr.domain(),
        addr.bus(),
        addr.slot(),
        addr.function()
    )
}
