//! A text as a lock: the digest is looked at last, when everything else is right.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use toml::de::DeTable;

use crate::catalog::MAX_TRAITS;
use crate::catalog::canonical::{Digest, IdentityForm, PciId};
use crate::model::pci_id::pci_id;
use crate::model::{DeviceApi, InvalidName, TraitName, TypeId, TypeIdentity};
use crate::text::{At, ConfigError, ConfigErrors, Problems, Reader, Spot, Value};

use super::{Accepted, Lock, Locked, MAX_HISTORY, MAX_LOCK_BYTES, MAX_REVISION, VERSION, one_line};

const IDENTITY: [&str; 8] =
    ["name", "type_id", "vendor_id", "device_id", "device_api", "framebuffer_mib", "heads", "max_resolution"];

impl Lock {
    /// Reads a `traits.lock`; `origin` is its file name in messages.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its line and key; else that it does not fit the digest it carries.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ConfigErrors> {
        let mut problems = Problems::default();
        let (mut reader, table) = Reader::open(text, origin, MAX_LOCK_BYTES, &mut problems);
        let draft = if is_newer(&mut reader, &table) { Draft::default() } else { top(&mut reader, &table) };
        let lock = Self { revision: draft.revision.unwrap_or_default(), traits: draft.traits };
        if problems.is_empty() {
            let fault = match (draft.version, draft.revision, draft.digest) {
                (Some(_), Some(_), Some(stated)) => misfit(&lock, &stated),
                _ => Some(ConfigError::file(origin, NO_HEAD)),
            };
            fault.into_iter().for_each(|error| problems.push(error));
        }
        problems.or(lock)
    }
}

const NO_HEAD: &str = "version, revision or digest is missing: this is no lock that mdevirtctl trait lock wrote, or its \
                       beginning was lost";

/// A lock while it is read.
#[derive(Default)]
struct Draft {
    version: Option<u64>,
    revision: Option<u64>,
    digest: Option<At<Digest>>,
    traits: BTreeMap<TraitName, Locked>,
}

/// A newer form may have other keys, so nothing else is said about it.
fn is_newer(reader: &mut Reader<'_>, table: &DeTable<'_>) -> bool {
    let written = table.get("version").and_then(|value| Some((value, value.get_ref().as_integer()?)));
    let Some((value, number)) = written else { return false };
    let newer = u64::from_str_radix(number.as_str(), number.radix()).is_ok_and(|version| version > VERSION);
    if newer {
        let spot = reader.spot(&Arc::from(""), "version", &value.span());
        let text = format!(
            "this lock was written by a newer mdevirt, which counts its form {}; this one reads up to {VERSION}: \
             update mdevirt on this host",
            number.as_str().chars().take(20).collect::<String>()
        );
        reader.say(ConfigError::at(&spot, text));
    }
    newer
}

fn top(reader: &mut Reader<'_>, table: &DeTable<'_>) -> Draft {
    let mut draft = Draft::default();
    let known = ["version", "revision", "digest", "trait"];
    reader.keys(&Arc::from(""), table, &known, |reader, spot, value| match spot.key {
        "version" => draft.version = reader.whole(&spot, value, VERSION..=VERSION),
        "revision" => draft.revision = reader.whole(&spot, value, 1..=MAX_REVISION),
        "digest" => {
            draft.digest = reader.read(&spot, value, str::parse).map(|value| At { value, spot });
        }
        _ => draft.traits = traits(reader, &spot, value),
    });
    draft
}

/// A lock whose traits are not those that its digest was made of.
fn misfit(lock: &Lock, stated: &At<Digest>) -> Option<ConfigError> {
    let found = lock.digest();
    let text = format!(
        "the traits below have another digest, {}..: the file was changed by hand or damaged. Take it again from where \
         mdevirtctl trait lock wrote it; to change what a trait means, use mdevirtctl trait accept",
        found.short()
    );
    (found != stated.value).then(|| ConfigError::at(&stated.spot, text))
}

fn traits(reader: &mut Reader<'_>, spot: &Spot, value: &Value<'_>) -> BTreeMap<TraitName, Locked> {
    let mut traits = BTreeMap::new();
    let Some(tables) = reader.table(spot, value) else { return traits };
    if tables.len() > MAX_TRAITS {
        let text = format!("{} traits are more than the {MAX_TRAITS} that are allowed", tables.len());
        reader.say(ConfigError::at(spot, text));
        return traits;
    }
    for (key, value) in tables {
        let shown: String = key.get_ref().chars().take(255).collect();
        let head = reader.spot(&Arc::from(format!("trait.{}", shown.escape_debug())), "", &key.span());
        let name: Result<TraitName, InvalidName> = key.get_ref().parse();
        let locked = reader.table(&head, value).and_then(|table| locked(reader, &head, table));
        match name {
            Ok(name) => traits.extend(locked.map(|locked| (name, locked))),
            Err(err) => reader.say(ConfigError::at(&head, err.to_string())),
        }
    }
    traits
}

