//! A plain reader of a scenario file, for builds and tests without libvirt's library.
//!
//! It shows what the test driver shows for the file and checks less: names and UUIDs of domains, no more.
//!
//! # Source
//! libvirt `src/test/test_driver.c` (`testOpenParse`): `/node/device` and `/node/domain`, each in place or in another file
//! named by `file='PATH'`; a domain runs unless `test:runstate` says otherwise.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::broadcast;

use super::scenario::{self, Scenario};
use crate::host::{Config, Domain, HostError, HostEvent, HostdevXml, Hypervisor, NodeDevices};
use crate::model::{HostScan, InstanceUuid, Mdev, MdevUuid, NewMdev, Parent, ParentAddr};
use crate::xml::domain::{DomainDoc, with_vgpu_element};

/// The host of a scenario file. Its node devices never change, as the test driver's.
#[derive(Debug)]
pub struct FileHost {
    scan: HostScan,
    domains: Mutex<Vec<FileDomain>>,
    events: broadcast::Sender<HostEvent>,
}

/// A domain with both of its XMLs, as libvirt keeps them.
#[derive(Debug, Clone)]
pub(super) struct FileDomain {
    pub(super) uuid: InstanceUuid,
    pub(super) name: String,
    pub(super) live: Option<String>,
    pub(super) defined: Option<String>,
}

impl FileDomain {
    fn shown(&self) -> Domain {
        Domain {
            uuid: self.uuid,
            name: self.name.clone(),
            running: self.live.is_some(),
            persistent: self.defined.is_some(),
            xml: self.live.as_ref().or(self.defined.as_ref()).cloned().unwrap_or_default(),
        }
    }
}

impl FileHost {
    /// Reads a scenario file.
    ///
    /// # Errors
    /// [`HostError::Unreadable`] if a file cannot be read or has no `<node>`, or if one of its devices or domains cannot be
    /// understood: the test driver refuses such a file too.
    pub fn load(path: &Path) -> Result<Arc<Self>, HostError> {
        let Scenario { scan, domains } = scenario::load(path)?;
        Ok(Arc::new(Self { scan, domains: Mutex::new(domains), events: broadcast::Sender::new(1) }))
    }

    fn domains(&self) -> MutexGuard<'_, Vec<FileDomain>> {
        self.domains.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes one domain; one that then neither runs nor is defined goes.
    fn change(&self, uuid: InstanceUuid, change: impl FnOnce(&mut FileDomain)) {
        let mut domains = self.domains();
        if let Some(domain) = domains.iter_mut().find(|d| d.uuid == uuid) {
            change(domain);
        }
        domains.retain(|d| d.live.is_some() || d.defined.is_some());
    }
}

#[async_trait]
impl NodeDevices for FileHost {
    async fn scan(&self) -> Result<HostScan, HostError> {
        Ok(self.scan.clone())
    }

    async fn scan_card(&self, card: &ParentAddr) -> Result<Vec<Parent>, HostError> {
        Ok(self.scan.parents.iter().filter(|p| p.card() == *card).cloned().collect())
    }

    async fn find(&self, uuid: MdevUuid) -> Result<Vec<Mdev>, HostError> {
        Ok(self.scan.mdevs_with(uuid).cloned().collect())
    }

    async fn create(&self, _new: &NewMdev) -> Result<(), HostError> {
        Err(HostError::NotSupported("making a mediated device from a scenario file".to_owned()))
    }

    async fn remove(&self, _uuid: MdevUuid, _parent: &ParentAddr) -> Result<(), HostError> {
        Err(HostError::NotSupported("removing a mediated device of a scenario file".to_owned()))
    }

    async fn scan_kernel(&self) -> Result<HostScan, HostError> {
        Err(HostError::NotSupported("a scenario file has no kernel".to_owned()))
    }

