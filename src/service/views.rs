//! Observations as callers see them.

use super::api::{DeviceView, InstanceView, MdevView, TypeView};
use super::observe::{Observation, Usage};
use crate::config::Config;
use crate::model::{
    ClaimView, Finding, FindingKind, HostScan, InventoryRecord, Mdev, MdevType, Parent, ParentAddr,
};
use crate::store::Books;

/// All instances with their claims.
pub(super) fn instance_views(books: &Books) -> Vec<InstanceView> {
    books
        .instances()
        .map(|i| InstanceView {
            uuid: i.uuid,
            name: i.name.clone(),
            claims: books.claims_of(i.uuid).map(ClaimView::from).collect(),
        })
        .collect()
}

/// All inventory records.
pub(super) fn inventory(seen: &Observation, config: &Config, host: &str) -> Vec<InventoryRecord> {
    let mapping = seen.mapping(config);
    seen.capacity(&mapping).iter().filter_map(|c| c.record(host)).collect()
}

/// All parents, with types and devices.
pub(super) fn devices(seen: &Observation, config: &Config, usage: Option<&Usage>) -> Vec<DeviceView> {
    let mapping = seen.mapping(config);
    let capacity = seen.capacity(&mapping);
    let status = |addr: &ParentAddr| {
        let cap = capacity.iter().find(|c| c.assigned.parent.addr == *addr);
        match cap {
            Some(cap) if cap.total > 0 => "ok".to_owned(),
            Some(cap) => cap.reason.clone(),
            None => mapping.without.get(addr).cloned().unwrap_or_default(),
        }
    };
    seen.scan.parents.iter().map(|p| device_view(p, status(&p.addr), seen, usage)).collect()
}

fn device_view(parent: &Parent, status: String, seen: &Observation, usage: Option<&Usage>) -> DeviceView {
    let hex = |id: Option<u16>| id.map(|n| format!("{n:#06x}"));
    let name =
        parent.product.clone().or_else(|| parent.driver.clone()).unwrap_or_else(|| parent.addr.node_name());
    DeviceView {
        address: parent.addr.clone(),
        name,
        framework: parent.framework,
        physical_function: parent.physical_function,
        vendor_id: hex(parent.vendor_id),
        device_id: hex(parent.device_id),
        numa_node: parent.numa_node,
        iommu_group: parent.iommu_group,
        status,
        types: parent.types.iter().map(type_view).collect(),
        mdevs: seen
            .scan
            .mdevs
            .iter()
            .filter(|m| m.parent == parent.addr)
            .map(|m| mdev_view(m, seen, usage))
            .collect(),
    }
}

fn type_view(mdev_type: &MdevType) -> TypeView {
    TypeView {
        id: mdev_type.id.clone(),
        name: mdev_type.name.clone(),
        device_api: mdev_type.device_api,
        available_instances: mdev_type.available_instances,
        framebuffer_mib: mdev_type.facts.framebuffer_mib,
        heads: mdev_type.facts.heads,
        max_instances: mdev_type.facts.max_instances,
    }
}

/// One device; `usage` is `None` when the domains could not be read.
pub(super) fn mdev_view(mdev: &Mdev, seen: &Observation, usage: Option<&Usage>) -> MdevView {
    let own = seen.is_own(mdev);
    let usage = match (seen.claim_on(mdev), usage) {
        (Some(claim), _) => format!("instance {}", seen.instance_name(claim.instance)),
        (None, None) => "unknown: the domains could not be read".to_owned(),
        (None, Some(usage)) => match usage.names(mdev.uuid)[..] {
            [] if own => "idle".to_owned(),
            [] => "in no domain".to_owned(),
            ref names => format!("used by {}", names.join(", ")),
        },
    };
    MdevView {
        uuid: mdev.uuid,
        parent: mdev.parent.clone(),
        mdev_type: mdev.type_id.clone(),
        active: mdev.active,
        defined: mdev.defined,
        foreign: !own,
        usage,
    }
}

/// Definitions whose parent is gone: neither started nor deleted, only told.
pub(super) fn set_aside(scan: &HostScan) -> Vec<Finding> {
    let orphans = scan.mdevs.iter().filter(|m| m.parent_missing);
    orphans
        .map(|m| {
            let text = format!("parent {} missing; the definition is kept as it is", m.parent);
            Finding::new(FindingKind::ParentMissing, m.uuid.to_string(), text)
        })
        .collect()
}
