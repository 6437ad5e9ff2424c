//! What a running guest of the simulated host does with its memory and its devices.
//!
//! As with a device that has no migration support, a guest is not saved while it holds one. The test driver can take no
//! mediated device into a running domain, so what a domain runs with after such a change is kept here alone.

use super::SimHost;
use super::domains::{check_free, mdevs_in};
use super::state::SimDomain;
use crate::host::{Config, Domain, HostError, HostdevXml};
use crate::model::InstanceUuid;
use crate::xml::XmlError;
use crate::xml::domain::{without_hostdevs, write_hostdevs};

impl SimHost {
    /// The domain with the devices that it has, where these changed since it was started or defined.
    pub(super) fn as_it_is(&self, domain: Domain) -> Domain {
        let state = self.state();
        let known = state.table().domain(domain.uuid);
        let ours =
            known.and_then(|known| if domain.running { known.live.as_ref() } else { known.defined.as_ref() });
        let devices = |xml: &str| mdevs_in(xml).unwrap_or_default();
        match ours.filter(|xml| devices(xml) != devices(&domain.xml)) {
            Some(xml) => Domain { xml: xml.clone(), ..domain },
            None => domain,
        }
    }

    pub(super) async fn save_memory(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        let _turn = self.domain_turn.lock().await;
        let Some(live) = self.known(uuid)?.live else { return Ok(()) };
        if let Some(device) = mdevs_in(&live)?.first() {
            let why = format!("saving domain {uuid}: mdev {device} has no migration support");
            return Err(HostError::NotSupported(why));
        }
        self.base_domains.stop(uuid).await?;
        self.record(uuid, |domain| (domain.live, domain.saved) = (None, Some(live)))
    }

    pub(super) async fn plug(
        &self,
        uuid: InstanceUuid,
        hostdev: &HostdevXml,
        into: Config,
    ) -> Result<(), HostError> {
        let _turn = self.domain_turn.lock().await;
        let mut domain = self.known(uuid)?;
        let Some(xml) = side(&mut domain, into) else { return Ok(()) };
        if names(xml, hostdev)? {
            return Ok(());
        }
        *xml = write_hostdevs(xml, None, std::slice::from_ref(&hostdev.xml)).map_err(invalid)?;
        if into == Config::Live {
            check_free(self.state().table(), hostdev.uuid)?;
            domain.holds.insert(hostdev.uuid);
        }
        self.put(domain)
    }

    pub(super) async fn unplug(
        &self,
        uuid: InstanceUuid,
        hostdev: &HostdevXml,
        from: Config,
    ) -> Result<(), HostError> {
        let _turn = self.domain_turn.lock().await;
        let known = self.state().table().domain(uuid).cloned();
        let Some(mut domain) = known else { return Ok(()) };
        let Some(xml) = side(&mut domain, from) else { return Ok(()) };
        if !names(xml, hostdev)? {
            return Ok(());
        }
        *xml = without_hostdevs(xml, &[hostdev.uuid]).map_err(invalid)?;
        if from == Config::Live {
            domain.holds.remove(&hostdev.uuid);
        }
        self.put(domain)
    }

    fn known(&self, uuid: InstanceUuid) -> Result<SimDomain, HostError> {
        let known = self.state().table().domain(uuid).cloned();
        known.ok_or_else(|| HostError::NotFound(format!("domain {uuid}")))
    }
}

fn side(domain: &mut SimDomain, config: Config) -> Option<&mut String> {
    match config {
        Config::Live => domain.live.as_mut(),
        Config::Definition => domain.defined.as_mut(),
    }
}

fn names(xml: &str, hostdev: &HostdevXml) -> Result<bool, HostError> {
    Ok(mdevs_in(xml)?.contains(&hostdev.uuid))
}

fn invalid(err: XmlError) -> HostError {
    HostError::InvalidXml(err.to_string())
}
