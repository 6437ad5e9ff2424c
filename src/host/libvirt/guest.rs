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
use crate::xml::domain::DomainDoc;

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

pub(super) fn attach(domain: &VirtDomain, hostdev: &HostdevXml, into: Config) -> Result<(), Error> {
    match has(domain, hostdev, into)? {
        Some(false) => domain.attach_device_flags(&hostdev.xml, flag(into)),
        Some(true) | None => Ok(()),
    }
}

/// Whether the configuration names the device; `None` if the domain has no such configuration. One that is not understood
/// names nothing that could be taken out by UUID.
fn has(domain: &VirtDomain, hostdev: &HostdevXml, of: Config) -> Result<Option<bool>, Error> {
    let xml = match of {
        Config::Live if !domain.is_active()? => return Ok(None),
        Config::Definition if !domain.is_persistent()? => return Ok(None),
        Config::Live => domain.xml_desc(0)?,
        Config::Definition => domain.xml_desc(sys::VIR_DOMAIN_XML_INACTIVE)?,
    };
    Ok(Some(DomainDoc::parse(&xml).is_ok_and(|doc| doc.mdev(hostdev.uuid).is_some())))
}

fn flag(config: Config) -> u32 {
    match config {
        Config::Live => sys::VIR_DOMAIN_AFFECT_LIVE,
        Config::Definition => sys::VIR_DOMAIN_AFFECT_CONFIG,
    }
}

impl LibvirtHost {
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
        if !self.ask_to_let_go(uuid, hostdev, from).await? {
            return Ok(());
        }
        while self.names(uuid, hostdev, from).await? {
            let moved = timeout_at(deadline, let_go.changed()).await;
            if moved.is_err() && self.names(uuid, hostdev, from).await? {
                return Err(HostError::InUse(format!("mdev {} of {}", hostdev.uuid, subject(uuid))));
            }
        }
        Ok(())
    }

    /// Whether there was something to take out.
    async fn ask_to_let_go(
        &self,
        uuid: InstanceUuid,
        hostdev: &HostdevXml,
        from: Config,
    ) -> Result<bool, HostError> {
        let hostdev = hostdev.clone();
        let ask = move |session: &Session| {
            let Some(domain) = lookup(session, uuid)? else { return Ok(false) };
            if has(&domain, &hostdev, from)? != Some(true) {
                return Ok(false);
            }
            domain.detach_device_flags(&hostdev.xml, flag(from)).map(|()| true)
        };
        self.link.call(Doing::change("detach a device from", subject(uuid)), ask).await
    }

    async fn names(&self, uuid: InstanceUuid, hostdev: &HostdevXml, of: Config) -> Result<bool, HostError> {
        let hostdev = hostdev.clone();
        let look = move |session: &Session| match lookup(session, uuid)? {
            Some(domain) => Ok(has(&domain, &hostdev, of)? == Some(true)),
            None => Ok(false),
        };
        self.link.call(Doing::read(subject(uuid)), look).await
    }
}
