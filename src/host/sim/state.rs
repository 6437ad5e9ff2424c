//! What the simulated host has, in memory and, with `--sim-state FILE`, in a file.
//!
//! 1. Memory and file change together: an edit that cannot be written is taken back and its call fails.
//! 2. The file is replaced as a whole (temporary file, rename), so a kill at any point leaves the host before or after one
//!    edit. It is not synced: a power cut may lose it, as it loses a simulated host.
//! 3. One daemon per file, by a lock on `FILE.lock` that ends with the daemon.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::script::unreadable;
use crate::host::HostError;
use crate::model::{InstanceUuid, Mdev, MdevUuid, ParentAddr, TypeId};

/// A domain as the simulator remembers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SimDomain {
    pub(super) uuid: InstanceUuid,
    pub(super) name: String,
    /// XML it runs with; `None` while it is off.
    pub(super) live: Option<String>,
    /// XML of its definition; `None` for a transient domain.
    pub(super) defined: Option<String>,
    /// XML of its saved memory, if it has some: the next start goes on with it.
    #[serde(default)]
    pub(super) saved: Option<String>,
    /// libvirt starts it when the host boots.
    #[serde(default)]
    pub(super) autostart: bool,
    /// Mediated devices of `live`: it holds them while it runs, and only then.
    pub(super) holds: BTreeSet<MdevUuid>,
}

/// Everything that outlives a daemon.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    /// Devices of the host, the file's own and made ones.
    pub(super) devices: Vec<Mdev>,
    pub(super) domains: Vec<SimDomain>,
    /// Devices that were taken over from the scenario file once; a removed one must not come back with the next start.
    pub(super) seen_devices: BTreeSet<(MdevUuid, ParentAddr)>,
    /// The same for domains.
    pub(super) seen_domains: BTreeSet<InstanceUuid>,
    /// Parents and cards that are not there at present.
    pub(super) absent: BTreeSet<ParentAddr>,
    /// Type ids of the file with the ids they have at present, where these differ.
    pub(super) numbering: BTreeMap<TypeId, TypeId>,
    /// Type ids of the file that no parent offers at present.
    #[serde(default)]
    pub(super) withdrawn: BTreeSet<TypeId>,
    /// How often the host was booted again.
    #[serde(default)]
    pub(super) boot: u64,
}

/// One change of a [`Table`]; `None` removes.
#[derive(Debug)]
pub(super) enum Edit {
    Device { uuid: MdevUuid, parent: ParentAddr, to: Option<Mdev> },
    Domain { uuid: InstanceUuid, to: Option<SimDomain> },
    Absent { parent: ParentAddr, to: bool },
    Numbering(BTreeMap<TypeId, TypeId>),
    Withdrawn(BTreeSet<TypeId>),
    Boot(u64),
}

impl Edit {
    /// The device as it is to be.
    pub(super) fn device(mdev: Mdev) -> Self {
        Self::Device { uuid: mdev.uuid, parent: mdev.parent.clone(), to: Some(mdev) }
    }

    /// The domain as it is to be; one that neither runs nor is defined goes.
    pub(super) fn domain(domain: SimDomain) -> Self {
        let there = domain.live.is_some() || domain.defined.is_some();
        Self::Domain { uuid: domain.uuid, to: there.then_some(domain) }
    }
}

impl Table {
    /// Makes one edit and returns its reverse.
    fn swap(&mut self, edit: Edit) -> Edit {
        match edit {
            Edit::Device { uuid, parent, to } => {
                let to = swap_in(&mut self.devices, |d| d.uuid == uuid && d.parent == parent, to);
                Edit::Device { uuid, parent, to }
            }
            Edit::Domain { uuid, to } => {
                Edit::Domain { uuid, to: swap_in(&mut self.domains, |d| d.uuid == uuid, to) }
            }
            Edit::Absent { parent, to: true } => {
                Edit::Absent { to: !self.absent.insert(parent.clone()), parent }
            }
            Edit::Absent { parent, to: false } => Edit::Absent { to: self.absent.remove(&parent), parent },
            Edit::Numbering(map) => Edit::Numbering(std::mem::replace(&mut self.numbering, map)),
            Edit::Withdrawn(types) => Edit::Withdrawn(std::mem::replace(&mut self.withdrawn, types)),
            Edit::Boot(count) => Edit::Boot(std::mem::replace(&mut self.boot, count)),
        }
    }

