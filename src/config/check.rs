//! What one value cannot show: two types for one address, tables without effect, counts.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Finding, FindingKind, ParentAddr, ResourceClass};
use crate::text::{At, ConfigError, Problems, Spot};

use super::layer::{Layer, TypeTable};
use super::{Config, EnabledType, MAX_ENTRIES, Unlisted};

/// What came out of the layers.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) config: Config,
    /// Tables whose type is not enabled.
    pub(super) unused: Vec<EnabledType>,
    pub(super) warnings: Vec<Finding>,
}

/// Checks merged layers. When `problems` is not empty afterwards, the result must not be used.
pub(super) fn check(layer: Layer, origin: &str, problems: &mut Problems) -> Checked {
    if let Some(text) = too_many(&layer) {
        problems.push(ConfigError::file(origin, text));
    }
    let mut checker = Checker { problems, warnings: Vec::new(), holders: BTreeMap::new() };
    let mut tables = layer.types;
    let enabled = checker.enabled(layer.enabled.unwrap_or_default(), &mut tables);
    let unused = tables.into_iter().map(|(key, table)| checker.unused(key, table)).collect();
    let fallback = Config::default();
    let config = Config {
        libvirt_uri: layer.libvirt_uri.unwrap_or(fallback.libvirt_uri),
        enabled,
        unlisted: layer.unlisted.unwrap_or_default(),
        traits_file: layer.traits_file.unwrap_or(fallback.traits_file),
        traits_lock: layer.traits_lock.unwrap_or(fallback.traits_lock),
        automatic: layer.automatic.unwrap_or(fallback.automatic),
        packing: layer.packing.unwrap_or_default(),
        on_release: layer.on_release.unwrap_or_default(),
        on_stop: layer.on_stop.unwrap_or_default(),
        hook_start_budget_ms: layer.hook_start_budget_ms.unwrap_or(fallback.hook_start_budget_ms),
        restore_deadline_sec: layer.restore_deadline_sec.unwrap_or(fallback.restore_deadline_sec),
        live_deadline_sec: layer.live_deadline_sec.unwrap_or(fallback.live_deadline_sec),
    };
    checker.without_addresses(&config);
    Checked { config, unused, warnings: checker.warnings }
}

fn too_many(layer: &Layer) -> Option<String> {
    let types = layer.types.len() + layer.enabled.as_ref().map_or(0, Vec::len);
    let addresses: usize = layer.types.values().filter_map(|t| t.addresses.as_ref()).map(Vec::len).sum();
    let (count, what) = match (types > MAX_ENTRIES, addresses > MAX_ENTRIES) {
        (true, _) => (types, "types"),
        (false, true) => (addresses, "addresses"),
        (false, false) => return None,
    };
    Some(format!("{count} {what} are more than the {MAX_ENTRIES} that are allowed"))
}

struct Checker<'p> {
    problems: &'p mut Problems,
    warnings: Vec<Finding>,
    /// Which enabled table has an address.
    holders: BTreeMap<ParentAddr, Spot>,
}

impl Checker<'_> {
    fn warn(&mut self, about: &str, text: String) {
        self.warnings.push(Finding::new(FindingKind::ConfigWarning, about, text));
    }

    fn enabled(
        &mut self,
        keys: Vec<At<String>>,
        tables: &mut BTreeMap<String, TypeTable>,
    ) -> Vec<EnabledType> {
        let mut seen = BTreeSet::new();
        let mut enabled = Vec::new();
        for At { value: key, spot } in keys {
            if !seen.insert(key.clone()) {
                let text = format!("{key} is listed twice in {}; the second time has no effect", spot.name());
                self.warn(&key, text);
                continue;
            }
            let table = tables.remove(&key);
            if let Some(table) = &table {
                self.book_addresses(table);
            }
            enabled.push(self.rule(key, table));
        }
        enabled
    }

    /// One address, one type: the second table is the error, and names the first.
    fn book_addresses(&mut self, table: &TypeTable) {
        for At { value: addr, spot } in table.addresses.iter().flatten() {
            match self.holders.get(addr) {
                Some(first) if first.table != table.spot.table => {
                    let text = format!(
                        "{addr} has two types, from {} and {}; list it in one of them",
                        first.table_place(),
                        spot.table_place()
                    );
                    self.problems.push(ConfigError::at(spot, text));
                }
                Some(_) => {}
                None => {
                    self.holders.insert(addr.clone(), spot.clone());
                }
            }
        }
    }

    fn rule(&mut self, key: String, table: Option<TypeTable>) -> EnabledType {
        let Some(table) = table else {
            return EnabledType {
                key,
                addresses: Vec::new(),
                class: ResourceClass::vgpu(),
                max_instances: None,
                reserved: 0,
                traits: BTreeSet::new(),
                several_per_vm: None,
            };
        };
        EnabledType {
            key,
            addresses: self.distinct(table.addresses.unwrap_or_default()),
            class: table.class.unwrap_or_else(ResourceClass::vgpu),
            max_instances: table.max_instances,
            reserved: table.reserved.unwrap_or(0),
            traits: table.traits.unwrap_or_default(),
            several_per_vm: table.several_per_vm,
        }
    }

    fn distinct(&mut self, listed: Vec<At<ParentAddr>>) -> Vec<ParentAddr> {
        let mut seen = BTreeSet::new();
        let mut addresses = Vec::new();
        for At { value: addr, spot } in listed {
            if seen.insert(addr.clone()) {
                addresses.push(addr);
            } else {
                let text = format!("{addr} is listed twice in {}; it counts once", spot.name());
                self.warn(&addr.to_string(), text);
            }
        }
        addresses
    }

    fn unused(&mut self, key: String, table: TypeTable) -> EnabledType {
        let place = table.spot.table_place();
        let text = format!(
            "{place} has no effect: {key} is not enabled; add it to enabled_mdev_types or drop the table"
        );
        self.warn(&key, text);
        self.rule(key, Some(table))
    }

    /// Types that no rule can ever hand out.
    fn without_addresses(&mut self, config: &Config) {
        let mut open = config.enabled.iter().filter(|rule| rule.addresses.is_empty());
        match config.unlisted {
            Unlisted::First => {}
            Unlisted::Ignore => open.for_each(|rule| {
                let text = format!(
                    "{} will not be used: it lists no device_addresses, and unlisted is \"ignore\"",
                    rule.key
                );
                self.warn(&rule.key, text);
            }),
            Unlisted::Default => {
                let Some(default) = open.next() else { return };
                open.for_each(|rule| {
                    let text = format!(
                        "{} will not be used: it lists no device_addresses, and {} before it is the default \
                         already; list the addresses of one of them",
                        rule.key, default.key
                    );
                    self.warn(&rule.key, text);
                });
            }
        }
    }
}
