//! nova.conf in, our TOML out, with a note for everything that does not mean the same on both sides.
//!
//! Carried over: the enabled types with their groups, and `[libvirt] connection_uri`. Everything else is nova's own.
//!
//! # Source
//! nova `conf/devices.py`, releases 17 to 34: option and group names, old and new.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use crate::model::InvalidName;
use crate::text::{At, ConfigError, ConfigErrors, Problems, Spot, type_key};

use super::check::{Checked, check};
use super::layer::{Layer, TypeTable};
use super::nova_ini::{self, Ini};
use super::nova_notes::Remarks;
use super::word::libvirt_uri;
use super::{MAX_FILE_BYTES, Unlisted, nova_notes, nova_traits, show};

/// A nova.conf in our words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The configuration file to write.
    pub toml: String,
    /// A draft of traits.toml: a trait for each enabled type, as a comment where nova.conf has only an id of it.
    pub traits: String,
    /// What nova did otherwise than the file seems to say, one sentence each.
    pub traps: Vec<String>,
    /// What was renamed and what was left behind, one sentence each.
    pub notes: Vec<String>,
}

/// Reads a nova.conf; `origin` is its file name in messages.
///
/// # Errors
/// Everything that is wrong with it, in nova's names and at its lines.
pub fn import(text: &str, origin: &str) -> Result<Imported, ConfigErrors> {
    let mut problems = Problems::default();
    let ini = if text.len() > MAX_FILE_BYTES {
        problems.push(ConfigError::too_large(origin, MAX_FILE_BYTES));
        Ini::default()
    } else {
        nova_ini::read(text, origin, &mut problems)
    };
    let layer = Reader { ini: &ini, file: Arc::from(origin), problems: &mut problems }.layer();
    let with_uri = layer.libvirt_uri.is_some();
    let checked = check(layer, origin, &mut problems);
    let Remarks { mut traps, mut notes } = nova_notes::of(&ini);
    if checked.config.enabled.is_empty() {
        notes.push("nova.conf enables no mdev type, so neither does mdevirt".to_owned());
    }
    traps.extend(checked.warnings.iter().map(|warning| warning.text.clone()));
    let keys = checked.config.enabled.iter().map(|rule| rule.key.as_str());
    let traits = nova_traits::draft(keys, origin);
    problems.or(Imported { toml: write(&checked, origin, with_uri), traits, traps, notes })
}

/// Tables of types that are not enabled are written too, so that the warning about them stays.
fn write(checked: &Checked, origin: &str, with_uri: bool) -> String {
    let Checked { config, unused, .. } = checked;
    let mut toml = format!("# Written by mdevirtctl config import-nova, from {}.\n", origin.escape_debug());
    if with_uri {
        toml += &(show::libvirt(&config.libvirt_uri) + "\n");
    }
    toml += &show::devices(config.enabled.iter().map(|rule| rule.key.as_str()), config.unlisted);
    for rule in config.enabled.iter().chain(unused) {
        toml += "\n";
        toml += &show::type_table(rule);
    }
    toml
}

struct Reader<'r> {
    ini: &'r Ini,
    file: Arc<str>,
    problems: &'r mut Problems,
}

