//! What one parent offers, as libvirt prints it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Sysfs, unreadable};
use crate::host::HostError;
use crate::model::{
    DeviceApi, Finding, FindingKind, InvalidName, MdevType, Parent, ParentAddr, TypeFacts, TypeId,
};

/// Types read before. A driver states them once, when it registers the parent; how many are free is read each time.
#[derive(Debug, Default)]
pub(super) struct Stated(Mutex<HashMap<ParentAddr, Arc<Registration>>>);

/// What a driver stated; another inode of its directory is another registration.
#[derive(Debug)]
struct Registration {
    driver: Option<String>,
    inode: u64,
    types: Vec<MdevType>,
    findings: Vec<Finding>,
}

impl Sysfs {
    /// Gives the parent its types with what is free; the types that cannot be understood are left out and told.
    ///
    /// # Errors
    /// `Unreadable` if an attribute that each type has is not there or no number: then nothing of the parent is known.
    ///
    /// # Source
    /// Linux `Documentation/ABI/testing/sysfs-bus-vfio-mdev`: `name` and `description` are optional. libvirt `virmdev.c`,
    /// `virMediatedDeviceTypeReadAttrs`: it lists no parent one of whose types lacks another attribute.
    pub(super) fn offer(&self, parent: &mut Parent) -> Result<Vec<Finding>, HostError> {
        let what = format!("sys/class/mdev_bus/{}/mdev_supported_types", parent.addr);
        let Some((directory, inode)) = self.types_of(&parent.addr)? else {
            return Err(unreadable(&what, "it is not there"));
        };
        let known = self.stated.of(parent, inode);
        let known = known.map_or_else(|| self.read_stated(&directory, inode, parent), Ok)?;
        parent.types.clone_from(&known.types);
        for offered in &mut parent.types {
            offered.available_instances = self.available(&directory, &offered.id)?;
        }
        Ok(known.findings.clone())
    }

    /// How many of a type the parent with these types can make at this moment.
    pub(super) fn available(&self, directory: &str, type_id: &TypeId) -> Result<u32, HostError> {
        let path = format!("{directory}/{type_id}/available_instances");
        self.number(&path)?.ok_or_else(|| unreadable(&path, "it is not there"))
    }

    fn read_stated(
        &self,
        directory: &str,
        inode: u64,
        parent: &mut Parent,
    ) -> Result<Arc<Registration>, HostError> {
        let mut findings = Vec::new();
        parent.types.clear();
        for id in self.names_in(directory)? {
            match self.stated_type(directory, &id)? {
                Ok(one) => parent.types.push(one),
                Err(why) => {
                    let text = format!("mdev type '{}' is left out: {why}", id.escape_debug());
                    let about = parent.addr.node_name();
                    findings.push(Finding::new(FindingKind::MalformedInput, about, text));
                }
            }
        }
        if parent.types.is_empty() && findings.is_empty() {
            return Err(unreadable(directory, "it has no types"));
        }
        self.describe(parent)?;
        let (driver, types) = (parent.driver.clone(), parent.types.clone());
        let registration = Arc::new(Registration { driver, inode, types, findings });
        self.stated.put(parent.addr.clone(), Arc::clone(&registration));
        Ok(registration)
    }

    /// A type as its driver states it, or why it is left out.
    fn stated_type(&self, directory: &str, id: &str) -> Result<Result<MdevType, String>, HostError> {
        let Ok(id) = id.parse::<TypeId>() else {
            return Ok(Err("its id is none that a driver gives".to_owned()));
        };
        let path = format!("{directory}/{id}/device_api");
        let device_api = self.text(&path)?.ok_or_else(|| unreadable(&path, "it is not there"))?;
        let name = self.text(&format!("{directory}/{id}/name"))?.unwrap_or_default();
        Ok(understood(id, &name, &device_api))
    }
}

fn understood(id: TypeId, name: &str, device_api: &str) -> Result<MdevType, String> {
    // A trait is bound to a type by its name: half a name is worse than none.
    if name.contains(is_no_text) {
        return Err("its name is not text in UTF-8".to_owned());
    }
    let device_api: DeviceApi = device_api.parse().map_err(|err: InvalidName| err.to_string())?;
    let name = Some(name.trim()).filter(|name| !name.is_empty()).map(str::to_owned);
    Ok(MdevType { id, name, device_api, available_instances: 0, facts: TypeFacts::default() })
}

/// What stands for bytes that were no text, and what libvirt's XML cannot hold.
fn is_no_text(c: char) -> bool {
    matches!(c, '\u{fffd}'..='\u{ffff}') || (c < ' ' && !matches!(c, '\t' | '\n' | '\r'))
}

impl Stated {
    /// What is known of this very registration.
    fn of(&self, parent: &Parent, inode: u64) -> Option<Arc<Registration>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.get(&parent.addr)?;
        (known.inode == inode && known.driver == parent.driver).then(|| Arc::clone(known))
    }

    fn put(&self, addr: ParentAddr, registration: Arc<Registration>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(addr, registration);
    }
}
