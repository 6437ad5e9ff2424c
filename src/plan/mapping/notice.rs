//! What an operator should see of a configuration on this host; words only, decisions are made elsewhere.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::config::{Config, EnabledType, Unlisted};
use crate::model::{
    Finding, FindingKind, Framework, HostScan, MdevType, Meaning, Parent, ParentAddr, TypeIdentity,
};

use super::Assigned;

/// Most items of a list that are written out.
const MAX_SHOWN: usize = 32;

/// A warning about a part of the configuration.
pub(super) fn warning(about: &str, text: String) -> Finding {
    Finding::new(FindingKind::ConfigWarning, about, text)
}

/// Why no type at all can be made on this parent; `None` if some can.
pub(super) fn cannot_be_sliced(parent: &Parent, scan: &HostScan) -> Option<String> {
    match parent.framework {
        Some(_) if !parent.types.is_empty() => None,
        Some(Framework::Mdev) => Some("it offers no types at present".to_owned()),
        // The list of a vendor-vfio VF is empty whenever the card is full.
        Some(Framework::VendorVfio) => Some("its card has room for no type at present".to_owned()),
        None if parent.physical_function.is_some() => Some(format!(
            "this virtual function has neither mdev types nor the vendor's vGPU files (driver: {})",
            parent.driver.as_deref().unwrap_or("none").escape_debug()
        )),
        None => {
            let of_card = |p: &&Parent| p.physical_function.is_some() && p.card() == parent.addr;
            let functions = scan.parents.iter().filter(of_card).map(|p| p.addr.to_string());
            Some(format!(
                "it is a physical function; the parents are its virtual functions: {}",
                listing(functions)
            ))
        }
    }
}

/// Why a configured parent gets nothing.
pub(super) fn not_offered(rule: &EnabledType, meant: Option<&Meaning>, parent: &Parent) -> String {
    let key = &rule.key;
    let meant = meant.filter(|m| m.identity.label() != *key);
    let meant = meant.map(|m| format!(" ({key} meant {} here)", m.identity)).unwrap_or_default();
    format!("{key} is configured for it, but it does not offer that type{meant}; it offers {}", types(parent))
}

/// A configured id that has become another type, while the type that was meant is there under another id.
pub(super) fn id_means_another(rule: &EnabledType, meaning: &Meaning, now: Assigned<'_>) -> Option<Finding> {
    let Assigned { parent, mdev_type, .. } = now;
    let other = parent.types.iter().find(|t| t.id.as_str() == rule.key && t.id != mdev_type.id)?;
    let text = format!(
        "{} in the configuration means {} on {} now; {}, which it meant before, is {} and stays in use; enable it by its \
         vendor name",
        rule.key,
        other.label().escape_debug(),
        parent.addr,
        meaning.identity.label().escape_debug(),
        mdev_type.id
    );
    Some(warning(&parent.addr.to_string(), text))
}

/// A type that has become another one under its id.
pub(super) fn drift(meaning: &Meaning, now: &TypeIdentity) -> String {
    let Meaning { word, parent, identity, type_id, .. } = meaning;
    format!(
        "{type_id} on {parent} was {identity} when {} was enabled, and is {now} now; no new claims there until the \
         configuration names the type that is meant, or `mdevirtctl trait accept` takes the new one",
        word.text.escape_debug()
    )
}

/// What a parent offers, as `nvidia-231 (GRID T4-2Q), ...`.
pub(super) fn types(parent: &Parent) -> String {
    listing(parent.types.iter().map(shown))
}

fn shown(offered: &MdevType) -> String {
    match &offered.name {
        Some(name) => format!("{} ({})", offered.id, name.escape_debug()),
        None => offered.id.to_string(),
    }
}

fn listing(items: impl Iterator<Item = String>) -> String {
    let mut items: Vec<String> = items.collect();
    let more = items.len().saturating_sub(MAX_SHOWN);
    items.truncate(MAX_SHOWN);
    match (items.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (false, 0) => items.join(", "),
        (false, more) => format!("{} and {more} more", items.join(", ")),
    }
}

