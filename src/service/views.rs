//! Observations as callers see them.

use std::collections::HashSet;

use super::api::{DeviceView, InstanceView, MdevView, TypeView};
use super::observe::{Observation, Usage};
use super::picture::Picture;
use crate::model::{
    ClaimView, Finding, FindingKind, HostScan, InventoryRecord, Mdev, MdevType, Parent, ParentAddr,
};
use crate::plan::capacity::awaited;
use crate::store::Books;

/// All instances with their claims.
pub(super) fn instance_views(books: &Books) -> Vec<InstanceView> {
    books
        .instances()
        .map(|i| InstanceView {
            uuid: i.uuid,
            name: i.name.clone(),
            owner: i.owner,
            flavor: i.flavor.clone(),
            moving: books.move_of(i.uuid).map(|m| format!("{} {}", m.kind, m.phase)),
            new_flavor: books.move_of(i.uuid).and_then(|m| m.baggage.new_flavor.clone()),
            peer: books.move_of(i.uuid).and_then(|m| m.baggage.peer.clone()),
            claims: books.claims_of(i.uuid).map(ClaimView::from).collect(),
        })
        .collect()
}

/// All inventory records.
pub(super) fn inventory(seen: &Observation, picture: &Picture<'_>, host: &str) -> Vec<InventoryRecord> {
    let mut records: Vec<InventoryRecord> = picture.capacity.iter().filter_map(|c| c.record(host)).collect();
    records.extend(awaited(seen.claims.iter(), &picture.capacity, host));
    records.sort_by(|a, b| a.parent.cmp(&b.parent));
    records
}

/// All parents, with types and devices.
pub(super) fn devices(seen: &Observation, picture: &Picture<'_>, usage: Option<&Usage>) -> Vec<DeviceView> {
    let status = |addr: &ParentAddr| {
        let cap = picture.capacity.iter().find(|c| c.assigned.parent.addr == *addr);
        match cap {
            Some(cap) if cap.total > 0 && cap.quarantine.is_none() => "ok".to_owned(),
            Some(cap) => cap.reason.clone(),
            None => picture.mapping.without.get(addr).cloned().unwrap_or_default(),
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
        iommu_group_shared_with: group_members(parent, &seen.scan),
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

fn group_members(parent: &Parent, scan: &HostScan) -> Vec<ParentAddr> {
    let shares = |other: &&Parent| other.iommu_group == parent.iommu_group && other.addr != parent.addr;
    let others = scan.parents.iter().filter(|_| parent.iommu_group.is_some()).filter(shares);
    others.map(|other| other.addr.clone()).collect()
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
    // Domains name a UUID; of several devices that have it they mean the one in the kernel.
    let meant = seen.scan.mdevs_with(mdev.uuid).find(|m| m.active).map_or(&mdev.parent, |m| &m.parent);
    let usage = match (seen.claim_on(mdev), usage) {
        (Some(claim), _) => format!("instance {}", seen.instance_name(claim.instance)),
        (None, _) if *meant != mdev.parent => format!("only defined; active on {meant}"),
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

/// Devices that nothing is done with: definitions whose parent is gone, and active ones of an unknown type.
pub(super) fn set_aside(scan: &HostScan) -> Vec<Finding> {
    let finding = |m: &Mdev| {
        let parent = &m.parent;
        let (kind, text) = if m.parent_missing {
            let text = format!(
                "parent {parent} missing; the definition is kept as it is, neither started nor removed"
            );
            (FindingKind::ParentMissing, text)
        } else if m.active && m.type_id.is_none() {
            let text =
                format!("libvirt does not tell the type of this device on {parent}; it is not counted");
            (FindingKind::Unknown, text)
        } else {
            return None;
        };
        Some(Finding::new(kind, m.uuid.to_string(), text))
    };
    scan.mdevs.iter().filter_map(finding).collect()
}

/// UUIDs on more than one parent, which mdevctl allows and then cannot tell apart.
pub(super) fn doubled(scan: &HostScan) -> Vec<Finding> {
    let groups = scan.mdevs.chunk_by(|a, b| a.uuid == b.uuid).filter(|group| group.len() > 1);
    let finding = |group: &[Mdev]| {
        let parents: Vec<String> = group.iter().map(|m| m.parent.to_string()).collect();
        let text = format!(
            "is on {}; mdevctl starts and undefines by the UUID alone, so this ends with both or none: undefine one",
            parents.join(" and ")
        );
        Finding::new(FindingKind::Conflict, group[0].uuid.to_string(), text)
    };
    groups.map(finding).collect()
}

/// Each finding once, in order: two readings of one thing are one thing.
pub(super) fn each_once(findings: &mut Vec<Finding>) {
    let mut seen = HashSet::new();
    findings.retain(|finding| seen.insert(finding.clone()));
}
