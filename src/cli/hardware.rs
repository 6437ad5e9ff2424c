//! `status`, `device`, `type` and `inventory` as text.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::output::Show;
use super::table::{Sheet, Table};
use crate::model::{
    DeviceApi, Fault, FaultKind, Finding, Framework, InventoryRecord, ParentAddr, TraitName, TypeId,
};
use crate::service::api::{DeviceView, MdevView, StatusView, TypeView};

impl Show for StatusView {
    fn text(&self) -> String {
        let mut sheet = Sheet::default();
        sheet.line("mdevirtd", &self.version);
        let state = match (self.connected, self.simulated) {
            (true, false) => "connected",
            (true, true) => "connected, simulated",
            (false, _) => "not reachable",
        };
        sheet.line("libvirt", format!("{} ({state})", self.libvirt_uri));
        sheet.line("providers", self.providers.to_string());
        sheet.line("instances", format!("{} with {} claims", self.instances, self.claims));
        sheet.line("jobs", format!("{} running, {} stuck", self.jobs_running, self.jobs_stuck));
        if let Some(restore) = &self.restore {
            sheet.line("devices", restore.to_string());
        }
        let mut text = sheet.to_string();
        if !self.foreign.is_empty() {
            text += &format!("\nDevices of others, never changed:\n{}", mdevs(&self.foreign));
        }
        if !self.findings.is_empty() {
            text += &format!("\nFindings:\n{}", self.findings.text());
        }
        text
    }
}

impl Show for Vec<Finding> {
    fn text(&self) -> String {
        if self.is_empty() {
            return "no findings\n".to_owned();
        }
        let mut table = Table::new(&["KIND", "ABOUT", "TEXT"]);
        for finding in self {
            table.row(vec![word(&finding.kind), finding.about.clone(), finding.text.clone()]);
        }
        table.to_string()
    }
}

impl Show for Vec<DeviceView> {
    fn text(&self) -> String {
        let mut table =
            Table::new(&["ADDRESS", "NAME", "FRAMEWORK", "CARD", "NUMA", "TYPES", "DEVICES", "STATUS"]);
        for device in self {
            table.row(vec![
                device.address.to_string(),
                device.name.clone(),
                framework(device.framework),
                shown(device.physical_function.as_ref()),
                shown(device.numa_node.as_ref()),
                device.types.len().to_string(),
                device.mdevs.len().to_string(),
                device.status.clone(),
            ]);
        }
        table.to_string()
    }
}

impl Show for DeviceView {
    fn text(&self) -> String {
        let mut sheet = Sheet::default();
        sheet.line("address", self.address.to_string());
        sheet.line("name", &self.name);
        sheet.line("status", &self.status);
        sheet.line("framework", framework(self.framework));
        sheet.line("physical function", shown(self.physical_function.as_ref()));
        let ids = [self.vendor_id.as_deref(), self.device_id.as_deref()];
        sheet.line("vendor and device", ids.into_iter().flatten().collect::<Vec<_>>().join(" "));
        sheet.line("NUMA node", shown(self.numa_node.as_ref()));
        sheet.line("IOMMU group", shown(self.iommu_group.as_ref()));
        let mut text = sheet.to_string();
        if !self.types.is_empty() {
            text += &format!("\nTypes:\n{}", types(&self.types));
        }
        if !self.mdevs.is_empty() {
            text += &format!("\nDevices:\n{}", mdevs(&self.mdevs));
        }
        text
    }
}

fn types(list: &[TypeView]) -> Table {
    let mut table = Table::new(&["ID", "NAME", "API", "AVAILABLE", "MIB", "HEADS", "MAX"]);
    for offered in list {
        table.row(vec![
            offered.id.to_string(),
            offered.name.clone().unwrap_or_default(),
            offered.device_api.to_string(),
            offered.available_instances.to_string(),
            shown(offered.framebuffer_mib.as_ref()),
            shown(offered.heads.as_ref()),
            shown(offered.max_instances.as_ref()),
        ]);
    }
    table
}

fn mdevs(list: &[MdevView]) -> Table {
    let mut table = Table::new(&["UUID", "PARENT", "TYPE", "STATE", "USAGE"]);
    for mdev in list {
        let state = match (mdev.active, mdev.defined) {
            (true, true) => "active, defined",
            (true, false) => "active",
            (false, true) => "defined",
            (false, false) => "gone",
        };
        table.row(vec![
            mdev.uuid.to_string(),
            mdev.parent.to_string(),
            shown(mdev.mdev_type.as_ref()),
            state.to_owned(),
            mdev.usage.clone(),
        ]);
    }
    table
}