fn locked(reader: &mut Reader<'_>, head: &Spot, table: &DeTable<'_>) -> Option<Locked> {
    let mut history = Vec::new();
    let known = [&IDENTITY[..], &["history"]].concat();
    let mut draft = IdentityDraft::default();
    reader.keys(&head.table, table, &known, |reader, spot, value| match spot.key {
        "history" => history = accepted_list(reader, &spot, value),
        _ => draft.take(reader, &spot, value),
    });
    draft.finish(reader, head, table).map(|identity| Locked { identity, history })
}

fn accepted_list(reader: &mut Reader<'_>, spot: &Spot, value: &Value<'_>) -> Vec<Accepted> {
    let tables = reader.tables(spot, value);
    if tables.len() > MAX_HISTORY {
        let text = format!("{} entries are more than the {MAX_HISTORY} that are kept", tables.len());
        reader.say(ConfigError::at(spot, text));
        return Vec::new();
    }
    tables.into_iter().filter_map(|(head, table)| accepted(reader, &head, table)).collect()
}

fn accepted(reader: &mut Reader<'_>, head: &Spot, table: &DeTable<'_>) -> Option<Accepted> {
    let (mut at, mut by, mut reason, mut was, mut now) = (None, None, None, None, None);
    let name: Arc<str> = Arc::from(head.name());
    reader.keys(&name, table, &["at", "by", "reason", "was", "now"], |reader, spot, value| match spot.key {
        "at" => at = reader.read(&spot, value, time),
        "by" => by = reader.read(&spot, value, line),
        "reason" => reason = reader.read(&spot, value, line),
        "was" => was = identity(reader, &spot, value),
        _ => now = identity(reader, &spot, value),
    });
    let missing = ["at", "reason", "was", "now"].into_iter().filter(|key| !table.contains_key(*key));
    let missing: Vec<&str> = missing.collect();
    if !missing.is_empty() {
        reader.say(ConfigError::at(head, format!("{} is missing", missing.join(", "))));
    }
    Some(Accepted { at: at?, by, reason: reason?, was: was?, now: now? })
}

fn identity(reader: &mut Reader<'_>, spot: &Spot, value: &Value<'_>) -> Option<TypeIdentity> {
    let table = reader.table(spot, value)?;
    let name: Arc<str> = Arc::from(spot.name());
    let mut draft = IdentityDraft::default();
    reader.keys(&name, table, &IDENTITY, |reader, spot, value| draft.take(reader, &spot, value));
    draft.finish(reader, spot, table)
}

/// An identity while it is read.
#[derive(Default)]
struct IdentityDraft {
    name: Option<String>,
    type_id: Option<TypeId>,
    vendor_id: Option<PciId>,
    device_id: Option<PciId>,
    device_api: Option<DeviceApi>,
    framebuffer_mib: Option<u32>,
    heads: Option<u32>,
    max_resolution: Option<String>,
}

impl IdentityDraft {
    fn take(&mut self, reader: &mut Reader<'_>, spot: &Spot, value: &Value<'_>) {
        let text = |text: &str| Ok(text.to_owned());
        match spot.key {
            "name" => self.name = reader.read(spot, value, text),
            "type_id" => self.type_id = reader.read(spot, value, str::parse),
            "vendor_id" => self.vendor_id = reader.read(spot, value, pci_id).map(PciId),
            "device_id" => self.device_id = reader.read(spot, value, pci_id).map(PciId),
            "device_api" => self.device_api = reader.read(spot, value, str::parse),
            "framebuffer_mib" => self.framebuffer_mib = reader.number(spot, value, 0),
            "heads" => self.heads = reader.number(spot, value, 0),
            _ => self.max_resolution = reader.read(spot, value, text),
        }
    }

    /// The identity, unless a part of it is missing or was named as wrong.
    fn finish(self, reader: &mut Reader<'_>, head: &Spot, table: &DeTable<'_>) -> Option<TypeIdentity> {
        if !table.contains_key("device_api") {
            reader.say(ConfigError::at(head, "device_api is missing"));
        }
        let one = |key, read: bool| table.contains_key(key) == read;
        if !one("name", self.name.is_some()) || !one("type_id", self.type_id.is_some()) {
            return None;
        }
        let device_api = self.device_api?;
        let form = IdentityForm {
            device_api,
            device_id: self.device_id,
            framebuffer_mib: self.framebuffer_mib,
            heads: self.heads,
            max_resolution: self.max_resolution.map(Cow::Owned),
            name: self.name.map(Cow::Owned),
            type_id: self.type_id,
            vendor_id: self.vendor_id,
        };
        form.identity().map_err(|text| reader.say(ConfigError::at(head, text))).ok()
    }
}

fn line(text: &str) -> Result<String, InvalidName> {
    one_line(text).ok_or_else(|| InvalidName::new("line", text, "expected one line of at most 1000 bytes"))
}

/// Checks the form that [`utc`](crate::text::utc) writes, of years with four digits.
fn time(text: &str) -> Result<String, InvalidName> {
    let pattern = "0000-00-00 00:00:00Z";
    let fits = |(seen, wanted): (u8, u8)| if wanted == b'0' { seen.is_ascii_digit() } else { seen == wanted };
    if text.len() == pattern.len() && text.bytes().zip(pattern.bytes()).all(fits) {
        return Ok(text.to_owned());
    }
    Err(InvalidName::new("time", text, "expected a form like 2026-11-30 21:17:33Z"))
}
