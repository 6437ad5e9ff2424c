//! Parents and devices as a scan gives them, from the kernel alone: for the time in which libvirt must not be asked.
//!
//! 1. Values are those that libvirt prints of the same attributes; only the product's text, of which the kernel knows
//!    nothing, is not there.
//! 2. Devices are read before what is free, so that availability is never older than the list of devices.
//! 3. A parent that vanishes while it is read is left out. One that stays and cannot be read or understood is left out and
//!    named: what it could make is not known.

use std::collections::BTreeSet;

use super::{MDEV_DEVICES, Sysfs, pci, unreadable};
use crate::host::HostError;
use crate::model::{
    Finding, FindingKind, Framework, HostScan, Mdev, MdevUuid, Parent, ParentAddr, PciAddress,
};

impl Sysfs {
    /// Whether there is a sysfs at all, so that what it does not show does not exist.
    pub fn is_mounted(&self) -> bool {
        self.root.join("sys/class").is_dir()
    }

    /// All parents (and physical functions of VFs) and all devices that exist. No device is `defined`.
    ///
    /// # Errors
    /// `Unreadable` if parents or devices cannot be listed, or a device cannot be read.
    pub fn scan(&self) -> Result<HostScan, HostError> {
        let mut scan = HostScan::default();
        for uuid in self.active_mdevs()? {
            // One that is gone by now is gone.
            scan.mdevs.extend(self.mdev(uuid)?);
        }
        for name in self.mdev_bus()? {
            match self.parent(&name, &mut scan.findings) {
                Ok(parent) => scan.parents.push(parent),
                Err(err) if self.is_parent(&name)? => scan.findings.push(left_out(&name, &err)),
                Err(_) => {}
            }
        }
        self.add_cards(&mut scan)?;
        Ok(scan.sorted())
    }

    /// The device with this UUID, if the kernel has one.
    ///
    /// # Errors
    /// `Unreadable`, also if it is there and libvirt's name of its parent is not known.
    pub fn mdev(&self, uuid: MdevUuid) -> Result<Option<Mdev>, HostError> {
        let Some(found) = self.active_mdev(uuid)? else { return Ok(None) };
        let path = format!("{MDEV_DEVICES}/{uuid}");
        let iommu_group = self.iommu_group(&path)?;
        let Some(parent) = self.parent_called(&found.parent)? else {
            let unknown = || unreadable(&path, format!("its parent '{}' is unknown", found.parent));
            return self.link(&path)?.map_or(Ok(None), |_| Err(unknown()));
        };
        Ok(Some(Mdev {
            uuid,
            parent,
            type_id: found.type_id,
            active: true,
            defined: false,
            parent_missing: false,
            iommu_group,
        }))
    }

    fn is_parent(&self, name: &str) -> Result<bool, HostError> {
        Ok(self.mdev_bus()?.iter().any(|known| known == name))
    }

    fn parent(&self, name: &str, findings: &mut Vec<Finding>) -> Result<Parent, HostError> {
        let path = format!("sys/class/mdev_bus/{name}");
        let unknown = || unreadable(&path, "its name is none that a parent has in libvirt");
        let mut parent = match self.parent_called(name)?.ok_or_else(unknown)? {
            ParentAddr::Pci(addr) => self.function(addr)?,
            addr @ ParentAddr::Node(_) => {
                Parent { driver: self.link_name(&format!("{path}/driver"))?, ..bare(addr) }
            }
        };
        parent.framework = Some(Framework::Mdev);
        findings.extend(self.offer(&mut parent)?);
        Ok(parent)
    }

    /// Adds the physical functions of VFs: they offer nothing themselves, but hold the facts of the card that the VFs share.
    fn add_cards(&self, scan: &mut HostScan) -> Result<(), HostError> {
        let there: BTreeSet<&ParentAddr> = scan.parents.iter().map(|parent| &parent.addr).collect();
        let cards: BTreeSet<PciAddress> =
            scan.parents.iter().filter_map(|parent| parent.physical_function).collect();
        let missing: Vec<PciAddress> =
            cards.into_iter().filter(|card| !there.contains(&ParentAddr::Pci(*card))).collect();
        for card in missing {
            match self.function(card) {
                Ok(function) if self.has_function(card)? => scan.parents.push(function),
                Err(err) if self.has_function(card)? => scan.findings.push(left_out(&card.to_string(), &err)),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// A PCI function without what it offers.
    fn function(&self, addr: PciAddress) -> Result<Parent, HostError> {
        let device = pci(addr);
        Ok(Parent {
            physical_function: self.physical_function(addr)?,
            vendor_id: self.pci_id(&format!("{device}/vendor"))?,
            device_id: self.pci_id(&format!("{device}/device"))?,
            // -1 is the kernel's word for "not known".
            numa_node: self.text(&format!("{device}/numa_node"))?.and_then(|node| node.trim().parse().ok()),
            iommu_group: self.iommu_group(&device)?,
            driver: self.driver(addr)?,
            ..bare(ParentAddr::Pci(addr))
        })
    }

    /// `0x1eb8`.
    fn pci_id(&self, path: &str) -> Result<Option<u16>, HostError> {
        let Some(text) = self.text(path)? else { return Ok(None) };
        let digits = text.trim().trim_start_matches("0x");
        u16::from_str_radix(digits, 16).map(Some).map_err(|_| unreadable(path, "it holds no PCI id"))
    }
}

fn bare(addr: ParentAddr) -> Parent {
    Parent {
        addr,
        framework: None,
        physical_function: None,
        vendor_id: None,
        device_id: None,
        product: None,
        numa_node: None,
        iommu_group: None,
        driver: None,
        types: Vec::new(),
    }
}

fn left_out(about: &str, err: &HostError) -> Finding {
    Finding::new(FindingKind::Unknown, about, format!("it is left out: {err}"))
}