    async fn find_in_kernel(&self, _uuid: MdevUuid) -> Result<Option<Mdev>, HostError> {
        Err(HostError::NotSupported("a scenario file has no kernel".to_owned()))
    }

    async fn create_in_kernel(&self, _new: &NewMdev) -> Result<(), HostError> {
        Err(HostError::NotSupported("a scenario file has no kernel".to_owned()))
    }

    fn events(&self) -> broadcast::Receiver<HostEvent> {
        self.events.subscribe()
    }

    fn boot_id(&self) -> Result<Option<String>, HostError> {
        Ok(None)
    }
}

#[async_trait]
impl Hypervisor for FileHost {
    async fn domains(&self) -> Result<Vec<Domain>, HostError> {
        Ok(self.domains().iter().map(FileDomain::shown).collect())
    }

    async fn domain(&self, uuid: InstanceUuid) -> Result<Option<Domain>, HostError> {
        Ok(self.domains().iter().find(|d| d.uuid == uuid).map(FileDomain::shown))
    }

    async fn define(&self, xml: &str) -> Result<(), HostError> {
        let doc = DomainDoc::parse(xml).map_err(|e| HostError::InvalidXml(e.to_string()))?;
        let uuid = doc.uuid.ok_or_else(|| HostError::InvalidXml("the domain has no uuid".to_owned()))?;
        let mut domains = self.domains();
        if let Some(other) = domains.iter().find(|d| (d.uuid == uuid) != (d.name == doc.name)) {
            let text =
                format!("domain '{}' is already defined with uuid {}", other.name.escape_debug(), other.uuid);
            return Err(HostError::Refused(text));
        }
        match domains.iter_mut().find(|d| d.uuid == uuid) {
            Some(domain) => domain.defined = Some(xml.to_owned()),
            None => {
                let defined = Some(xml.to_owned());
                domains.push(FileDomain { uuid, name: doc.name, live: None, defined });
            }
        }
        Ok(())
    }

    async fn undefine(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        self.change(uuid, |domain| domain.defined = None);
        Ok(())
    }

    async fn start(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        if !self.domains().iter().any(|d| d.uuid == uuid) {
            return Err(HostError::NotFound(format!("domain {uuid}")));
        }
        self.change(uuid, |domain| domain.live = domain.live.take().or_else(|| domain.defined.clone()));
        Ok(())
    }

    async fn autostarts(&self, _uuid: InstanceUuid) -> Result<bool, HostError> {
        Ok(false)
    }

    async fn stop(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        self.change(uuid, |domain| domain.live = None);
        Ok(())
    }

    async fn definition(&self, uuid: InstanceUuid) -> Result<Option<String>, HostError> {
        Ok(self.domains().iter().find(|d| d.uuid == uuid).and_then(|d| d.defined.clone()))
    }

    async fn describe(&self, uuid: InstanceUuid, element: &str) -> Result<(), HostError> {
        let described = |xml: Option<String>| xml.map(|xml| with_vgpu_element(&xml, element).unwrap_or(xml));
        self.change(uuid, |domain| {
            domain.live = described(domain.live.take());
            domain.defined = described(domain.defined.take());
        });
        Ok(())
    }

    async fn save(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        Err(HostError::NotSupported(format!("saving domain {uuid} of a scenario file")))
    }

    async fn is_saved(&self, _uuid: InstanceUuid) -> Result<bool, HostError> {
        Ok(false)
    }

    async fn attach(
        &self,
        uuid: InstanceUuid,
        _hostdev: &HostdevXml,
        _into: Config,
    ) -> Result<(), HostError> {
        Err(HostError::NotSupported(format!("attaching a device to domain {uuid} of a scenario file")))
    }

    async fn detach(
        &self,
        uuid: InstanceUuid,
        _hostdev: &HostdevXml,
        _from: Config,
    ) -> Result<(), HostError> {
        Err(HostError::NotSupported(format!("detaching a device from domain {uuid} of a scenario file")))
    }
}
