//! The host as the kernel shows it: parents and devices as a look through libvirt would give them, without definitions.

use std::collections::BTreeSet;

use super::{MDEV_DEVICES, Sysfs, pci};
use crate::host::HostError;
use crate::model::{
    DeviceApi, Finding, FindingKind, Framework, HostScan, InvalidName, Mdev, MdevType, MdevUuid, Parent,
    ParentAddr, PciAddress, TypeFacts, TypeId,
};

impl Sysfs {
    /// All parents, the physical functions of their virtual ones, and the mediated devices that exist. What vanishes meanwhile is
    /// left out; so is a type that cannot be understood, which is named.
    ///
    /// # Errors
    /// `Unreadable`.
    ///
    /// # Source
    /// Linux `Documentation/ABI/testing/sysfs-bus-vfio-mdev`.
    pub fn look(&self) -> Result<HostScan, HostError> {
        let mut scan = HostScan::default();
        for name in self.mdev_bus()? {
            if let Some(addr) = self.parent_called(&name)?
                && let Some(parent) = self.parent(&name, addr, &mut scan.findings)?
            {
                scan.parents.push(parent);
            }
        }
        let there: BTreeSet<ParentAddr> = scan.parents.iter().map(|p| p.addr.clone()).collect();
        let cards: BTreeSet<PciAddress> = scan.parents.iter().filter_map(|p| p.physical_function).collect();
        for card in cards.into_iter().filter(|card| !there.contains(&ParentAddr::Pci(*card))) {
            scan.parents.push(self.function(card)?);
        }
        for uuid in self.active_mdevs()? {
            scan.mdevs.extend(self.existing(uuid)?);
        }
        Ok(scan.sorted())
    }

    /// The mediated device of this UUID as a scan shows it.
    ///
    /// # Errors
    /// `Unreadable`, also for one below a parent that is none.
    pub fn existing(&self, uuid: MdevUuid) -> Result<Option<Mdev>, HostError> {
        let Some(found) = self.active_mdev(uuid)? else { return Ok(None) };
        let path = format!("{MDEV_DEVICES}/{uuid}");
        let parent = self.parent_called(&found.parent)?;
        let parent = parent.ok_or_else(|| super::unreadable(&path, "its parent is of no known kind"))?;
        let iommu_group = self.group(&path)?;
        let (type_id, parent_missing) = (found.type_id, false);
        Ok(Some(Mdev { uuid, parent, type_id, active: true, defined: false, parent_missing, iommu_group }))
    }

    /// The file that makes a device of this type on this parent; `None` if the parent is not there.
    ///
    /// # Errors
    /// `Unreadable`.
    pub fn create_file(&self, parent: &ParentAddr, type_id: &TypeId) -> Result<Option<String>, HostError> {
        Ok(self.types_of(parent)?.map(|(types, _)| format!("{types}/{type_id}/create")))
    }

    fn parent(
        &self,
        name: &str,
        addr: ParentAddr,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<Parent>, HostError> {
        let Some((directory, _)) = self.types_of(&addr)? else { return Ok(None) };
        let mut parent = match addr.pci() {
            Some(function) => self.function(function)?,
            None => {
                Parent { driver: self.link_name(&format!("sys/class/mdev_bus/{name}/driver"))?, ..bare(addr) }
            }
        };
        parent.framework = Some(Framework::Mdev);
        for id in self.names_in(&directory)? {
            match self.offered(&directory, &id)? {
                Ok(one) => parent.types.push(one),
                Err(why) => {
                    let text = format!("mdev type '{}' is left out: {why}", id.escape_debug());
                    findings.push(Finding::new(FindingKind::MalformedInput, parent.addr.to_string(), text));
                }
            }
        }
        parent.types.sort_by(|a, b| a.id.cmp(&b.id));
        self.describe(&mut parent)?;
        Ok(Some(parent))
    }

    /// A PCI function, whatever it offers.
    fn function(&self, addr: PciAddress) -> Result<Parent, HostError> {
        let directory = pci(addr);
        Ok(Parent {
            physical_function: self.physical_function(addr)?,
            vendor_id: self.id(&format!("{directory}/vendor"))?,
            device_id: self.id(&format!("{directory}/device"))?,
            // -1 is the kernel's word for "not known".
            numa_node: self
                .text(&format!("{directory}/numa_node"))?
                .and_then(|text| text.trim().parse().ok()),
            iommu_group: self.group(&directory)?,
            driver: self.driver(addr)?,
            ..bare(ParentAddr::Pci(addr))
        })
    }

    fn offered(&self, directory: &str, id: &str) -> Result<Result<MdevType, String>, HostError> {
        let Ok(id) = id.parse::<TypeId>() else { return Ok(Err("its id is none".to_owned())) };
        let read = |attribute| self.text(&format!("{directory}/{id}/{attribute}"));
        let (name, api, available) = (read("name")?, read("device_api")?, read("available_instances")?);
        let name = name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        // A trait is bound to a type by its name: half a name is worse than none.
        if name.as_ref().is_some_and(|name| name.contains(char::REPLACEMENT_CHARACTER)) {
            return Ok(Err("its name is not text in UTF-8".to_owned()));
        }
        let device_api: Result<DeviceApi, InvalidName> = api.unwrap_or_default().parse();
        let available_instances = available.unwrap_or_default().trim().parse();
        Ok(match (device_api, available_instances) {
            (Ok(device_api), Ok(available_instances)) => {
                Ok(MdevType { id, name, device_api, available_instances, facts: TypeFacts::default() })
            }
            (Err(err), _) => Err(err.to_string()),
            (_, Err(_)) => Err("its available_instances is no number".to_owned()),
        })
    }

    /// `0x1eb8`.
    fn id(&self, path: &str) -> Result<Option<u16>, HostError> {
        let Some(text) = self.text(path)? else { return Ok(None) };
        let id = u16::from_str_radix(text.trim().trim_start_matches("0x"), 16);
        id.map(Some).map_err(|_| super::unreadable(path, "it holds no PCI id"))
    }

    fn group(&self, device: &str) -> Result<Option<u32>, HostError> {
        Ok(self.link_name(&format!("{device}/iommu_group"))?.and_then(|name| name.parse().ok()))
    }
}

/// A parent of which nothing is known yet.
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
