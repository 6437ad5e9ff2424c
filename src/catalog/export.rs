//! What one host makes of its traits, as a document that other hosts can check: the file that `mdevirtctl trait export`
//! prints and `trait verify` reads.
//!
//! ```json
//! {"digest": D, "host": "gpu-01", "lock": {"digest": D, "revision": 3} or null, "seal": D,
//!  "traits": {"CUSTOM_GOLD": {"identity": {..} or null, "state": "ok"}}, "version": 1}
//! ```
//! 1. An identity has the eight keys of the [canonical form](super::canonical()); a local type id is in it only where the driver
//!    gives no name.
//! 2. `digest` is the [`digest`] of the traits that have an identity, so it equals that of a lock with the same meaning.
//! 3. `seal` is the SHA-256 of the whole document without `seal`, as JSON in the canonical way (sorted keys, no blanks):
//!    what was changed on the way is refused.
//! 4. An unknown key is refused: what it says might matter. Another form has another version.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

use super::canonical::{Digest, IdentityForm, digest, seal};
use super::{Lock, MAX_TRAITS, TraitState};
use crate::model::{Fault, FaultKind, TraitName, TypeIdentity};

/// The version of the form that is read and written.
const VERSION: u64 = 1;

/// Greatest size of an export in bytes.
pub const MAX_EXPORT_BYTES: usize = 16 * 1024 * 1024;

/// Greatest length of a host name in bytes.
const MAX_HOST: usize = 255;

/// What one host makes of its traits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Its name.
    pub host: String,
    /// The lock in force there, if there is one.
    pub lock: Option<LockMark>,
    /// Every trait of its `traits.toml`.
    pub traits: BTreeMap<TraitName, Exported>,
}

/// Which lock it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockMark {
    /// Of what it says.
    pub digest: Digest,
    /// Its revision.
    pub revision: u64,
}

/// How a trait stands on that host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// How.
    pub state: TraitState,
    /// What it means there; `None` if that is not known.
    pub identity: Option<TypeIdentity>,
}

impl From<&Lock> for LockMark {
    fn from(lock: &Lock) -> Self {
        Self { digest: lock.digest(), revision: lock.revision }
    }
}

impl Export {
    /// What this host makes of its traits.
    pub fn of(
        host: &str,
        lock: Option<&Lock>,
        resolved: &BTreeMap<TraitName, (TraitState, Option<TypeIdentity>)>,
    ) -> Self {
        let exported = |(name, (state, identity)): (&TraitName, &(TraitState, Option<TypeIdentity>))| {
            (name.clone(), Exported { state: *state, identity: identity.clone() })
        };
        Self {
            host: host.to_owned(),
            lock: lock.map(LockMark::from),
            traits: resolved.iter().map(exported).collect(),
        }
    }

    /// Reads a document; `origin` is its file name in messages.
    ///
    /// # Errors
    /// `InvalidRequest`, with the file: it is no export, is of a newer form, too large, or was changed after it was made.
    pub fn parse(bytes: &[u8], origin: &str) -> Result<Self, Fault> {
        read(bytes).map_err(|why| {
            let why = why.escape_debug();
            Fault::new(FaultKind::InvalidRequest, format!("{}: {why}", origin.escape_debug()))
        })
    }

    /// What its traits mean, as far as that is known there.
    pub fn identities(&self) -> BTreeMap<TraitName, TypeIdentity> {
        self.known().map(|(name, identity)| (name.clone(), identity.clone())).collect()
    }

    /// Of what its traits mean.
    pub fn digest(&self) -> Digest {
        digest(self.known())
    }

    fn known(&self) -> impl Iterator<Item = (&TraitName, &TypeIdentity)> {
        self.traits.iter().filter_map(|(name, exported)| Some((name, exported.identity.as_ref()?)))
    }

    fn document(&self) -> Document<'_> {
        let mut document = Document {
            digest: self.digest(),
            host: self.host.clone(),
            lock: self.lock.clone(),
            seal: None,
            traits: self.traits.iter().map(|(name, exported)| (name.clone(), Entry::of(exported))).collect(),
            version: VERSION,
        };
        document.seal = Some(seal(&document));
        document
    }
}

/// As [`Export::parse`] reads it.
impl Serialize for Export {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.document().serialize(serializer)
    }
}

/// The document. Its keys are in the canonical order.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<'a> {
    digest: Digest,
    host: String,
    lock: Option<LockMark>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seal: Option<Digest>,
    #[serde(borrow)]
    traits: BTreeMap<TraitName, Entry<'a>>,
    version: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry<'a> {
    #[serde(borrow)]
    identity: Option<IdentityForm<'a>>,
    state: TraitState,
}

impl<'a> Entry<'a> {
    fn of(exported: &'a Exported) -> Self {
        Self { identity: exported.identity.as_ref().map(IdentityForm::of), state: exported.state }
    }
}

/// All that is looked at before the rest is.
#[derive(Deserialize)]
struct Version {
    version: u64,
}

fn read(bytes: &[u8]) -> Result<Export, String> {
    if bytes.len() > MAX_EXPORT_BYTES {
        return Err(format!("more than {MAX_EXPORT_BYTES} bytes are not taken"));
    }
    let document: Document<'_> = serde_json::from_slice(bytes).map_err(|err| not_one(bytes, &err))?;
    if document.version != VERSION {
        return Err(other_version(document.version));
    }
    if document.traits.len() > MAX_TRAITS {
        return Err(format!(
            "{} traits are more than the {MAX_TRAITS} that are taken",
            document.traits.len()
        ));
    }
    let good_host =
        (1..=MAX_HOST).contains(&document.host.len()) && !document.host.chars().any(char::is_control);
    if !good_host {
        return Err(format!("host is no name of 1 to {MAX_HOST} bytes"));
    }
    let (stated, seal) = (document.digest, document.seal);
    let export = Export { host: document.host, lock: document.lock, traits: exported(document.traits)? };
    let made = export.document();
    if made.digest != stated || made.seal != seal {
        return Err(
            "it was changed after it was made: its digest or seal does not fit what it says; take it again \
                    with mdevirtctl trait export"
                .to_owned(),
        );
    }
    Ok(export)
}

fn exported(traits: BTreeMap<TraitName, Entry<'_>>) -> Result<BTreeMap<TraitName, Exported>, String> {
    let one = |(name, entry): (TraitName, Entry<'_>)| {
        let identity = entry.identity.map(IdentityForm::identity).transpose();
        let identity = identity.map_err(|why| format!("{name}: {why}"))?;
        Ok((name, Exported { state: entry.state, identity }))
    };
    traits.into_iter().map(one).collect()
}

fn not_one(bytes: &[u8], err: &serde_json::Error) -> String {
    match serde_json::from_slice::<Version>(bytes) {
        Ok(Version { version }) if version != VERSION => other_version(version),
        Ok(_) | Err(_) => {
            let why: String = err.to_string().chars().take(300).collect();
            format!("not an export of mdevirtctl trait export: {why}")
        }
    }
}

fn other_version(version: u64) -> String {
    format!(
        "an export of form {version}, and this mdevirt reads {VERSION}: verify with the newest mdevirt of the fleet"
    )
}

#[cfg(test)]
mod tests;
