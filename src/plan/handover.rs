//! The document that an instance travels with from one host to another; whoever moves the instance carries it.
//!
//! 1. What was changed on the way is refused: `seal` is the SHA-256 of the document without it, as JSON in the canonical way.
//! 2. An unknown key is refused, and so is another `version`: what it says might matter.
//! 3. It has the guest's secrets (a definition has them), so only who may change things gets it.
//! 4. It names no local type id: a device is what stays of its type on any host.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::live::LiveSide;
use crate::catalog::{Digest, LockMark, seal};
use crate::model::{
    Claim, DeviceApi, Fault, FaultKind, InstanceUuid, MdevUuid, ResourceClass, TraitName, TypeIdentity,
};

/// The version of the form that is read and written.
const VERSION: u64 = 1;

/// Greatest size in bytes: a domain's XML of 4 MiB, each of its quotes escaped, and a little more.
pub const MAX_HANDOVER_BYTES: usize = 8 << 20;

/// An instance as its source hands it out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handover {
    /// Of the form.
    version: u64,
    /// Name of the source.
    pub host: String,
    /// The instance.
    pub instance: InstanceUuid,
    /// Its domain's name.
    pub name: String,
    /// The flavor it has, where that is known.
    pub flavor: Option<String>,
    /// The source holds the guest off for whoever has this; else it is only what the instance was at some time.
    pub begun: bool,
    /// The guest ran then.
    pub running: bool,
    /// The lock of traits in force on the source.
    pub lock: Option<LockMark>,
    /// Its devices, in the guest's order.
    pub devices: Vec<Traveller>,
    /// The domain's definition, with the source's devices.
    pub domain_xml: String,
    /// For a migration while the guest runs: what the source says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveSide>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seal: Option<Digest>,
}

/// The one key that every form has.
#[derive(Debug, Deserialize)]
struct Form {
    version: u64,
}

/// One device of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traveller {
    /// Its UUID on the source.
    pub uuid: MdevUuid,
    /// What it is, on any host.
    pub identity: TypeIdentity,
    /// What it is to the guest.
    pub device_api: DeviceApi,
    /// The class it was asked for as.
    pub resource_class: ResourceClass,
    /// Which group of the request it serves.
    pub group: String,
    /// Traits that were required of it.
    pub traits: BTreeSet<TraitName>,
}

/// What a source knows of an instance that leaves it.
#[derive(Debug)]
pub struct Leaving<'a> {
    /// Name of the source.
    pub host: &'a str,
    /// The instance.
    pub instance: &'a crate::model::Instance,
    /// Its claims.
    pub claims: &'a [Claim],
    /// The source holds the guest off.
    pub begun: bool,
    /// The guest runs, or ran when the move began.
    pub running: bool,
    /// The lock in force.
    pub lock: Option<LockMark>,
    /// The domain's definition.
    pub domain_xml: String,
}

impl Handover {
    /// The document of an instance.
    ///
    /// # Errors
    /// `Incompatible` for a device of which no identity is known: it was booked by a program that did not keep it.
    pub fn of(leaving: Leaving<'_>) -> Result<Self, Fault> {
        let devices = leaving.claims.iter().map(Traveller::of).collect::<Result<Vec<_>, _>>()?;
        let mut document = Self {
            version: VERSION,
            host: leaving.host.to_owned(),
            instance: leaving.instance.uuid,
            name: leaving.instance.name.clone(),
            flavor: leaving.instance.flavor.clone(),
            begun: leaving.begun,
            running: leaving.running,
            lock: leaving.lock,
            devices,
            domain_xml: leaving.domain_xml,
            live: None,
            seal: None,
        };
        document.seal = Some(seal(&document));
        Ok(document)
    }

    /// The same for a migration while the guest runs.
    #[must_use]
    pub fn with_live(mut self, side: LiveSide) -> Self {
        (self.live, self.seal) = (Some(side), None);
        self.seal = Some(seal(&self));
        self
    }

    /// Reads a document.
    ///
    /// # Errors
    /// `InvalidRequest`: it is none, of another form, too large, or was changed after it was made.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let refuse =
            |why: String| Fault::new(FaultKind::InvalidRequest, format!("the migration document: {why}"));
        if text.len() > MAX_HANDOVER_BYTES {
            return Err(refuse(format!("more than {MAX_HANDOVER_BYTES} bytes are not taken")));
        }
        let not_one = |err: serde_json::Error| {
            let why: String = err.to_string().chars().take(300).collect();
            refuse(format!("not one of mdevirtctl migrate: {}", why.escape_debug()))
        };
        // Another form may well have other keys.
        let Form { version } = serde_json::from_str(text).map_err(not_one)?;
        if version != VERSION {
            return Err(refuse(format!(
                "it has form {version}, this host reads {VERSION}: update the older host"
            )));
        }
        let mut document: Self = serde_json::from_str(text).map_err(not_one)?;
        let stated = document.seal.take();
        let made = seal(&document);
        if stated != Some(made) {
            return Err(refuse("it was changed after it was made; begin the migration again".to_owned()));
        }
        document.seal = stated;
        Ok(document)
    }
}

impl Traveller {
    pub(super) fn of(claim: &Claim) -> Result<Self, Fault> {
        let unknown = || {
            let text = format!(
                "what type {} is on another host is not known ({}): it was booked by an older mdevirt; stop and destroy it, \
                 then spawn it on the target",
                claim.uuid, claim.type_name
            );
            Fault::new(FaultKind::Incompatible, text)
        };
        Ok(Self {
            uuid: claim.uuid,
            identity: claim.identity.clone().ok_or_else(unknown)?,
            device_api: claim.device_api,
            resource_class: claim.resource_class.clone(),
            group: claim.group.clone(),
            traits: claim.traits.clone(),
        })
    }
}

#[cfg(test)]
mod tests;
