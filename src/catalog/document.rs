//! `traits.toml`: one table `[trait.NAME]` for each trait, read into a [`Catalog`] and written again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use toml::de::DeTable;

use crate::model::identity::plain_blanks;
use crate::model::{Framework, InvalidName, TraitName};
use crate::text::{
    ConfigError, ConfigErrors, MAX_FILE_BYTES, Problems, Reader, Spot, Value, quoted, type_key,
};

use super::names::{normalised, trait_name};
use super::{Binding, Catalog, MAX_TRAITS};
use crate::model::pci_id::{pci_id, written};

const KEYS: [&str; 5] = ["type", "vendor_id", "device_id", "framework", "framebuffer_mib"];

impl Catalog {
    /// Reads a `traits.toml`; `origin` is its file name in messages. An empty text binds nothing.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its line and key.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ConfigErrors> {
        let mut problems = Problems::default();
        let mut catalog = Self::default();
        let (mut reader, table) = Reader::open(text, origin, MAX_FILE_BYTES, &mut problems);
        reader.keys(&Arc::from(""), &table, &["trait"], |reader, spot, value| {
            if let Some(tables) = reader.table(&spot, value) {
                catalog.bindings = traits(reader, &spot, tables);
            }
        });
        problems.or(catalog)
    }
}

fn traits(reader: &mut Reader<'_>, spot: &Spot, tables: &DeTable<'_>) -> BTreeMap<TraitName, Binding> {
    if tables.len() > MAX_TRAITS {
        let text = format!("{} traits are more than the {MAX_TRAITS} that are allowed", tables.len());
        reader.say(ConfigError::at(spot, text));
        return BTreeMap::new();
    }
    let mut bindings = BTreeMap::new();
    let mut taken = BTreeMap::new();
    for (key, value) in in_order(tables) {
        let head = reader.spot(&Arc::from(table_name(key.get_ref())), "", &key.span());
        let name = name(reader, &head, key.get_ref(), &mut taken);
        let Some(table) = reader.table(&head, value) else { continue };
        if let (Some(name), Some(binding)) = (name, binding(reader, &head, table)) {
            bindings.insert(name, binding);
        }
    }
    bindings
}

/// Entries in the order of the file, so that of two that clash the later one is named as the wrong one.
fn in_order<'v>(table: &'v DeTable<'_>) -> Vec<(&'v toml::Spanned<toml::de::DeString<'v>>, &'v Value<'v>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// `trait.NAME`, quoted where the name is no bare key of TOML.
fn table_name(key: &str) -> String {
    let bare = key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    let shown: String = key.chars().take(255).collect();
    if bare && !key.is_empty() { format!("trait.{shown}") } else { format!("trait.{shown:?}") }
}

/// The name of a trait, unless another one above it is the same to OpenStack's tools.
fn name(
    reader: &mut Reader<'_>,
    head: &Spot,
    key: &str,
    taken: &mut BTreeMap<String, Spot>,
) -> Option<TraitName> {
    if let Some(first) = taken.get(&normalised(key)) {
        let text = format!(
            "the name clashes with {}: they differ only in case or in characters that stand for \"_\"; rename one of them",
            first.table_place()
        );
        reader.say(ConfigError::at(head, text));
        return None;
    }
    taken.insert(normalised(key), head.clone());
    trait_name(key).map_err(|text| reader.say(ConfigError::at(head, text))).ok()
}

fn binding(reader: &mut Reader<'_>, head: &Spot, table: &DeTable<'_>) -> Option<Binding> {
    let mut type_name = None;
    let mut read = Binding {
        type_key: String::new(),
        vendor_id: None,
        device_id: None,
        framework: None,
        framebuffer_mib: None,
    };
    reader.keys(&head.table, table, &KEYS, |reader, spot, value| match spot.key {
        "type" => type_name = reader.read(&spot, value, one_spelling),
        "vendor_id" => read.vendor_id = reader.read(&spot, value, pci_id),
        "device_id" => read.device_id = reader.read(&spot, value, pci_id),
        "framework" => read.framework = reader.word(&spot, value, Framework::ALL, Framework::as_str),
        _ => read.framebuffer_mib = reader.number(&spot, value, 1),
    });
    if !table.contains_key("type") {
        let text = "type is missing: the vendor's type name, or the type id where the driver gives no names";
        reader.say(ConfigError::at(head, text));
    }
    type_name.map(|type_key| Binding { type_key, ..read })
}

fn one_spelling(text: &str) -> Result<String, InvalidName> {
    type_key(text).map(|key| plain_blanks(&key))
}

/// As a `traits.toml` that is read back as the same catalogue.
impl fmt::Display for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, binding)) in self.bindings.iter().enumerate() {
            let gap = if at == 0 { "" } else { "\n" };
            writeln!(f, "{gap}[trait.{name}]\ntype = {}", quoted(&binding.type_key))?;
            for (key, id) in [("vendor_id", binding.vendor_id), ("device_id", binding.device_id)] {
                if let Some(id) = id {
                    writeln!(f, "{key} = \"{}\"", written(id))?;
                }
            }
            if let Some(framework) = binding.framework {
                writeln!(f, "framework = \"{framework}\"")?;
            }
            if let Some(mib) = binding.framebuffer_mib {
                writeln!(f, "framebuffer_mib = {mib}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
