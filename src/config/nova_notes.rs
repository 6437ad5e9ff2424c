//! What an operator should know about a nova.conf that was taken over.
//!
//! # Source
//! nova `virt/libvirt/driver.py` (`_get_supported_vgpu_types`): addresses are compared as text with libvirt's
//! lower-case names; the class of a parent is looked up by its listed address only. nova `conf/devices.py`: of the old
//! group only `device_addresses` is an alias.

use std::collections::BTreeSet;

use crate::model::ParentAddr;

use super::nova_ini::{Entry, Ini};

/// Beginning of the group of a type.
pub(super) const NEW_PREFIX: &str = "mdev_";
/// Its beginning before release 24.
pub(super) const OLD_PREFIX: &str = "vgpu_";

/// Notes of one file that are kept.
const MAX_NOTES: usize = 200;

/// Which of the two prefixes a group's name has, and the type behind it.
pub(super) fn split(group: &str) -> Option<(&'static str, &str)> {
    [NEW_PREFIX, OLD_PREFIX].into_iter().find_map(|prefix| {
        let (front, rest) = group.split_at_checked(prefix.len())?;
        front.eq_ignore_ascii_case(prefix).then_some((prefix, rest))
    })
}

/// The notes, in the order of lines.
pub(super) fn of(ini: &Ini) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let heads = ini.groups.iter().filter_map(|(group, line)| {
        let (prefix, rest) = split(group)?;
        (prefix == OLD_PREFIX && seen.insert(group.to_ascii_lowercase()))
            .then(|| (*line, format!("[{group}] is the old name of [{NEW_PREFIX}{rest}]")))
    });
    let values = ini.entries.iter().flat_map(|entry| {
        let texts = if ini.last(&entry.group, &entry.key) == Some(entry) {
            about(ini, entry)
        } else {
            vec![format!("{} is given again below, and that one counts", name(entry))]
        };
        texts.into_iter().map(|text| (entry.line, text))
    });
    let mut notes: Vec<(u32, String)> = heads.chain(values).collect();
    notes.sort();
    let more = notes.len().saturating_sub(MAX_NOTES);
    let shown = notes.into_iter().take(MAX_NOTES).map(|(line, text)| {
        let text: String = text.chars().take(300).collect();
        format!("line {line}: {}", text.escape_debug())
    });
    shown.chain((more > 0).then(|| format!("and {more} more of this kind"))).collect()
}

fn name(entry: &Entry) -> String {
    format!("[{}] {}", entry.group, entry.key)
}

fn about(ini: &Ini, entry: &Entry) -> Vec<String> {
    if let Some((prefix, rest)) = split(&entry.group) {
        return about_type_option(ini, entry, prefix, rest);
    }
    if !entry.group.eq_ignore_ascii_case("devices") {
        return Vec::new();
    }
    match &*entry.key {
        "enabled_mdev_types" => Vec::new(),
        "enabled_vgpu_types" => {
            let shadow = ini.last("devices", "enabled_mdev_types").map(|new| shadowed(entry, new));
            std::iter::once("enabled_vgpu_types is the old name of enabled_mdev_types".to_owned())
                .chain(shadow)
                .collect()
        }
        _ => vec![not_carried(entry)],
    }
}

fn about_type_option(ini: &Ini, entry: &Entry, prefix: &str, rest: &str) -> Vec<String> {
    let old = prefix == OLD_PREFIX;
    let new = ini.last(&format!("{NEW_PREFIX}{rest}"), &entry.key).filter(|_| old);
    match (&*entry.key, new) {
        ("device_addresses" | "mdev_class" | "max_instances", Some(new)) => vec![shadowed(entry, new)],
        ("device_addresses", None) => other_spellings(entry),
        ("mdev_class", None) => not_read(entry, old).into_iter().chain(class(ini, entry, rest)).collect(),
        ("max_instances", None) => not_read(entry, old).into_iter().collect(),
        _ => vec![not_carried(entry)],
    }
}

fn shadowed(entry: &Entry, new: &Entry) -> String {
    format!("{} has no effect beside {}", name(entry), name(new))
}

fn not_carried(entry: &Entry) -> String {
    format!("{} was not carried over: mdevirt has no such option", name(entry))
}

fn not_read(entry: &Entry, old: bool) -> Option<String> {
    old.then(|| format!("nova does not read {} in a group of the old name; mdevirt does", name(entry)))
}

fn other_spellings(entry: &Entry) -> Vec<String> {
    let items = entry.value.split(',').map(str::trim);
    let spelled = items.filter_map(|item| Some((item, item.parse::<ParentAddr>().ok()?.to_string())));
    spelled
        .filter(|(item, normal)| item != normal)
        .map(|(item, normal)| {
            format!("{item} is written as {normal}; nova compares text and never found {item} on a host")
        })
        .collect()
}

fn class(ini: &Ini, entry: &Entry, rest: &str) -> Option<String> {
    let listed = [NEW_PREFIX, OLD_PREFIX]
        .into_iter()
        .filter_map(|prefix| ini.last(&format!("{prefix}{rest}"), "device_addresses"))
        .any(|addresses| !addresses.value.is_empty());
    (!listed && entry.value != "VGPU").then(|| {
        format!(
            "{} of a type without device_addresses: nova ignored it and published VGPU, mdevirt publishes {}",
            name(entry),
            entry.value
        )
    })
}