/// Configured addresses at which the scan saw nothing. One that could not be read has a finding of its own.
pub(super) fn absent(config: &Config, scan: &HostScan) -> Vec<Finding> {
    let there: HashSet<&ParentAddr> = scan.parents.iter().map(|p| &p.addr).collect();
    let unread: HashSet<&str> = scan.findings.iter().map(|f| f.about.as_str()).collect();
    let mut findings = Vec::new();
    for rule in &config.enabled {
        for addr in rule.addresses.iter().filter(|addr| !there.contains(addr)) {
            let (shown, node) = (addr.to_string(), addr.node_name());
            if !unread.contains(&*shown) && !unread.contains(&*node) {
                let text = format!(
                    "{addr} is configured for {} but not present: no device that can be sliced has this address; \
                     it is taken up when one appears",
                    rule.key
                );
                findings.push(warning(&shown, text));
            }
        }
    }
    findings
}

/// Enabled types that no parent got although the rule for unlisted parents could have given them; what concerns
/// listed addresses is said per address, and a type that the rule leaves out is said when the configuration is read.
pub(super) fn unused(
    config: &Config,
    scan: &HostScan,
    assigned: &BTreeMap<&ParentAddr, Assigned<'_>>,
) -> Vec<Finding> {
    // A full card lists no types: then it is not known what the host could offer.
    if scan.parents.iter().any(|p| p.framework == Some(Framework::VendorVfio) && p.types.is_empty()) {
        return Vec::new();
    }
    let used: HashSet<&str> = assigned.values().map(|a| a.rule.key.as_str()).collect();
    let types = || scan.parents.iter().flat_map(|p| &p.types);
    let keys = types().flat_map(|t| [Some(t.id.as_str()), t.name.as_deref()]);
    let offered: HashSet<&str> = keys.flatten().collect();
    let idle = open_rules(config).into_iter().map(|rule| &*rule.key).filter(|key| !used.contains(key));
    let (beaten, missing): (Vec<&str>, Vec<&str>) = idle.partition(|key| offered.contains(key));

    let mut findings = Vec::new();
    if !missing.is_empty() {
        let all: BTreeSet<String> = types().map(shown).collect();
        let text = format!(
            "enabled, but no parent of this host offers it: {}; offered are: {}",
            listing(missing.into_iter().map(str::to_owned)),
            listing(all.into_iter())
        );
        findings.push(warning("enabled_mdev_types", text));
    }
    if !beaten.is_empty() {
        let text = format!(
            "enabled, but each parent that offers it gets another type or none: {}",
            listing(beaten.into_iter().map(str::to_owned))
        );
        findings.push(warning("enabled_mdev_types", text));
    }
    findings
}

/// Enabled types that a parent may get without being listed.
fn open_rules(config: &Config) -> Vec<&EnabledType> {
    let open = config.enabled.iter().filter(|rule| rule.addresses.is_empty());
    match config.unlisted {
        Unlisted::First => open.collect(),
        Unlisted::Default => open.take(1).collect(),
        Unlisted::Ignore => Vec::new(),
    }
}

/// Cards that hold slices of one size at a time and have more than one configured.
///
/// # Source
/// NVIDIA vGPU user guide, "Homogeneous and heterogeneous vGPUs".
pub(super) fn two_sizes(assigned: &BTreeMap<&ParentAddr, Assigned<'_>>) -> Vec<Finding> {
    let mut cards: BTreeMap<ParentAddr, BTreeMap<u32, Vec<&Parent>>> = BTreeMap::new();
    for one in assigned.values().filter(|one| one.parent.one_size_per_card()) {
        if let Some(size) = one.mdev_type.facts.framebuffer_mib {
            cards.entry(one.parent.card()).or_default().entry(size).or_default().push(one.parent);
        }
    }
    cards.retain(|_, sizes| sizes.len() > 1);
    let text = |(card, sizes): (ParentAddr, BTreeMap<u32, Vec<&Parent>>)| {
        let each = sizes.iter().map(|(size, parents)| {
            format!("{} on {}", size_text(*size), listing(parents.iter().map(|p| p.addr.to_string())))
        });
        let text = format!(
            "slices of different sizes are configured on the one card {card}, which holds one size at a time: {}; the first \
             slice that is made decides, until the last of its size is gone",
            each.collect::<Vec<_>>().join("; ")
        );
        warning(&card.to_string(), text)
    };
    cards.into_iter().map(text).collect()
}

fn size_text(mib: u32) -> String {
    if mib.is_multiple_of(1024) { format!("{} GiB", mib / 1024) } else { format!("{mib} MiB") }
}
