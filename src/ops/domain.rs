//! The domain of an instance, told from one of somebody else under its UUID.

use super::{Host, Params};
use crate::host::{Domain, HostError};
use crate::model::{InstanceUuid, MdevUuid};
use crate::xml::XmlError;
use crate::xml::domain::DomainDoc;

/// What libvirt has under an instance's UUID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Absent,
    /// The instance's own.
    Ours(Domain),
    /// A domain that is not the instance's: somebody else's, and left alone.
    Other(Domain),
}

/// How an instance's domain is known.
#[derive(Debug, Clone)]
pub struct Marks {
    /// Its UUID.
    pub uuid: InstanceUuid,
    /// Devices, at least one of which it names, in what it runs with or in its definition.
    pub devices: Vec<MdevUuid>,
    /// Its name, which tells it if it may have no device at present.
    pub bare: Option<String>,
}

impl Params {
    /// How the domain of this operation is known: by any device of the instance, by its name where it may have none.
    pub(super) fn marks(&self) -> Marks {
        let devices = self.devices.iter().chain(&self.others).map(|d| d.claim.uuid).collect();
        Marks { uuid: self.instance, devices, bare: self.bare.then(|| self.name.clone()) }
    }
}

impl Host {
    /// Looks for the domain of an instance.
    ///
    /// # Errors
    /// Those of the host; `Unreadable` for a domain whose XML is not understood.
    pub async fn find_domain(&self, marks: &Marks) -> Result<Found, HostError> {
        let Some(domain) = self.hypervisor.domain(marks.uuid).await? else { return Ok(Found::Absent) };
        let unreadable = |e: XmlError| HostError::Unreadable {
            what: format!("domain {}", marks.uuid),
            why: e.to_string(),
        };
        let names = |xml: &str| {
            let doc = DomainDoc::parse(xml).map_err(unreadable)?;
            let bare = marks.bare.as_ref() == Some(&doc.name);
            Ok(bare || marks.devices.iter().any(|device| doc.mdev(*device).is_some()))
        };
        if names(&domain.xml)? {
            return Ok(Found::Ours(domain));
        }
        // A guest that was saved without its devices runs without them until they are back.
        let definition = if domain.running && domain.persistent {
            self.hypervisor.definition(marks.uuid).await?
        } else {
            None
        };
        let ours = definition.as_deref().is_some_and(|xml| names(xml).unwrap_or(false));
        Ok(if ours { Found::Ours(domain) } else { Found::Other(domain) })
    }
}
