//! What is said when nothing fits: a kind, one sentence, and a reason for each parent.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::{FaultKind, Group, ParentAddr, Request, TraitName};
use crate::plan::capacity::ParentCapacity;

use super::fit::{misfit, names, wanted};
use super::search::Search;

/// Nothing fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// `NoCapacity`, `TypeUnavailable`, `TraitUnmapped`, what a quarantine says (`TraitDrift`), or `InvalidRequest`.
    pub kind: FaultKind,
    /// One sentence.
    pub message: String,
    /// One reason per parent, in address order.
    pub reasons: Vec<ParentReason>,
}

/// Why one parent does not serve the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ParentReason {
    /// The parent.
    pub parent: ParentAddr,
    /// The reason.
    pub reason: String,
}

/// The refusal of a search that failed.
pub(super) fn refuse(search: &Search<'_>, without: &BTreeMap<&ParentAddr, String>) -> Refusal {
    let mut reasons: BTreeMap<&ParentAddr, String> = without.iter().map(|(a, r)| (*a, r.clone())).collect();
    let (group, obstacles) = search.obstacles();
    let several = search.request.groups.iter().any(|other| other.suffix != group.suffix);
    for (cap, obstacle) in search.parents.iter().zip(obstacles) {
        let reason = match obstacle {
            Some(reason) if several => format!("{}: {reason}", title(group)),
            Some(reason) => reason,
            None => together(search.part_count(), cap),
        };
        reasons.insert(&cap.assigned.parent.addr, reason);
    }
    let reasons =
        reasons.into_iter().map(|(parent, reason)| ParentReason { parent: parent.clone(), reason }).collect();
    let (kind, message) = headline(search);
    Refusal { kind, message, reasons }
}

fn together(parts: usize, cap: &ParentCapacity<'_>) -> String {
    if let Some(why) = &cap.one_per_vm_reason {
        format!("free, but its card gives this VM one slice only, and {parts} are wanted in all: {why}")
    } else {
        format!("{} free, too few for all {parts} parts of the request", cap.free)
    }
}

fn title(group: &Group) -> String {
    if group.suffix.is_empty() {
        "the unnumbered group".to_owned()
    } else {
        format!("group {}", group.suffix)
    }
}

fn headline(search: &Search<'_>) -> (FaultKind, String) {
    let (request, parents) = (search.request, search.parents);
    if search.nodes.is_blind() {
        let text = "numa=required needs the NUMA nodes of the VM's memory, and no <numatune><memory nodeset='...'/> \
                    is known of it; pin the memory in the domain's XML or ask for numa=preferred";
        return (FaultKind::InvalidRequest, text.to_owned());
    }
    let about_group = |group: &Group| {
        unknown(group, parents)
            .or_else(|| two_classes(group, request))
            .or_else(|| quarantined(group, parents))
            .or_else(|| no_such(group, parents))
            .or_else(|| too_far(group, search))
    };
    request.groups.iter().find_map(about_group).unwrap_or_else(|| {
        let wanted = request.device_count();
        let noun = if wanted == 1 { "device" } else { "devices" };
        let text = format!("no parent on this host has room for the {wanted} {noun} asked for");
        (FaultKind::NoCapacity, text)
    })
}

/// A class or a trait that nothing on this host has.
fn unknown(group: &Group, parents: &[ParentCapacity<'_>]) -> Option<(FaultKind, String)> {
    if !parents.iter().any(|p| p.assigned.rule.class == group.class) {
        let text = format!("no configured type on this host has resource class {}", group.class);
        return Some((FaultKind::TypeUnavailable, text));
    }
    let nowhere = |name: &&TraitName| !parents.iter().any(|p| p.traits.contains(*name));
    if let Some(name) = group.required.iter().find(nowhere) {
        return Some((FaultKind::TraitUnmapped, format!("no configured type on this host has trait {name}")));
    }
    let list = group.any_of.iter().find(|list| list.iter().all(|name| nowhere(&name)))?;
    let text = format!("no configured type on this host has any of the traits {}", names(list));
    Some((FaultKind::TraitUnmapped, text))
}

fn two_classes(group: &Group, request: &Request) -> Option<(FaultKind, String)> {
    let same = |g: &&Group| !g.suffix.is_empty() && g.suffix == group.suffix && g.class != group.class;
    let other = request.groups.iter().find(same)?;
    let text = format!(
        "group {} asks for {} and {}, but it comes from one parent, and a parent has one class; use two groups",
        group.suffix, group.class, other.class
    );
    Some((FaultKind::TypeUnavailable, text))
}

/// Traits that only parents in quarantine have.
fn quarantined(group: &Group, parents: &[ParentCapacity<'_>]) -> Option<(FaultKind, String)> {
    let required = group.required.iter().map(|name| (format!("trait {name}"), vec![name]));
    let lists =
        group.any_of.iter().map(|list| (format!("any of the traits {}", names(list)), list.iter().collect()));
    required.chain(lists).find_map(|(what, any): (String, Vec<&TraitName>)| {
        let has = |p: &&ParentCapacity<'_>| {
            p.assigned.rule.class == group.class && any.iter().any(|name| p.traits.contains(*name))
        };
        let mut first = None;
        for cap in parents.iter().filter(has) {
            let quarantine = cap.quarantine.as_ref()?;
            first.get_or_insert((cap, quarantine));
        }
        let (cap, (kind, why)) = first?;
        let addr = &cap.assigned.parent.addr;
        Some((*kind, format!("every parent that has {what} is in quarantine; {addr}: {why}")))
    })
}

/// Each trait is somewhere, but no parent has them all.
fn no_such(group: &Group, parents: &[ParentCapacity<'_>]) -> Option<(FaultKind, String)> {
    if parents.iter().any(|cap| misfit(group, cap).is_none()) {
        return None;
    }
    let text = format!("no parent on this host is what {} asks for: {}", title(group), wanted(group));
    Some((FaultKind::TypeUnavailable, text))
}

/// Parents fit, but not one of them on the wanted nodes.
fn too_far(group: &Group, search: &Search<'_>) -> Option<(FaultKind, String)> {
    let near = |cap: &&ParentCapacity<'_>| search.nodes.obstacle(cap).is_none();
    let mut fitting = search.parents.iter().filter(|cap| misfit(group, cap).is_none()).peekable();
    fitting.peek()?;
    if fitting.any(|cap| near(&cap)) {
        return None;
    }
    let text = "numa=required, and no parent that fits is on a NUMA node of the VM's memory";
    Some((FaultKind::NoCapacity, text.to_owned()))
}