    pub(super) fn device(&self, uuid: MdevUuid, parent: &ParentAddr) -> Option<&Mdev> {
        self.devices.iter().find(|d| d.uuid == uuid && d.parent == *parent)
    }

    pub(super) fn domain(&self, uuid: InstanceUuid) -> Option<&SimDomain> {
        self.domains.iter().find(|d| d.uuid == uuid)
    }

    /// The running domain that holds the device.
    pub(super) fn holder(&self, uuid: MdevUuid) -> Option<&SimDomain> {
        self.domains.iter().find(|d| d.live.is_some() && d.holds.contains(&uuid))
    }
}

fn swap_in<T>(list: &mut Vec<T>, is_it: impl Fn(&T) -> bool, to: Option<T>) -> Option<T> {
    let at = list.iter().position(is_it);
    match (at, to) {
        (Some(at), Some(new)) => Some(std::mem::replace(&mut list[at], new)),
        (Some(at), None) => Some(list.remove(at)),
        (None, Some(new)) => {
            list.push(new);
            None
        }
        (None, None) => None,
    }
}

/// The table and where it is kept.
#[derive(Debug)]
pub(super) struct State {
    table: Table,
    file: Option<StateFile>,
}

impl State {
    /// Reads the file, or begins with an empty host where there is none.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, HostError> {
        let Some(path) = path else { return Ok(Self { table: Table::default(), file: None }) };
        let file = StateFile::lock(path)?;
        Ok(Self { table: file.read()?, file: Some(file) })
    }

    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    /// Takes over what the scenario file has and was not taken over before.
    pub(super) fn seed(&mut self, devices: Vec<Mdev>, domains: Vec<SimDomain>) -> Result<(), HostError> {
        for device in devices {
            if self.table.seen_devices.insert((device.uuid, device.parent.clone())) {
                self.table.devices.push(device);
            }
        }
        for domain in domains {
            if self.table.seen_domains.insert(domain.uuid) {
                self.table.domains.push(domain);
            }
        }
        self.save()
    }

    /// Makes all edits or none.
    pub(super) fn apply(&mut self, edits: Vec<Edit>) -> Result<(), HostError> {
        let mut reverse: Vec<Edit> = edits.into_iter().map(|edit| self.table.swap(edit)).collect();
        let saved = self.save();
        if saved.is_err() {
            while let Some(edit) = reverse.pop() {
                self.table.swap(edit);
            }
        }
        saved
    }

    fn save(&self) -> Result<(), HostError> {
        self.file.as_ref().map_or(Ok(()), |file| file.write(&self.table))
    }
}

#[derive(Debug)]
struct StateFile {
    path: PathBuf,
    /// Held open: the lock goes with it.
    _lock: File,
}

impl StateFile {
    fn lock(path: &Path) -> Result<Self, HostError> {
        let lock_path = beside(path, ".lock");
        let cannot = |e: &dyn std::fmt::Display| {
            HostError::Refused(format!("cannot lock the simulator's state {}: {e}", path.display()))
        };
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(|e| cannot(&format!("{}: {e}", lock_path.display())))?;
        lock.try_lock().map_err(|e| match e {
            TryLockError::WouldBlock => cannot(&"another daemon has it; give each its own --sim-state"),
            TryLockError::Error(e) => cannot(&e),
        })?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    fn read(&self) -> Result<Table, HostError> {
        let what = format!("the simulator's state {}", self.path.display());
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Table::default()),
            Err(e) => return Err(unreadable(&what, &e)),
        };
        serde_json::from_slice(&text).map_err(|e| {
            unreadable(&what, &format!("{e}; remove the file to begin with the scenario's host"))
        })
    }

    fn write(&self, table: &Table) -> Result<(), HostError> {
        let new = beside(&self.path, ".new");
        let text = serde_json::to_vec(table).map_err(std::io::Error::other);
        text.and_then(|text| fs::write(&new, text)).and_then(|()| fs::rename(&new, &self.path)).map_err(|e| {
            HostError::Refused(format!("cannot write the simulator's state {}: {e}", self.path.display()))
        })
    }
}

fn beside(path: &Path, tail: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(tail);
    PathBuf::from(name)
}

#[cfg(test)]
#[path = "state_test.rs"]
mod tests;
