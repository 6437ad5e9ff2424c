//! What the kernel and mdevctl's files know besides libvirt, on a local connection.
//!
//! libvirt leaves things out without a word: a parent one of whose type attributes cannot be read, a device whose udev event it
//! gave up on, every definition when mdevctl's listing ended at a broken file. Each such thing is named, and a device
//! that is left out is added to the scan as it is: what is there is not free.

use crate::host::HostError;
use crate::host::mdevctl_d::{Definitions, MdevctlDir};
use crate::host::sysfs::{Sysfs, is_kernel_name_of};
use crate::model::{Finding, FindingKind, Mdev, MdevUuid, Parent, ParentAddr, TypeId};

use super::nodedev::Listing;

/// The two places, below one root.
#[derive(Debug, Clone)]
pub(super) struct Witness {
    pub(super) sysfs: Sysfs,
    pub(super) definitions: MdevctlDir,
}

/// A mediated device that is in the kernel or in a file.
struct Known {
    uuid: MdevUuid,
    /// Kernel's name.
    parent: String,
    type_id: Option<TypeId>,
    active: bool,
}

impl Witness {
    pub(super) fn new(sysfs: Sysfs) -> Self {
        let definitions = MdevctlDir::new(sysfs.root());
        Self { sysfs, definitions }
    }

    /// Adds what libvirt left out, with findings. A place that cannot be read is a finding too.
    pub(super) fn complete(&self, listing: &mut Listing) {
        for step in [Self::parents, Self::virtual_functions, Self::active, Self::defined] {
            if let Err(err) = step(self, listing) {
                let text = format!("{err}; what libvirt lists could not be compared with it");
                listing.scan.findings.push(Finding::new(FindingKind::Unknown, "this host", text));
            }
        }
    }

    /// Adds the devices of this UUID that libvirt left out.
    ///
    /// # Errors
    /// `Unreadable`.
    pub(super) fn complete_one(&self, uuid: MdevUuid, mdevs: &mut Vec<Mdev>) -> Result<(), HostError> {
        if let Some(found) = self.sysfs.active_mdev(uuid)? {
            let known = Known { uuid, parent: found.parent, type_id: found.type_id, active: true };
            self.admit(known, &[], mdevs)?;
        }
        for parent in self.definitions.parents_of(uuid)? {
            self.admit(Known { uuid, parent, type_id: None, active: false }, &[], mdevs)?;
        }
        Ok(())
    }

    fn parents(&self, Listing { scan, .. }: &mut Listing) -> Result<(), HostError> {
        for name in self.sysfs.mdev_bus()? {
            if !scan.parents.iter().any(|parent| is_kernel_name_of(&name, &parent.addr)) {
                let text = "the kernel has it as an mdev parent, libvirt does not list it: one of its attributes may be \
                            unreadable; what it could make is not known";
                scan.findings.push(Finding::new(FindingKind::Unknown, &name, text));
            }
        }
        Ok(())
    }

    /// A VF that was unplugged leaves a gap in the numbers.
    fn virtual_functions(&self, Listing { scan, .. }: &mut Listing) -> Result<(), HostError> {
        for addr in scan.parents.iter().filter_map(|parent| parent.addr.pci()) {
            let Some(counts) = self.sysfs.sriov(addr)? else { continue };
            let there = self.sysfs.virtual_functions(addr)?.len();
            if u32::try_from(there) != Ok(counts.enabled) {
                let text =
                    format!("sriov_numvfs says {}, {there} virtual functions are there", counts.enabled);
                scan.findings.push(Finding::new(FindingKind::ConfigWarning, addr.to_string(), text));
            }
        }
        Ok(())
    }

    fn active(&self, Listing { scan, .. }: &mut Listing) -> Result<(), HostError> {
        for uuid in self.sysfs.active_mdevs()? {
            // One that is gone by now is gone.
            let Some(found) = self.sysfs.active_mdev(uuid)? else { continue };
            let about = format!("mdev {uuid} on {}", found.parent);
            let known = Known { uuid, parent: found.parent, type_id: found.type_id, active: true };
            if self.admit(known, &scan.parents, &mut scan.mdevs)? {
                let text = "it is in the kernel, libvirt does not list it as active; if this stays, restart libvirtd";
                scan.findings.push(Finding::new(FindingKind::Unknown, about, text));
            }
        }
        Ok(())
    }

    fn defined(&self, Listing { scan, orphans, .. }: &mut Listing) -> Result<(), HostError> {
        let Definitions { good, findings } = self.definitions.read()?;
        let count = good.len();
        let mut unlisted = Vec::new();
        for one in good {
            let about = format!("{} on {}", one.uuid, one.parent);
            let known =
                Known { uuid: one.uuid, parent: one.parent, type_id: Some(one.type_id), active: false };
            let listed = orphans.iter().any(|(uuid, _)| *uuid == known.uuid);
            orphans.retain(|(uuid, _)| *uuid != known.uuid);
            if self.admit(known, &scan.parents, &mut scan.mdevs)? && !listed {
                unlisted.push(about);
            }
        }
        scan.findings.extend(findings);
        if !unlisted.is_empty() {
            let text = format!(
                "libvirt's definitions could not be listed in full: {} of {count} files are not in its list ({}); they are \
                 taken from the files. Repair the files that are malformed, then restart libvirtd",
                unlisted.len(),
                unlisted.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ")
            );
            scan.findings.push(Finding::new(FindingKind::Unknown, "/etc/mdevctl.d", text));
        }
        Ok(())
    }

    /// Makes the list say what is known; whether it did not.
    fn admit(&self, known: Known, parents: &[Parent], mdevs: &mut Vec<Mdev>) -> Result<bool, HostError> {
        let listed = mdevs
            .iter_mut()
            .find(|mdev| mdev.uuid == known.uuid && is_kernel_name_of(&known.parent, &mdev.parent));
        if let Some(mdev) = listed {
            let told = if known.active { mdev.active } else { mdev.defined };
            mdev.active |= known.active;
            mdev.defined |= !known.active;
            mdev.type_id = mdev.type_id.take().or(known.type_id);
            return Ok(!told);
        }
        let there = parents.iter().find(|parent| is_kernel_name_of(&known.parent, &parent.addr));
        let addr: Option<ParentAddr> = match there {
            Some(parent) => Some(parent.addr.clone()),
            None => self.sysfs.parent_called(&known.parent)?,
        };
        if let Some(parent) = addr {
            let gone = there.is_none() && !known.active && !self.is_parent(&known.parent)?;
            mdevs.push(Mdev {
                uuid: known.uuid,
                parent,
                type_id: known.type_id,
                active: known.active,
                defined: !known.active,
                parent_missing: gone,
                iommu_group: None,
            });
        }
        Ok(true)
    }

    fn is_parent(&self, name: &str) -> Result<bool, HostError> {
        Ok(self.sysfs.mdev_bus()?.iter().any(|there| there == name))
    }
}
