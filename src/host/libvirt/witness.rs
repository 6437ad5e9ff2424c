//! What the kernel and mdevctl's files say, on a local connection, where libvirt's list can be wrong.
//!
//! libvirt leaves things out without a word: a parent one of whose type attributes cannot be read, a device whose udev event it
//! gave up on. One broken file in mdevctl's directory ends mdevctl's listing, and with it libvirt's: its list then stays as it
//! was until libvirtd is restarted. So whether a mediated device is active is the kernel's word, whether it is defined the
//! directory's, and each difference is told: what is there is not free, and what is gone is not there.

use std::collections::{BTreeMap, BTreeSet};

use super::nodedev::Listing;
use crate::host::HostError;
use crate::host::mdevctl_d::{Definition, MdevctlDir};
use crate::host::sysfs::{ActiveMdev, Sysfs, is_kernel_name_of};
use crate::model::{Finding, FindingKind, Mdev, MdevUuid, Parent, PciAddress};

/// The two places, below one root.
#[derive(Debug, Clone)]
pub(super) struct Witness {
    pub(super) sysfs: Sysfs,
    pub(super) definitions: MdevctlDir,
}

/// What they say of mediated devices; a place that does not exist says nothing.
#[derive(Default)]
struct Facts {
    /// The kernel's names of all parents.
    parents: Option<Vec<String>>,
    active: Option<BTreeMap<MdevUuid, ActiveMdev>>,
    defined: Option<BTreeMap<MdevUuid, Vec<Definition>>>,
    malformed: Vec<Finding>,
}

impl Witness {
    pub(super) fn new(sysfs: Sysfs) -> Self {
        let definitions = MdevctlDir::new(sysfs.root());
        Self { sysfs, definitions }
    }

    /// Whether it knows the state of every mediated device, so that libvirt need not be asked.
    pub(super) fn knows_states(&self) -> bool {
        self.sysfs.has_mdev_bus() && self.definitions.exists()
    }

    /// Corrects what libvirt lists, with findings.
    ///
    /// # Errors
    /// `Unreadable` if the state of mediated devices cannot be read; what else cannot be read is a finding.
    pub(super) fn complete(&self, listing: &mut Listing) -> Result<(), HostError> {
        for step in [Self::parents, Self::virtual_functions] {
            if let Err(err) = step(self, listing) {
                let text = format!("{err}; what libvirt lists could not be compared with it");
                listing.scan.findings.push(Finding::new(FindingKind::Unknown, "this host", text));
            }
        }
        self.mdevs(listing)
    }

    /// Corrects what libvirt lists under this UUID.
    ///
    /// # Errors
    /// `Unreadable`.
    pub(super) fn complete_one(&self, uuid: MdevUuid, mdevs: &mut Vec<Mdev>) -> Result<(), HostError> {
        let mut facts = Facts::default();
        if self.sysfs.has_mdev_bus() {
            facts.parents = Some(self.sysfs.mdev_bus()?);
            facts.active =
                Some(self.sysfs.active_mdev(uuid)?.map(|found| (uuid, found)).into_iter().collect());
        }
        if self.definitions.exists() {
            facts.defined = Some([(uuid, self.definitions.of(uuid)?)].into());
        }
        self.correct(&facts, &[], true, mdevs).map(|_| ())
    }

