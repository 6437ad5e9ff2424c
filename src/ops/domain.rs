//! The domain of an instance, told from one of somebody else under its UUID.

use super::Host;
use crate::host::{Domain, HostError};
use crate::model::{InstanceUuid, MdevUuid};
use crate::xml::domain::DomainDoc;

/// What libvirt has under an instance's UUID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Absent,
    /// A domain that names a device of the instance.
    Ours(Domain),
    /// A domain that names none: somebody else's, and left alone.
    Other(Domain),
}

impl Host {
    /// Looks for the domain of an instance with these devices.
    ///
    /// # Errors
    /// Those of the host; `Unreadable` for a domain whose XML is not understood.
    pub async fn find_domain(
        &self,
        uuid: InstanceUuid,
        mut devices: impl Iterator<Item = MdevUuid> + Send,
    ) -> Result<Found, HostError> {
        let Some(domain) = self.hypervisor.domain(uuid).await? else { return Ok(Found::Absent) };
        let doc = DomainDoc::parse(&domain.xml)
            .map_err(|e| HostError::Unreadable { what: format!("domain {uuid}"), why: e.to_string() })?;
        let ours = devices.any(|device| doc.mdev(device).is_some());
        Ok(if ours { Found::Ours(domain) } else { Found::Other(domain) })
    }
}
