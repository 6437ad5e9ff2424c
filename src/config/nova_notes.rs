//! What an operator should know about a nova.conf that was taken over.
//!
//! # Source
//! nova `virt/libvirt/driver.py` (`_get_supported_vgpu_types`): addresses are compared as text with libvirt's
//! lower-case names; the class of a parent is looked up by its listed address only; (`_get_gpu_inventories`) a parent that
//! would take the sum of a type over `max_instances` gets a total of 0. nova `conf/devices.py`: of the old group only
//! `device_addresses` is an alias.

use std::collections::BTreeSet;

use crate::model::ParentAddr;

use super::nova_ini::{Entry, Ini};

use self::Remark::{Note, Trap};

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

/// What is said about one file, each part in the order of lines.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    /// What nova did otherwise than the file seems to say.
    pub(super) traps: Vec<String>,
    /// What was renamed, what was left behind.
    pub(super) notes: Vec<String>,
}

/// One remark; traps come first in the order of this type.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Remark {
    Trap(String),
    Note(String),
}

/// All remarks.
pub(super) fn of(ini: &Ini) -> Remarks {
    let mut seen = BTreeSet::new();
    let heads = ini.groups.iter().filter_map(|(group, line)| {
        let (prefix, rest) = split(group)?;
        (prefix == OLD_PREFIX && seen.insert(group.to_ascii_lowercase()))
            .then(|| (*line, Note(format!("[{group}] is the old name of [{NEW_PREFIX}{rest}]"))))
    });
    let values = ini.entries.iter().flat_map(|entry| {
        let remarks = if ini.last(&entry.group, &entry.key) == Some(entry) {
            about(ini, entry)
        } else {
            vec![Trap(format!("{} is given again below, and that one counts", name(entry)))]
        };
        remarks.into_iter().map(|remark| (entry.line, remark))
    });
    let mut all: Vec<(u32, Remark)> = heads.chain(values).collect();
    all.sort();
    let mut remarks = Remarks::default();
    for (line, remark) in all {
        let (list, text) = match remark {
            Trap(text) => (&mut remarks.traps, text),
            Note(text) => (&mut remarks.notes, text),
        };
        let text: String = text.chars().take(300).collect();
        list.push(format!("line {line}: {}", text.escape_debug()));
    }
    for list in [&mut remarks.traps, &mut remarks.notes] {
        let more = list.len().saturating_sub(MAX_NOTES);
        list.truncate(MAX_NOTES);
        list.extend((more > 0).then(|| format!("and {more} more of this kind")));
    }
    remarks
}

fn name(entry: &Entry) -> String {
    format!("[{}] {}", entry.group, entry.key)
}

fn about(ini: &Ini, entry: &Entry) -> Vec<Remark> {
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
            let renamed = Note("enabled_vgpu_types is the old name of enabled_mdev_types".to_owned());
            std::iter::once(renamed).chain(shadow).collect()
        }
        _ => vec![not_carried(entry)],
    }
}

fn about_type_option(ini: &Ini, entry: &Entry, prefix: &str, rest: &str) -> Vec<Remark> {
    let old = prefix == OLD_PREFIX;
    let new = ini.last(&format!("{NEW_PREFIX}{rest}"), &entry.key).filter(|_| old);
    match (&*entry.key, new) {
        ("device_addresses" | "mdev_class" | "max_instances", Some(new)) => vec![shadowed(entry, new)],
        ("device_addresses", None) => other_spellings(entry),
        ("mdev_class" | "max_instances", None) if old => vec![not_read(entry)],
        ("mdev_class", None) => class(ini, entry, rest).into_iter().collect(),
        ("max_instances", None) => vec![cap(entry)],
        _ => vec![not_carried(entry)],
    }
}

fn shadowed(entry: &Entry, new: &Entry) -> Remark {
    Trap(format!("{} has no effect beside {}", name(entry), name(new)))
}

fn not_carried(entry: &Entry) -> Remark {
    Note(format!("{} was not carried over: mdevirt has no such option", name(entry)))
}

fn not_read(entry: &Entry) -> Remark {
    Trap(format!("nova does not read {} in a group of the old name; mdevirt does", name(entry)))
}

fn cap(entry: &Entry) -> Remark {
    let text = "nova gives nothing of a parent whose free slices would go over it, mdevirt gives what is left up to it";
    Trap(format!("{} = {}: {text}", name(entry), entry.value))
}

fn other_spellings(entry: &Entry) -> Vec<Remark> {
    let items = entry.value.split(',').map(str::trim);
    let spelled = items.filter_map(|item| Some((item, item.parse::<ParentAddr>().ok()?.to_string())));
    spelled
        .filter(|(item, normal)| item != normal)
        .map(|(item, normal)| {
            Trap(format!(
                "{item} is written as {normal}; nova compares text and never found {item} on a host"
            ))
        })
        .collect()
}

fn class(ini: &Ini, entry: &Entry, rest: &str) -> Option<Remark> {
    let listed = [NEW_PREFIX, OLD_PREFIX]
        .into_iter()
        .filter_map(|prefix| ini.last(&format!("{prefix}{rest}"), "device_addresses"))
        .any(|addresses| !addresses.value.is_empty());
    (!listed && entry.value != "VGPU").then(|| {
        Trap(format!(
            "{} of a type without device_addresses: nova ignored it and published VGPU, mdevirt publishes {}",
            name(entry),
            entry.value
        ))
    })
}