    fn parents(&self, Listing { scan, .. }: &mut Listing) -> Result<(), HostError> {
        let listed: BTreeSet<PciAddress> =
            scan.parents.iter().filter_map(|parent| parent.addr.pci()).collect();
        for name in self.sysfs.mdev_bus()? {
            let is_listed = match name.parse() {
                Ok(addr) => listed.contains(&addr),
                Err(_) => scan.parents.iter().any(|parent| is_kernel_name_of(&name, &parent.addr)),
            };
            if !is_listed {
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

    fn mdevs(&self, Listing { scan, orphans, states, .. }: &mut Listing) -> Result<(), HostError> {
        let mut facts = self.facts()?;
        scan.findings.append(&mut facts.malformed);
        let mut differences = self.correct(&facts, &scan.parents, *states, &mut scan.mdevs)?;
        // libvirt lists an orphan without its parent; the directory knows it.
        differences.unlisted.retain(|(uuid, _)| !orphans.iter().any(|(orphan, _)| orphan == uuid));
        orphans
            .retain(|(orphan, _)| !scan.mdevs.iter().any(|mdev| mdev.uuid == *orphan && mdev.parent_missing));
        let files = facts.defined.iter().flat_map(BTreeMap::values).map(Vec::len).sum();
        scan.findings.extend(differences.findings(files));
        Ok(())
    }

    fn facts(&self) -> Result<Facts, HostError> {
        let mut facts = Facts::default();
        if self.sysfs.has_mdev_bus() {
            facts.parents = Some(self.sysfs.mdev_bus()?);
            let active = facts.active.insert(BTreeMap::new());
            for uuid in self.sysfs.active_mdevs()? {
                // One that is gone by now is gone.
                active.extend(self.sysfs.active_mdev(uuid)?.map(|found| (uuid, found)));
            }
        }
        if self.definitions.exists() {
            let read = self.definitions.read()?;
            facts.malformed = read.findings;
            let defined = facts.defined.insert(BTreeMap::new());
            for definition in read.all {
                defined.entry(definition.uuid).or_insert_with(Vec::new).push(definition);
            }
        }
        Ok(facts)
    }

    fn correct(
        &self,
        facts: &Facts,
        parents: &[Parent],
        told: bool,
        mdevs: &mut Vec<Mdev>,
    ) -> Result<Differences, HostError> {
        let mut differences = Differences::default();
        for mdev in mdevs.iter_mut() {
            facts.correct(mdev, told, &mut differences);
        }
        mdevs.retain(|mdev| mdev.active || mdev.defined);
        for (uuid, found) in facts.active.iter().flatten() {
            let Some(mdev) = self.left_out(*uuid, &found.parent, parents, mdevs)? else { continue };
            differences.not_active.push((*uuid, found.parent.clone()));
            mdevs.push(Mdev { type_id: found.type_id.clone(), active: true, ..mdev });
        }
        for file in facts.defined.iter().flat_map(BTreeMap::values).flatten() {
            if let Some(mdev) = mdevs.iter_mut().find(|mdev| file.is_of(mdev)) {
                mdev.defined = true;
                continue;
            }
            let Some(mdev) = self.left_out(file.uuid, &file.parent, parents, mdevs)? else { continue };
            if file.type_id.is_some() {
                differences.unlisted.push((file.uuid, file.parent.clone()));
                let parent_missing = !facts.has_parent(&file.parent, parents);
                mdevs.push(Mdev { type_id: file.type_id.clone(), defined: true, parent_missing, ..mdev });
            }
        }
        Ok(differences)
    }

    /// A device that libvirt does not list, if it is one and its parent has a name in libvirt.
    fn left_out(
        &self,
        uuid: MdevUuid,
        parent: &str,
        parents: &[Parent],
        mdevs: &[Mdev],
    ) -> Result<Option<Mdev>, HostError> {
        if mdevs.iter().any(|mdev| mdev.uuid == uuid && is_kernel_name_of(parent, &mdev.parent)) {
            return Ok(None);
        }
        let addr = match parents.iter().find(|known| is_kernel_name_of(parent, &known.addr)) {
            Some(known) => Some(known.addr.clone()),
            None => self.sysfs.parent_called(parent)?,
        };
        Ok(addr.map(|parent| Mdev {
            uuid,
            parent,
            type_id: None,
            active: false,
            defined: false,
            parent_missing: false,
            iommu_group: None,
        }))
    }
}

impl Facts {
    /// Whether the parent that the kernel calls `name` is there.
    fn has_parent(&self, name: &str, listed: &[Parent]) -> bool {
        match &self.parents {
            Some(names) => names.iter().any(|known| known == name),
            None => listed.iter().any(|known| is_kernel_name_of(name, &known.addr)),
        }
    }

    /// `told`: libvirt was asked for the state that `mdev` has.
    fn correct(&self, mdev: &mut Mdev, told: bool, differences: &mut Differences) {
        let (active, defined) = (mdev.active, mdev.defined);
        let is_its = |name: &str| is_kernel_name_of(name, &mdev.parent);
        if let Some(known) = &self.active {
            let found = known.get(&mdev.uuid).filter(|found| is_its(&found.parent));
            mdev.active = found.is_some();
            mdev.iommu_group = mdev.iommu_group.filter(|_| mdev.active);
            mdev.type_id = found.and_then(|found| found.type_id.clone()).or(mdev.type_id.take());
        }
        if let Some(known) = &self.defined {
            let files = known.get(&mdev.uuid).into_iter().flatten();
            mdev.defined = files.into_iter().any(|file| is_its(&file.parent));
        }
        if let Some(parents) = &self.parents {
            // libvirt still names a parent that has lost its driver.
            mdev.parent_missing |= !mdev.active && !parents.iter().any(|name| is_its(name));
        }
        let key = || (mdev.uuid, mdev.parent.to_string());
        if mdev.active && !active && told {
            differences.not_active.push(key());
        }
        if mdev.defined && !defined && told {
            differences.unlisted.push(key());
        }
        let still_as_told = mdev.active || (mdev.defined && !active);
        if !still_as_told {
            differences.stale.push(key());
        }
    }
}

/// Where libvirt's list differs: UUID and parent of each device.
#[derive(Default)]
struct Differences {
    /// In the kernel, not active in the list.
    not_active: Vec<(MdevUuid, String)>,
    /// A file, not defined in the list.
    unlisted: Vec<(MdevUuid, String)>,
    /// In the list, but not in the kernel or without a file.
    stale: Vec<(MdevUuid, String)>,
}

impl Differences {
    fn findings(&self, files: usize) -> Vec<Finding> {
        let unknown = |about: String, text: &str| Finding::new(FindingKind::Unknown, about, text);
        let name = |(uuid, parent): &(MdevUuid, String)| format!("mdev {uuid} on {parent}");
        let mut findings = Vec::new();
        for key in &self.not_active {
            let text =
                "it is in the kernel, libvirt does not list it as active; if this stays, restart libvirtd";
            findings.push(unknown(name(key), text));
        }
        for key in &self.stale {
            let text = "libvirt lists it, but it is gone; if this stays, restart libvirtd";
            findings.push(unknown(name(key), text));
        }
        if !self.unlisted.is_empty() {
            let text = format!(
                "libvirt's definitions could not be listed in full: {} of {files} files are not in its list ({}); they are \
                 taken from the files. Repair those that are malformed, then restart libvirtd",
                self.unlisted.len(),
                self.unlisted.iter().take(5).map(name).collect::<Vec<_>>().join(", ")
            );
            findings.push(unknown("/etc/mdevctl.d".to_owned(), &text));
        }
        findings
    }
}
