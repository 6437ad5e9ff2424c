//! Tables for capacity and pick on hosts built by hand.

mod capacity;
mod oracle;
mod pick;
mod reconcile;
mod restore;
mod traits;
mod wishes;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::mapping::{Assigned, Mapping};
use crate::config::{Config, EnabledType, OnRelease, Packing, Unlisted};
use crate::model::{
    Claim, ClaimId, ClaimRole, ClaimState, DeviceApi, Framework, HostScan, InstanceUuid, Mdev, MdevType,
    MdevUuid, OwnDevice, Parent, ParentAddr, ResourceClass, TypeFacts, TypeId,
};
use uuid::Uuid;

fn addr(text: &str) -> ParentAddr {
    text.parse().unwrap()
}

fn mdev_type(id: &str, available: u32, mib: u32, max: u32) -> MdevType {
    MdevType {
        id: id.parse().unwrap(),
        name: Some(format!("NVIDIA {id}")),
        device_api: DeviceApi::VfioPci,
        available_instances: available,
        facts: TypeFacts { framebuffer_mib: Some(mib), max_instances: Some(max), ..TypeFacts::default() },
    }
}

fn parent(at: &str, pf: Option<&str>, types: Vec<MdevType>) -> Parent {
    Parent {
        addr: addr(at),
        framework: Some(Framework::Mdev),
        physical_function: pf.map(|p| p.parse().unwrap()),
        vendor_id: Some(0x10de),
        device_id: Some(0x1eb8),
        product: None,
        numa_node: None,
        iommu_group: None,
        driver: Some("nvidia".into()),
        types,
    }
}

fn mdev(n: u128, at: &str, type_id: &str) -> Mdev {
    Mdev {
        uuid: MdevUuid(Uuid::from_u128(n)),
        parent: addr(at),
        type_id: Some(type_id.parse().unwrap()),
        active: true,
        defined: false,
        parent_missing: false,
        iommu_group: None,
    }
}

fn own(n: u128, at: &str, type_id: &str) -> OwnDevice {
    OwnDevice {
        uuid: MdevUuid(Uuid::from_u128(n)),
        parent: addr(at),
        type_id: type_id.parse().unwrap(),
        type_name: type_id.into(),
    }
}

fn claim(n: u128, at: &str, type_id: &str) -> Claim {
    Claim {
        id: ClaimId(Uuid::from_u128(n + 1000)),
        instance: InstanceUuid(Uuid::from_u128(n + 2000)),
        uuid: MdevUuid(Uuid::from_u128(n)),
        parent: addr(at),
        mdev_type: type_id.parse().unwrap(),
        type_name: type_id.into(),
        identity: None,
        card: None,
        device_api: DeviceApi::VfioPci,
        resource_class: ResourceClass::vgpu(),
        group: String::new(),
        traits: BTreeSet::new(),
        state: ClaimState::Reserved,
        was_parked: false,
        role: ClaimRole::Primary,
        created_usec: 0,
    }
}

fn rule(key: &str) -> EnabledType {
    EnabledType {
        key: key.into(),
        addresses: Vec::new(),
        class: ResourceClass::vgpu(),
        max_instances: None,
        reserved: 0,
        traits: BTreeSet::new(),
        several_per_vm: None,
    }
}

fn config(enabled: Vec<EnabledType>) -> Config {
    Config {
        libvirt_uri: "test:///default".into(),
        enabled,
        unlisted: Unlisted::First,
        traits_file: PathBuf::new(),
        traits_lock: PathBuf::new(),
        automatic: BTreeSet::new(),
        packing: Packing::Breadth,
        on_release: OnRelease::Remove,
        on_stop: crate::config::OnStop::Release,
        hook_start_budget_ms: 2000,
        restore_deadline_sec: 300,
        live_deadline_sec: 300,
    }
}

/// Every parent gets the rule whose key is one of its type ids, first rule first.
fn mapping<'a>(config: &'a Config, scan: &'a HostScan) -> Mapping<'a> {
    let mut out = Mapping::default();
    for parent in &scan.parents {
        let hit = config.enabled.iter().find_map(|rule| {
            let id: TypeId = rule.key.parse().ok()?;
            let listed = rule.addresses.is_empty() || rule.addresses.contains(&parent.addr);
            parent.mdev_type(&id).filter(|_| listed).map(|mdev_type| Assigned { parent, mdev_type, rule })
        });
        match hit {
            Some(assigned) => drop(out.assigned.insert(&parent.addr, assigned)),
            None => drop(out.without.insert(&parent.addr, "no configured type".into())),
        }
    }
    out
}

fn host(parents: Vec<Parent>, mdevs: Vec<Mdev>) -> HostScan {
    HostScan { parents, mdevs, findings: Vec::new() }.sorted()
}

type Row = (String, u32, u32, u32);

/// (slot.function, total, reserved, free) of every parent with a type.
fn rows(caps: &[super::capacity::ParentCapacity<'_>]) -> Vec<Row> {
    caps.iter()
        .map(|c| (c.assigned.parent.addr.to_string()[5..].to_owned(), c.total, c.reserved, c.free))
        .collect()
}

fn expect(rows: &[Row], want: &[(&str, u32, u32, u32)]) {
    let got: BTreeMap<&str, (u32, u32, u32)> = rows.iter().map(|r| (r.0.as_str(), (r.1, r.2, r.3))).collect();
    let want: BTreeMap<&str, (u32, u32, u32)> = want.iter().map(|w| (w.0, (w.1, w.2, w.3))).collect();
    assert_eq!(got, want);
}
