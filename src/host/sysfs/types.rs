//! The `description` of types. libvirt does not pass it on, and it alone says how many slices a whole card can hold.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};

use super::{Sysfs, is_kernel_name_of, present};
use crate::host::HostError;
use crate::model::{Parent, ParentAddr, TypeFacts, TypeId};

/// Descriptions read before. A driver states them once, when it registers the parent, so they are read again only when the
/// registration is another one: its directory is new then, and with it the inode number.
#[derive(Debug, Default)]
pub(super) struct Described(Mutex<HashMap<ParentAddr, Registration>>);

#[derive(Debug)]
struct Registration {
    driver: Option<String>,
    inode: u64,
    facts: BTreeMap<TypeId, TypeFacts>,
}

impl Sysfs {
    /// Adds to the types of a parent what their descriptions say; a type without one keeps empty facts.
    ///
    /// # Errors
    /// `Unreadable`.
    ///
    /// # Source
    /// Linux `Documentation/ABI/testing/sysfs-bus-vfio-mdev`: `description` is optional.
    pub fn describe(&self, parent: &mut Parent) -> Result<(), HostError> {
        if parent.types.is_empty() {
            return Ok(());
        }
        let Some((directory, inode)) = self.types_of(&parent.addr)? else { return Ok(()) };
        let mut known = self.described.take(&parent.addr, parent.driver.as_deref(), inode);
        for offered in &mut parent.types {
            if !known.contains_key(&offered.id) {
                let text = self.text(&format!("{directory}/{}/description", offered.id))?;
                known.insert(offered.id.clone(), text.as_deref().map(TypeFacts::parse).unwrap_or_default());
            }
            offered.facts = known.get(&offered.id).cloned().unwrap_or_default();
        }
        let driver = parent.driver.clone();
        self.described.put(parent.addr.clone(), Registration { driver, inode, facts: known });
        Ok(())
    }

    /// The directory of a parent's types and its inode number.
    pub(super) fn types_of(&self, addr: &ParentAddr) -> Result<Option<(String, u64)>, HostError> {
        if let Some(pci) = addr.pci() {
            let found = self.types_below(&super::pci(pci))?;
            return found.map_or_else(
                || self.types_below(&format!("sys/class/mdev_bus/{pci}")),
                |found| Ok(Some(found)),
            );
        }
        let names = self.mdev_bus()?;
        let Some(name) = names.iter().find(|name| is_kernel_name_of(name, addr)) else { return Ok(None) };
        self.types_below(&format!("sys/class/mdev_bus/{name}"))
    }

    fn types_below(&self, device: &str) -> Result<Option<(String, u64)>, HostError> {
        let path = format!("{device}/mdev_supported_types");
        Ok(present(&path, std::fs::metadata(self.root.join(&path)))?.map(|found| (path, found.ino())))
    }
}

impl Described {
    /// What is known of this very registration.
    fn take(&self, addr: &ParentAddr, driver: Option<&str>, inode: u64) -> BTreeMap<TypeId, TypeFacts> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(addr);
        known
            .filter(|known| known.inode == inode && known.driver.as_deref() == driver)
            .map(|known| known.facts)
            .unwrap_or_default()
    }

    fn put(&self, addr: ParentAddr, registration: Registration) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(addr, registration);
    }
}