impl Reader<'_> {
    fn layer(mut self) -> Layer {
        let places = [("devices", "enabled_mdev_types"), ("devices", "enabled_vgpu_types")];
        let enabled = match self.option("enabled_mdev_types", &places) {
            Some((spot, value)) => self.list(&spot, &value, type_key),
            None => Vec::new(),
        };
        let mut types = BTreeMap::new();
        let ini = self.ini;
        for (key, groups) in self.type_groups(ini, &enabled) {
            types.insert(key, self.type_table(&groups));
        }
        Layer {
            libvirt_uri: self.uri(),
            enabled: Some(enabled),
            unlisted: Some(Unlisted::Default),
            types,
            ..Layer::default()
        }
    }

    fn spot(&self, group: &str, key: &'static str, line: u32) -> Spot {
        let shown: String = group.chars().take(140).collect();
        let table = Arc::from(shown.escape_debug().to_string());
        Spot { file: Arc::clone(&self.file), line, table, key }
    }

    fn say(&mut self, spot: &Spot, text: impl Into<String>) {
        self.problems.push(ConfigError::at(spot, text));
    }

    /// The value of an option in the first of these groups and names that has it.
    fn option(&mut self, key: &'static str, places: &[(&str, &str)]) -> Option<(Spot, String)> {
        let entry = places.iter().find_map(|(group, name)| self.ini.last(group, name))?;
        let spot = self.spot(&entry.group, key, entry.line);
        if entry.value.contains('$') {
            self.say(&spot, "substitution with $ is not followed here; write the value itself");
            return None;
        }
        Some((spot, entry.value.clone()))
    }

    fn list<T>(
        &mut self,
        spot: &Spot,
        value: &str,
        read: impl Fn(&str) -> Result<T, InvalidName>,
    ) -> Vec<At<T>> {
        let mut good = Vec::new();
        for item in value.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            match read(item) {
                Ok(value) => good.push(At { value, spot: spot.clone() }),
                Err(err) => self.say(spot, err.to_string()),
            }
        }
        good
    }

    fn parsed<T: FromStr<Err = InvalidName>>(&mut self, spot: &Spot, value: &str) -> Option<T> {
        value.parse().map_err(|err: InvalidName| self.say(spot, err.to_string())).ok()
    }

    fn uri(&mut self) -> Option<String> {
        let (spot, uri) = self.option("connection_uri", &[("libvirt", "connection_uri")])?;
        if uri.is_empty() {
            return None;
        }
        libvirt_uri(&uri).map_err(|err| self.say(&spot, err.to_string())).ok()
    }

    /// Heads of the groups of each type, new name first. Groups are compared without case, so the key is spelled as
    /// in the list of enabled types.
    fn type_groups<'i>(
        &mut self,
        ini: &'i Ini,
        enabled: &[At<String>],
    ) -> BTreeMap<String, Vec<(&'i str, u32)>> {
        let listed: BTreeMap<String, &String> =
            enabled.iter().rev().map(|at| (at.value.to_ascii_lowercase(), &at.value)).collect();
        let mut groups: BTreeMap<String, Vec<(&str, u32)>> = BTreeMap::new();
        for (group, line) in &ini.groups {
            let Some((prefix, written)) = nova_notes::split(group) else { continue };
            let key = match type_key(written) {
                Ok(key) => key,
                Err(err) => {
                    let spot = self.spot(group, "", *line);
                    self.say(&spot, err.to_string());
                    continue;
                }
            };
            let key = listed.get(&key.to_ascii_lowercase()).map_or(key, |spelled| (*spelled).clone());
            let of_type = groups.entry(key).or_default();
            let at = if prefix == nova_notes::NEW_PREFIX { 0 } else { of_type.len() };
            of_type.insert(at, (group, *line));
        }
        groups
    }

    fn type_table(&mut self, groups: &[(&str, u32)]) -> TypeTable {
        let (name, line) = groups.first().copied().unwrap_or_default();
        let mut table = TypeTable::new(self.spot(name, "", line));
        let places = |key| groups.iter().map(|(group, _)| (*group, key)).collect::<Vec<_>>();
        if let Some((spot, value)) = self.option("device_addresses", &places("device_addresses")) {
            table.addresses = Some(self.list(&spot, &value, str::parse));
        }
        if let Some((spot, value)) = self.option("mdev_class", &places("mdev_class")) {
            table.class = self.parsed(&spot, &value);
        }
        if let Some((spot, value)) = self.option("max_instances", &places("max_instances")) {
            table.max_instances = value.parse().ok().filter(|n| *n >= 1);
            if table.max_instances.is_none() {
                let err = InvalidName::new("number", &value, "expected 1 to 4294967295");
                self.say(&spot, err.to_string());
            }
        }
        table
    }
}

#[cfg(test)]
mod tests;