/// One type of this host and the parents that offer it.
#[derive(Debug, Serialize)]
pub struct HostType {
    id: TypeId,
    name: Option<String>,
    device_api: DeviceApi,
    framebuffer_mib: Option<u32>,
    heads: Option<u32>,
    max_instances: Option<u32>,
    parents: Vec<Offer>,
}

#[derive(Debug, Serialize)]
struct Offer {
    address: ParentAddr,
    available_instances: u32,
}

/// The types of all parents; two that share an id and differ otherwise are two.
pub fn host_types(devices: &[DeviceView]) -> Vec<HostType> {
    let mut types: BTreeMap<_, HostType> = BTreeMap::new();
    for (device, offered) in devices.iter().flat_map(|device| device.types.iter().map(move |t| (device, t))) {
        let key = (
            offered.id.clone(),
            offered.name.clone(),
            offered.device_api.as_str(),
            (offered.framebuffer_mib, offered.heads, offered.max_instances),
        );
        let entry = types.entry(key).or_insert_with(|| HostType {
            id: offered.id.clone(),
            name: offered.name.clone(),
            device_api: offered.device_api,
            framebuffer_mib: offered.framebuffer_mib,
            heads: offered.heads,
            max_instances: offered.max_instances,
            parents: Vec::new(),
        });
        let available_instances = offered.available_instances;
        entry.parents.push(Offer { address: device.address.clone(), available_instances });
    }
    types.into_values().collect()
}

impl Show for Vec<HostType> {
    fn text(&self) -> String {
        let mut table = Table::new(&["ID", "NAME", "API", "MIB", "HEADS", "MAX", "PARENTS", "WITH ROOM"]);
        for host_type in self {
            let with_room = host_type.parents.iter().filter(|offer| offer.available_instances > 0).count();
            table.row(vec![
                host_type.id.to_string(),
                host_type.name.clone().unwrap_or_default(),
                host_type.device_api.to_string(),
                shown(host_type.framebuffer_mib.as_ref()),
                shown(host_type.heads.as_ref()),
                shown(host_type.max_instances.as_ref()),
                host_type.parents.len().to_string(),
                with_room.to_string(),
            ]);
        }
        table.to_string()
    }
}

impl Show for Vec<InventoryRecord> {
    fn text(&self) -> String {
        let mut table = Table::new(&[
            "PROVIDER", "CLASS", "TYPE", "TOTAL", "RESERVED", "MAX_UNIT", "USED", "FOREIGN", "TRAITS",
        ]);
        for record in self {
            table.row(vec![
                record.provider.clone(),
                record.resource_class.to_string(),
                record.type_name.clone(),
                record.total.to_string(),
                record.reserved.to_string(),
                record.max_unit.to_string(),
                record.used.to_string(),
                record.foreign.to_string(),
                traits(&record.traits),
            ]);
        }
        table.to_string()
    }
}

/// Traits of an operator's own; the many that every type has by its capabilities are counted, JSON has them all.
fn traits(all: &BTreeSet<TraitName>) -> String {
    let of_type =
        |name: &&TraitName| name.as_str().starts_with("HW_") || name.as_str().starts_with("CUSTOM_HW_");
    let mut shown: Vec<String> = all.iter().filter(|name| !of_type(name)).map(ToString::to_string).collect();
    match all.len() - shown.len() {
        0 => {}
        count => shown.push(format!("{count} of its capabilities")),
    }
    shown.join(",")
}

/// The device at an address.
///
/// # Errors
/// `InvalidRequest` for a text that is no address, `NoSuchParent` if nothing is there.
pub fn find_device(devices: Vec<DeviceView>, address: &str) -> Result<DeviceView, Fault> {
    let wanted: ParentAddr = address.parse()?;
    devices.into_iter().find(|device| device.address == wanted).ok_or_else(|| {
        let message =
            format!("no device at {wanted} can be sliced; mdevirtctl device list shows those that can");
        Fault::new(FaultKind::NoSuchParent, message)
    })
}

fn framework(framework: Option<Framework>) -> String {
    match framework {
        Some(Framework::Mdev) => "mdev".to_owned(),
        Some(Framework::VendorVfio) => "vendor-vfio".to_owned(),
        None => String::new(),
    }
}

fn shown(value: Option<&impl ToString>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}

/// The word that JSON has for a value.
fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}
