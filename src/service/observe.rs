//! What is: hardware, books and domains put together, for reading and for booking.
//!
//! The books are read before and after the hardware. A device of ours is in the books before it is made and until it is
//! removed, so one that left them meanwhile is left out of the look: it is neither foreign nor idle.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::catalog::memory::Memory;
use crate::catalog::sense::Sense;
use crate::host::Domain;
use crate::model::{
    Claim, Finding, FindingKind, Framework, HostScan, Instance, InstanceUuid, Mdev, MdevUuid, OwnDevice,
    Parent, ParentAddr, TypeId, TypeIdentity,
};
use crate::store::Books;
use crate::xml::domain::{DeviceFacts, DomainDoc, check};

/// One look at hardware and books.
#[derive(Debug, Clone)]
pub(super) struct Observation {
    /// The hardware.
    pub(super) scan: HostScan,
    /// Instances.
    pub(super) instances: Vec<Instance>,
    /// Claims.
    pub(super) claims: Vec<Claim>,
    /// Devices that are ours.
    pub(super) own: Vec<OwnDevice>,
    /// What the operator's words meant before this look.
    pub(super) memory: Arc<Memory>,
}

impl Observation {
    /// Joins a scan with the books read `before` and `after` it.
    pub(super) fn new(before: &Books, mut scan: HostScan, after: &Books, memory: Arc<Memory>) -> Self {
        let is_own = |books: &Books, mdev: &Mdev| books.own_device(mdev.uuid, &mdev.parent).is_some();
        scan.mdevs.retain(|mdev| is_own(after, mdev) || !is_own(before, mdev));
        Self {
            instances: after.instances().cloned().collect(),
            claims: after.claims().map(|claim| under_todays_id(claim, &scan)).collect(),
            own: after.own_devices().cloned().collect(),
            memory,
            scan,
        }
    }

    /// What stays of a type when its id moves.
    pub(super) fn identity(&self, parent: &ParentAddr, type_id: &TypeId) -> Option<TypeIdentity> {
        let parent = self.scan.parent(parent)?;
        Some(TypeIdentity::of(parent, parent.mdev_type(type_id)?))
    }

    /// Whether we made this device.
    pub(super) fn is_own(&self, mdev: &Mdev) -> bool {
        self.own.binary_search_by(|d| (d.uuid, &d.parent).cmp(&(mdev.uuid, &mdev.parent))).is_ok()
    }

    /// The claim on this device.
    pub(super) fn claim_on(&self, mdev: &Mdev) -> Option<&Claim> {
        self.claims.iter().find(|c| c.uuid == mdev.uuid && c.parent == mdev.parent)
    }

    /// What domains that name devices of this host are checked against.
    pub(super) fn device_facts(&self) -> DeviceFacts {
        let api = |m: &Mdev| {
            let parent = self.scan.parent(&m.parent)?;
            Some((m.uuid, parent.mdev_type(m.type_id.as_ref()?)?.device_api))
        };
        let vendor = |p: &&Parent| p.framework == Some(Framework::VendorVfio);
        DeviceFacts {
            device_api: self.scan.mdevs.iter().filter_map(api).collect(),
            vendor_vfio: self.scan.parents.iter().filter(vendor).filter_map(|p| p.addr.pci()).collect(),
        }
    }

    /// The name of an instance, its UUID if it has none.
    pub(super) fn instance_name(&self, uuid: InstanceUuid) -> String {
        let named = self.instances.iter().find(|i| i.uuid == uuid && !i.name.is_empty());
        named.map_or_else(|| uuid.to_string(), |i| i.name.clone())
    }
}

/// The claim with the id that its type has on its parent now; a device that is lost is made again under that one.
fn under_todays_id(claim: &Claim, scan: &HostScan) -> Claim {
    let known = scan.parent(&claim.parent).zip(claim.identity.as_ref());
    let now = known.map(|(parent, identity)| Sense::look(identity, &claim.mdev_type, parent));
    match now {
        Some(Sense::Renumbered(t)) => Claim { mdev_type: t.id.clone(), ..claim.clone() },
        Some(Sense::Same(_) | Sense::Renamed(_) | Sense::Drifted(_) | Sense::Gone) | None => claim.clone(),
    }
}

/// Which domains name which devices in their XML.
#[derive(Debug, Default)]
pub(super) struct Usage {
    by_device: BTreeMap<MdevUuid, BTreeSet<(InstanceUuid, String)>>,
}

impl Usage {
    /// Reads the domains; XML that cannot be read is a finding, and what it names stays unknown. So is what is wrong
    /// with the host devices of a domain that names a mediated device.
    pub(super) fn of(domains: &[Domain], facts: &DeviceFacts, findings: &mut Vec<Finding>) -> Self {
        let mut usage = Self::default();
        for domain in domains {
            match DomainDoc::parse(&domain.xml) {
                Ok(doc) => {
                    if doc.mdevs().next().is_some() {
                        findings.extend(check(&doc, facts).iter().map(|r| r.finding(&domain.name)));
                    }
                    for uuid in doc.mdevs() {
                        usage.by_device.entry(uuid).or_default().insert((domain.uuid, domain.name.clone()));
                    }
                }
                Err(err) => {
                    let text = format!("its XML cannot be read, so its devices are unknown: {err}");
                    findings.push(Finding::new(FindingKind::Unknown, &domain.name, text));
                }
            }
        }
        usage
    }

    /// Names of the domains that name this device.
    pub(super) fn names(&self, uuid: MdevUuid) -> Vec<&str> {
        self.by_device.get(&uuid).into_iter().flatten().map(|(_, name)| name.as_str()).collect()
    }

    /// Devices that a domain names although another instance holds them (a cloned VM carries its model's UUIDs).
    pub(super) fn conflicts(&self, seen: &Observation) -> Vec<Finding> {
        let mut out = Vec::new();
        for claim in &seen.claims {
            let strangers = self
                .by_device
                .get(&claim.uuid)
                .into_iter()
                .flatten()
                .filter(|(uuid, _)| *uuid != claim.instance);
            for (_, name) in strangers {
                let owner = seen.instance_name(claim.instance);
                let text = format!(
                    "domain {name:?} names this device, but {owner:?} holds it; give {name:?} a device of its own"
                );
                out.push(Finding::new(FindingKind::Conflict, claim.uuid.to_string(), text));
            }
        }
        out
    }
}
