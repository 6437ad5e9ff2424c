//! A configuration as TOML text that is read back as the same one.

use crate::model::ParentAddr;
use crate::text::quoted;

use super::{Config, EnabledType, Unlisted};

/// The configuration in force, every key of every section; keys of a type that are at their default are left out, but
/// for its class.
pub fn to_toml(config: &Config) -> String {
    let mut out = libvirt(&config.libvirt_uri) + "\n";
    out += &devices(config.enabled.iter().map(|t| t.key.as_str()), config.unlisted);
    for enabled in &config.enabled {
        out += "\n";
        out += &type_table(enabled);
    }
    let file = quoted(&config.traits_file.to_string_lossy());
    let lock = quoted(&config.traits_lock.to_string_lossy());
    let automatic = list(config.automatic.iter().map(|one| one.as_str()));
    out += &format!("\n[traits]\nfile = {file}\nlock = {lock}\nautomatic = {automatic}\n");
    let Config { packing, on_release, on_stop, restore_deadline_sec, live_deadline_sec, .. } = config;
    out += &format!("\n[policy]\npacking = \"{packing}\"\non_release = \"{on_release}\"\n");
    out += &format!("on_stop = \"{on_stop}\"\nrestore_deadline_sec = {restore_deadline_sec}\n");
    out += &format!("live_deadline_sec = {live_deadline_sec}\n");
    out += &format!("\n[hook]\nstart_budget_ms = {}\n", config.hook_start_budget_ms);
    out
}

/// Section `[libvirt]`.
pub(super) fn libvirt(uri: &str) -> String {
    format!("[libvirt]\nuri = {}\n", quoted(uri))
}

/// Section `[devices]`.
pub(super) fn devices<'a>(keys: impl Iterator<Item = &'a str>, unlisted: Unlisted) -> String {
    format!("[devices]\nenabled_mdev_types = {}\nunlisted = \"{unlisted}\"\n", list(keys))
}

/// The table of one type.
pub(super) fn type_table(rule: &EnabledType) -> String {
    let mut keys = vec![format!("mdev_class = \"{}\"", rule.class)];
    if !rule.addresses.is_empty() {
        let shown: Vec<String> = rule.addresses.iter().map(ParentAddr::to_string).collect();
        keys.push(format!("device_addresses = {}", list(shown.iter().map(String::as_str))));
    }
    keys.extend(rule.max_instances.map(|n| format!("max_instances = {n}")));
    if rule.reserved > 0 {
        keys.push(format!("reserved = {}", rule.reserved));
    }
    if !rule.traits.is_empty() {
        keys.push(format!("traits = {}", list(rule.traits.iter().map(|t| t.as_str()))));
    }
    keys.extend(rule.several_per_vm.map(|flag| format!("several_per_vm = {flag}")));
    format!("[mdev.{}]\n{}\n", quoted(&rule.key), keys.join("\n"))
}

fn list<'a>(items: impl Iterator<Item = &'a str>) -> String {
    let items: Vec<String> = items.map(quoted).collect();
    format!("[{}]", items.join(", "))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::{Automatic, Loaded, OnRelease, OnStop, Packing, parse};
    use super::*;
    use crate::model::{ResourceClass, TraitName};

    fn rule() -> impl Strategy<Value = EnabledType> {
        let traits = prop::collection::btree_set("CUSTOM_[A-Z0-9_]{1,9}", 0..3);
        let class = prop_oneof![Just("VGPU".to_owned()), "CUSTOM_[A-Z0-9_]{1,9}"];
        (class, prop::option::of(1u32..), any::<u32>(), traits, any::<Option<bool>>()).prop_map(
            |(class, max_instances, reserved, traits, several_per_vm)| EnabledType {
                key: String::new(),
                addresses: Vec::new(),
                class: class.parse::<ResourceClass>().unwrap(),
                max_instances,
                reserved,
                traits: traits.iter().map(|t| t.parse().unwrap()).collect::<BTreeSet<TraitName>>(),
                several_per_vm,
            },
        )
    }

    /// Keys and addresses are dealt out so that no two rules share one.
    fn config() -> impl Strategy<Value = Config> {
        let key = "[A-Za-z0-9][ -.0-~é\"'#=\\[\\]]{0,20}[a-z]";
        let keys = prop::collection::btree_set(key, 0..5)
            .prop_filter("no backslash paths", |keys| keys.iter().all(|k| !k.contains('\\')));
        let addresses = prop::collection::btree_set((any::<u32>(), any::<u8>(), 0u8..32, 0u8..8), 0..12);
        let words = (
            prop::sample::select(Unlisted::ALL),
            prop::sample::select(Packing::ALL),
            (prop::sample::select(OnRelease::ALL), prop::sample::select(OnStop::ALL)),
            "/[a-z \"\\\\]{0,12}",
            prop::collection::btree_set(prop::sample::select(Automatic::ALL), 0..3),
        );
        (keys, addresses, prop::collection::vec(rule(), 5), words).prop_map(
            |(keys, addresses, rules, (unlisted, packing, (on_release, on_stop), path, automatic))| {
                let mut enabled: Vec<EnabledType> =
                    keys.into_iter().zip(rules).map(|(key, rule)| EnabledType { key, ..rule }).collect();
                for (at, (domain, bus, slot, function)) in addresses.into_iter().enumerate() {
                    let addr = crate::model::PciAddress::new(domain, bus, slot, function).unwrap();
                    if !enabled.is_empty() {
                        let rule = at % enabled.len();
                        enabled[rule].addresses.push(ParentAddr::Pci(addr));
                    }
                }
                let traits_file = path.into();
                let policy = Config { packing, on_release, on_stop, ..Config::default() };
                Config { enabled, unlisted, traits_file, automatic, ..policy }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(config in config()) {
            let text = to_toml(&config);
            let Loaded { config: again, .. } = parse(&text, "shown").map_err(|e| {
                TestCaseError::fail(format!("{e}\n{text}"))
            })?;
            prop_assert_eq!(again, config);
        }
    }

    #[test]
    fn the_default_is_shown_in_full() {
        assert_eq!(
            to_toml(&Config::default()),
            "[libvirt]\nuri = \"qemu:///system\"\n\n[devices]\nenabled_mdev_types = []\nunlisted = \"first\"\n\n\
             [traits]\nfile = \"/etc/mdevirt/traits.toml\"\nlock = \"/etc/mdevirt/traits.lock\"\n\
             automatic = [\"capabilities\"]\n\n\
             [policy]\npacking = \"breadth\"\non_release = \"remove\"\non_stop = \"release\"\nrestore_deadline_sec = 300\n\
             live_deadline_sec = 300\n\n\
             [hook]\nstart_budget_ms = 2000\n",
        );
    }
}
