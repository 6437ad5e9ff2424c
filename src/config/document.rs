//! One TOML file in, a [`Layer`] out: which keys there are, and what form their values have.

use std::sync::Arc;

use toml::de::DeTable;

use super::error::{ConfigError, Problems};
use super::layer::{Layer, Spot, TypeTable};
use super::value::{Reader, Value};
use super::word::{trait_name, type_key, unknown};
use super::{OnRelease, Packing, Unlisted};

/// Reads one file; what is wrong goes to `problems`.
pub(super) fn read(text: &str, origin: &str, problems: &mut Problems) -> Layer {
    let (table, mut syntax) = DeTable::parse_recoverable(text);
    syntax.sort_by_key(|err| err.span().map(|span| span.start));
    let mut reader = Reader::new(text, origin, problems);
    for err in syntax {
        reader.syntax(&err);
    }
    let mut layer = Layer::default();
    reader.top(table.get_ref(), &mut layer);
    layer
}

impl Reader<'_> {
    fn top(&mut self, table: &DeTable<'_>, layer: &mut Layer) {
        let known = ["libvirt", "devices", "mdev", "traits", "policy"];
        self.keys(&Arc::from(""), table, &known, |reader, spot, value| match spot.key {
            "mdev" => reader.types(&spot, value, layer),
            section => reader.section(section, &spot, value, layer),
        });
    }

    /// Calls `take` for every key of a table that is one of `known`.
    fn keys(
        &mut self,
        name: &Arc<str>,
        table: &DeTable<'_>,
        known: &[&'static str],
        mut take: impl FnMut(&mut Self, Spot, &Value<'_>),
    ) {
        for (key, value) in table {
            match known.iter().find(|k| **k == key.get_ref()) {
                Some(word) => {
                    let spot = self.spot(name, word, &key.span());
                    take(self, spot, value);
                }
                None => {
                    let spot = self.spot(name, "", &key.span());
                    self.say(ConfigError::at(&spot, unknown("key", key.get_ref(), known)));
                }
            }
        }
    }

    fn section(&mut self, name: &'static str, spot: &Spot, value: &Value<'_>, layer: &mut Layer) {
        let Some(table) = self.table(spot, value) else { return };
        let known: &[&'static str] = match name {
            "libvirt" => &["uri"],
            "devices" => &["enabled_mdev_types", "unlisted"],
            "traits" => &["file", "lock"],
            _ => &["packing", "on_release"],
        };
        self.keys(&Arc::from(name), table, known, |reader, spot, value| match spot.key {
            "uri" => layer.libvirt_uri = reader.uri(&spot, value),
            "enabled_mdev_types" => layer.enabled = reader.list(&spot, value, type_key),
            "unlisted" => layer.unlisted = reader.word(&spot, value, Unlisted::ALL, Unlisted::as_str),
            "file" => layer.traits_file = reader.path(&spot, value),
            "lock" => layer.traits_lock = reader.path(&spot, value),
            "packing" => layer.packing = reader.word(&spot, value, Packing::ALL, Packing::as_str),
            _ => layer.on_release = reader.word(&spot, value, OnRelease::ALL, OnRelease::as_str),
        });
    }

    fn types(&mut self, spot: &Spot, value: &Value<'_>, layer: &mut Layer) {
        let Some(tables) = self.table(spot, value) else { return };
        for (key, value) in tables {
            let shown: String = key.get_ref().chars().take(140).collect();
            let name = Arc::from(format!("mdev.{shown:?}"));
            let spot = self.spot(&name, "", &key.span());
            match type_key(key.get_ref()) {
                Err(err) => self.say(ConfigError::at(&spot, err.to_string())),
                Ok(id) if layer.types.contains_key(&id) => {
                    self.say(ConfigError::at(&spot, "there are two tables for this type"));
                }
                Ok(id) => {
                    if let Some(table) = self.table(&spot, value) {
                        let read = self.type_table(spot, table);
                        layer.types.insert(id, read);
                    }
                }
            }
        }
    }

    fn type_table(&mut self, head: Spot, table: &DeTable<'_>) -> TypeTable {
        let known =
            ["device_addresses", "mdev_class", "max_instances", "reserved", "traits", "several_per_vm"];
        let name = Arc::clone(&head.table);
        let mut read = TypeTable::new(head);
        self.keys(&name, table, &known, |reader, spot, value| match spot.key {
            "device_addresses" => read.addresses = reader.list(&spot, value, str::parse),
            "mdev_class" => read.class = reader.text(&spot, value).and_then(|t| reader.parsed(&spot, t)),
            "max_instances" => read.max_instances = reader.number(&spot, value, 1),
            "reserved" => read.reserved = reader.number(&spot, value, 0),
            "traits" => {
                let list = reader.list(&spot, value, trait_name);
                read.traits = list.map(|all| all.into_iter().map(|at| at.value).collect());
            }
            _ => read.several_per_vm = reader.flag(&spot, value),
        });
        read
    }
}
