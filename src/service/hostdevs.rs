//! Host devices in a domain's XML: those that the user wrote are judged, ours are written.

use std::collections::BTreeSet;

use super::Service;
use crate::model::{Claim, DeviceApi, DisplayWish, Fault, FaultKind, InstanceUuid, MdevUuid};
use crate::xml::domain::{self, DeviceFacts, DomainDoc, DomainHostdev};

impl Service {
    /// Looks at the host devices that the user wrote, and at the host if there are any.
    pub(super) async fn check_hostdevs(&self, doc: &DomainDoc) -> Result<(), Fault> {
        if doc.hostdevs.is_empty() {
            return Ok(domain::refuse(&domain::check(doc, &DeviceFacts::default()))?);
        }
        let seen = self.observe().await?;
        domain::refuse(&domain::check(doc, &seen.device_facts()))?;
        self.refuse_held_devices(doc)?;
        let there = |uuid: &MdevUuid| seen.scan.mdevs_with(*uuid).any(|m| m.active);
        match doc.hostdevs.iter().filter_map(DomainHostdev::mdev_uuid).find(|uuid| !there(uuid)) {
            None => Ok(()),
            Some(uuid) => {
                let text = format!(
                    "domain {:?} names mdev {uuid}, which is not on this host; take the <hostdev> out, a device of its own is written in",
                    doc.name
                );
                Err(Fault::new(FaultKind::InvalidDomainXml, text))
            }
        }
    }

    /// A cloned VM carries its model's devices: they stay with the instance that holds them.
    fn refuse_held_devices(&self, doc: &DomainDoc) -> Result<(), Fault> {
        let books = self.store.books();
        let named: BTreeSet<MdevUuid> = doc.hostdevs.iter().filter_map(DomainHostdev::mdev_uuid).collect();
        let Some(held) = books.claims().find(|c| named.contains(&c.uuid) && Some(c.instance) != doc.uuid)
        else {
            return Ok(());
        };
        let owner = books.instance(held.instance).map_or("", |i| &i.name);
        let text = format!(
            "domain {:?} names device {}, which instance {owner:?} ({}) holds; take the <hostdev> out, a device of its own is written in",
            doc.name, held.uuid, held.instance
        );
        Err(Fault::new(FaultKind::DeviceInUse, text))
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
