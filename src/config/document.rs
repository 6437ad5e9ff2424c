//! One TOML file in, a [`Layer`] out: which keys there are, and what form their values have.

use std::sync::Arc;

use toml::de::DeTable;

use crate::text::{ConfigError, MAX_FILE_BYTES, Problems, Reader, Spot, Value, type_key};

use super::layer::{Layer, TypeTable};
use super::word::{absolute_path, libvirt_uri, trait_name};
use super::{Automatic, OnRelease, OnStop, Packing, Unlisted};

/// Reads one file; what is wrong goes to `problems`.
pub(super) fn read(text: &str, origin: &str, problems: &mut Problems) -> Layer {
    let (mut reader, table) = Reader::open(text, origin, MAX_FILE_BYTES, problems);
    let mut layer = Layer::default();
    top(&mut reader, &table, &mut layer);
    layer
}

fn top(reader: &mut Reader<'_>, table: &DeTable<'_>, layer: &mut Layer) {
    let known = ["libvirt", "devices", "mdev", "traits", "policy", "hook"];
    reader.keys(&Arc::from(""), table, &known, |reader, spot, value| match spot.key {
        "mdev" => types(reader, &spot, value, layer),
        name => section(reader, name, &spot, value, layer),
    });
}

fn section(reader: &mut Reader<'_>, name: &'static str, spot: &Spot, value: &Value<'_>, layer: &mut Layer) {
    let Some(table) = reader.table(spot, value) else { return };
    let known: &[&'static str] = match name {
        "libvirt" => &["uri"],
        "devices" => &["enabled_mdev_types", "unlisted"],
        "traits" => &["file", "lock", "automatic"],
        "hook" => &["start_budget_ms"],
        _ => &["packing", "on_release", "on_stop", "restore_deadline_sec", "live_deadline_sec"],
    };
    reader.keys(&Arc::from(name), table, known, |reader, spot, value| match spot.key {
        "uri" => layer.libvirt_uri = reader.read(&spot, value, libvirt_uri),
        "enabled_mdev_types" => layer.enabled = reader.list(&spot, value, type_key),
        "unlisted" => layer.unlisted = reader.word(&spot, value, Unlisted::ALL, Unlisted::as_str),
        "file" => layer.traits_file = reader.read(&spot, value, absolute_path),
        "lock" => layer.traits_lock = reader.read(&spot, value, absolute_path),
        "automatic" => {
            let list = reader.list(&spot, value, str::parse::<Automatic>);
            layer.automatic = list.map(|all| all.into_iter().map(|at| at.value).collect());
        }
        "packing" => layer.packing = reader.word(&spot, value, Packing::ALL, Packing::as_str),
        "on_release" => layer.on_release = reader.word(&spot, value, OnRelease::ALL, OnRelease::as_str),
        "on_stop" => layer.on_stop = reader.word(&spot, value, OnStop::ALL, OnStop::as_str),
        "start_budget_ms" => {
            let whole = reader.whole(&spot, value, 100..=60_000);
            layer.hook_start_budget_ms = whole.and_then(|ms| u32::try_from(ms).ok());
        }
        "live_deadline_sec" => layer.live_deadline_sec = reader.number(&spot, value, 1),
        _ => layer.restore_deadline_sec = reader.number(&spot, value, 1),
    });
}

fn types(reader: &mut Reader<'_>, spot: &Spot, value: &Value<'_>, layer: &mut Layer) {
    let Some(tables) = reader.table(spot, value) else { return };
    for (key, value) in tables {
        let shown: String = key.get_ref().chars().take(140).collect();
        let name = Arc::from(format!("mdev.{shown:?}"));
        let spot = reader.spot(&name, "", &key.span());
        match type_key(key.get_ref()) {
            Err(err) => reader.say(ConfigError::at(&spot, err.to_string())),
            Ok(id) if layer.types.contains_key(&id) => {
                reader.say(ConfigError::at(&spot, "there are two tables for this type"));
            }
            Ok(id) => {
                if let Some(table) = reader.table(&spot, value) {
                    let read = type_table(reader, spot, table);
                    layer.types.insert(id, read);
                }
            }
        }
    }
}

fn type_table(reader: &mut Reader<'_>, head: Spot, table: &DeTable<'_>) -> TypeTable {
    let known = ["device_addresses", "mdev_class", "max_instances", "reserved", "traits", "several_per_vm"];
    let name = Arc::clone(&head.table);
    let mut read = TypeTable::new(head);
    reader.keys(&name, table, &known, |reader, spot, value| match spot.key {
        "device_addresses" => read.addresses = reader.list(&spot, value, str::parse),
        "mdev_class" => read.class = reader.read(&spot, value, str::parse),
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
