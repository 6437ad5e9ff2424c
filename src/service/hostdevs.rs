//! Host devices in a domain's XML: those that the user wrote are judged, ours are written.

use super::Service;
use super::observe::Observation;
use crate::config::Packing;
use crate::model::{
    Claim, DeviceApi, DisplayWish, Fault, FaultKind, HostScan, InstanceUuid, MdevUuid, ParentAddr,
};
use crate::plan::pick::Wishes;
use crate::xml::domain::{self, DeviceFacts, DomainDoc, HostdevSource};

impl Service {
    /// Looks at the host devices that the user wrote, and at the host if there are any.
    pub(super) async fn check_hostdevs(&self, doc: &DomainDoc) -> Result<(), Fault> {
        if doc.hostdevs.is_empty() {
            return Ok(domain::refuse(&domain::check(doc, &DeviceFacts::default()))?);
        }
        let seen = self.observe().await?;
        domain::refuse(&domain::check(doc, &seen.device_facts()))?;
        for uuid in doc.mdevs() {
            if let Some((kind, why)) = objection(uuid, doc.uuid, &seen) {
                let text = format!(
                    "domain {:?} names mdev {uuid}, {why}; take the <hostdev> out, a device of its own is written in",
                    doc.name
                );
                return Err(Fault::new(kind, text));
            }
        }
        Ok(())
    }

    /// Writes the devices of claims into a domain's XML; everything else in it stays byte for byte.
    pub(super) fn write_hostdevs(
        &self,
        xml: &str,
        uuid: Option<InstanceUuid>,
        claims: &[Claim],
        display: DisplayWish,
    ) -> Result<String, Fault> {
        let devices: Vec<(MdevUuid, DeviceApi)> = claims.iter().map(|c| (c.uuid, c.device_api)).collect();
        let wanted = domain::Wanted { uuid, devices: &devices, display };
        Ok(domain::with_devices(xml, &wanted, &self.templates)?)
    }
}

/// What a domain's XML wants of the choice: nodes near its memory, and no second slice of a card that it names already.
pub(super) fn wishes(domain: Option<&DomainDoc>, packing: Packing, scan: &HostScan) -> Wishes {
    let hostdevs = domain.into_iter().flat_map(|doc| &doc.hostdevs);
    let parents = hostdevs.flat_map(|hostdev| match hostdev.source {
        HostdevSource::Mdev { uuid, .. } => {
            scan.mdevs_with(uuid).filter(|m| m.active).map(|m| m.parent.clone()).collect()
        }
        HostdevSource::Pci(addr) => vec![ParentAddr::Pci(addr)],
    });
    Wishes {
        packing,
        memory_nodes: domain.and_then(|doc| doc.memory_nodes.clone()),
        // Rules about cards are about PCI ones; of a second AP matrix the check of the domain speaks.
        cards: parents.map(|parent| scan.card_of(&parent)).filter(|card| card.pci().is_some()).collect(),
    }
}

/// Why a domain must not name this device. A cloned VM carries its model's devices: they stay with who holds them.
fn objection(uuid: MdevUuid, asker: Option<InstanceUuid>, seen: &Observation) -> Option<(FaultKind, String)> {
    match seen.claims.iter().find(|c| c.uuid == uuid) {
        Some(held) if Some(held.instance) == asker => None,
        Some(held) => {
            let owner = seen.instance_name(held.instance);
            Some((FaultKind::DeviceInUse, format!("which instance {owner:?} ({}) holds", held.instance)))
        }
        None if seen.own.iter().any(|d| d.uuid == uuid) => {
            Some((FaultKind::InvalidDomainXml, "which is kept for a claim".to_owned()))
        }
        None if seen.scan.mdevs_with(uuid).any(|m| m.active) => None,
        None => Some((FaultKind::InvalidDomainXml, "which is not on this host".to_owned())),
    }
}
