//! A running guest: its saved memory, and host devices that come and go while it runs.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use virt::domain::Domain as VirtDomain;
use virt::error::Error;
use virt_sys as sys;

use super::LibvirtHost;
use super::domain::{lookup, subject};
use super::error::{Doing, is_wrong_state};
use super::link::Session;
use crate::host::{Config, HostError, HostdevXml};
use crate::model::InstanceUuid;
use crate::xml::domain::{DomainDoc, METADATA};

/// How long a guest may take to let go of a device. libvirt itself waits five seconds and then leaves it to the guest.
///
/// # Source
/// libvirt `qemu_hotplug.c`: `qemuDomainRemoveDeviceWaitTime`.
const LET_GO: Duration = Duration::from_secs(60);

/// The definition with its secrets; without them a domain that is defined again would lose its passwords.
pub(super) fn definition(domain: &VirtDomain) -> Result<String, Error> {
    domain.xml_desc(sys::VIR_DOMAIN_XML_INACTIVE | sys::VIR_DOMAIN_XML_SECURE)
}

pub(super) fn save(domain: &VirtDomain) -> Result<(), Error> {
    if !domain.is_active()? {
        return Ok(());
    }
    let saved = domain.managed_save(0);
    // It ended by itself in between.
    saved.or_else(|err| if is_wrong_state(&err) && !domain.is_active()? { Ok(()) } else { Err(err) })
}

/// libvirt gives the element the prefix and the namespace.
pub(super) fn describe(domain: &VirtDomain, element: &str) -> Result<(), Error> {
    let live = if domain.is_active()? { sys::VIR_DOMAIN_AFFECT_LIVE } else { 0 };
    let definition = if domain.is_persistent()? { sys::VIR_DOMAIN_AFFECT_CONFIG } else { 0 };
    let kind = i32::try_from(sys::VIR_DOMAIN_METADATA_ELEMENT).unwrap_or_default();
    domain.set_metadata(kind, Some(element), Some("m"), Some(METADATA), live | definition)
}

/// The configuration as text; `None` if the domain has no such configuration.
fn configuration(domain: &VirtDomain, of: Config) -> Result<Option<String>, Error> {
    match of {
        Config::Live if !domain.is_active()? => Ok(None),
        Config::Definition if !domain.is_persistent()? => Ok(None),
        Config::Live => domain.xml_desc(0).map(Some),
        Config::Definition => domain.xml_desc(sys::VIR_DOMAIN_XML_INACTIVE).map(Some),
    }
}

fn flag(config: Config) -> u32 {
    match config {
        Config::Live => sys::VIR_DOMAIN_AFFECT_LIVE,
        Config::Definition => sys::VIR_DOMAIN_AFFECT_CONFIG,
    }
}

impl LibvirtHost {
    pub(super) async fn plug(
        &self,
        uuid: InstanceUuid,
        hostdev: &HostdevXml,
        into: Config,
    ) -> Result<(), HostError> {
        if self.names(uuid, hostdev, into).await? != Some(false) {
            return Ok(());
        }
        let hostdev = hostdev.clone();
        let attach = move |session: &Session| {
            let domain = session.conn.lookup_domain_by_uuid(uuid.0)?;
            domain.attach_device_flags(&hostdev.xml, flag(into))
        };
        self.link.call(Doing::define("attach a device to", subject(uuid)), attach).await
    }

    /// Asks the guest to let go, and waits for libvirt's event that it has.
    pub(super) async fn detach_and_wait(
        &self,
        uuid: InstanceUuid,
        hostdev: &HostdevXml,
        from: Config,
    ) -> Result<(), HostError> {
        let deadline = Instant::now() + LET_GO;
        // Listening begins before the call, so that the event cannot fall in between.
        let mut let_go = self.link.wakes().devices_let_go();
        if self.names(uuid, hostdev, from).await? != Some(true) {
            return Ok(());
        }
        self.ask_to_let_go(uuid, hostdev, from).await?;
        while self.names(uuid, hostdev, from).await? == Some(true) {
            let moved = timeout_at(deadline, let_go.changed()).await;
            if moved.is_err() && self.names(uuid, hostdev, from).await? == Some(true) {
                return Err(HostError::InUse(format!("mdev {} of {}", hostdev.uuid, subject(uuid))));
            }
        }
        Ok(())
    }

    async fn ask_to_let_go(
        &self,
        uuid: InstanceUuid,
        hostdev: &HostdevXml,
        from: Config,
    ) -> Result<(), HostError> {
        let hostdev = hostdev.clone();
        let ask = move |session: &Session| match lookup(session, uuid)? {
            Some(domain) => domain.detach_device_flags(&hostdev.xml, flag(from)),
            None => Ok(()),
        };
        self.link.call(Doing::change("detach a device from", subject(uuid)), ask).await
    }

    /// Whether the configuration names the device; `None` if there is no such configuration.
    async fn names(
        &self,
        uuid: InstanceUuid,
        hostdev: &HostdevXml,
        of: Config,
    ) -> Result<Option<bool>, HostError> {
        let look = move |session: &Session| match lookup(session, uuid)? {
            Some(domain) => configuration(&domain, of),
            None => Ok(None),
        };
        let Some(xml) = self.link.call(Doing::read(subject(uuid)), look).await? else { return Ok(None) };
        match DomainDoc::parse(&xml) {
            Ok(doc) => Ok(Some(doc.mdev(hostdev.uuid).is_some())),
            Err(err) => Err(HostError::Unreadable { what: subject(uuid), why: err.to_string() }),
        }
    }
}
