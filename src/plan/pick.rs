//! Which parent serves each slice of a request, or why none does.
//!
//! 1. A numbered group comes from one parent; the slices of the unnumbered one may be spread.
//! 2. Two slices of one VM never share a card where the vendor refuses it, whatever the groups say.
//! 3. A refusal has one reason per parent of the host.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::capacity::ParentCapacity;
use crate::config::Packing;
use crate::model::{
    DeviceApi, FaultKind, Group, MdevUuid, ParentAddr, Request, ResourceClass, TraitName, TypeId,
};

/// One slice of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Suffix of the group it serves.
    pub group: String,
    /// Where.
    pub parent: ParentAddr,
    /// Local type id there.
    pub type_id: TypeId,
    /// Vendor name, else the id.
    pub type_name: String,
    /// What it is to the guest.
    pub device_api: DeviceApi,
    /// Class it is asked for as.
    pub class: ResourceClass,
    /// Traits that were required.
    pub required: BTreeSet<TraitName>,
    /// An idle device of ours to take instead of a new one.
    pub reuse: Option<MdevUuid>,
}

/// Nothing fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// `NoCapacity`, `TypeUnavailable` or `TraitUnmapped`.
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

/// Chooses a parent for every slice.
///
/// `without` are the parents that have no type, with their reasons; they only appear in a refusal.
///
/// # Errors
/// A [`Refusal`] that names, for each parent, why it does not fit.
pub fn pick(
    request: &Request,
    parents: &[ParentCapacity<'_>],
    without: &BTreeMap<&ParentAddr, String>,
    packing: Packing,
) -> Result<Vec<Choice>, Refusal> {
    let mut search = Search::new(request, parents, packing);
    if search.place(0) { Ok(search.choices()) } else { Err(refuse(request, parents, without, &search)) }
}

/// Slices that have to come from one parent together.
struct Unit<'a> {
    group: &'a Group,
    count: u32,
}

struct Search<'a> {
    parents: &'a [ParentCapacity<'a>],
    isolate: bool,
    units: Vec<Unit<'a>>,
    /// Indices of parents, best first.
    order: Vec<usize>,
    /// Parent index of each placed unit.
    placed: Vec<usize>,
    /// Position in `order` of each placed unit.
    positions: Vec<usize>,
    /// The deepest that any attempt came, for the message.
    best: usize,
    steps_left: u32,
}

/// Attempts before giving up; a request of 8 groups on 384 parents needs far fewer.
const MAX_STEPS: u32 = 20_000;

impl<'a> Search<'a> {
    fn new(request: &'a Request, parents: &'a [ParentCapacity<'a>], packing: Packing) -> Self {
        let units = request.groups.iter().flat_map(units_of).collect();
        let order = best_first(parents, packing);
        Self {
            parents,
            isolate: request.isolate,
            units,
            order,
            placed: Vec::new(),
            positions: Vec::new(),
            best: 0,
            steps_left: MAX_STEPS,
        }
    }

    fn place(&mut self, depth: usize) -> bool {
        self.best = self.best.max(depth);
        if depth == self.units.len() {
            return true;
        }
        for at in self.first_position(depth)..self.order.len() {
            let index = self.order[at];
            if self.steps_left == 0 || self.obstacle(depth, index).is_some() {
                continue;
            }
            self.steps_left -= 1;
            self.placed.push(index);
            self.positions.push(at);
            if self.place(depth + 1) {
                return true;
            }
            self.placed.pop();
            self.positions.pop();
        }
        false
    }

    /// Slices of one group are alike: trying them in every order would find nothing new.
    fn first_position(&self, depth: usize) -> usize {
        let alike = depth > 0 && std::ptr::eq(self.units[depth].group, self.units[depth - 1].group);
        if alike { self.positions[depth - 1] } else { 0 }
    }

    /// Why this unit cannot go to this parent beside what is placed so far.
    fn obstacle(&self, depth: usize, index: usize) -> Option<String> {
        let (unit, cap) = (&self.units[depth], &self.parents[index]);
        if let Some(reason) = misfit(unit.group, cap) {
            return Some(reason);
        }
        let taken: u32 =
            self.placed.iter().zip(&self.units).filter(|(p, _)| **p == index).map(|(_, u)| u.count).sum();
        if taken + unit.count > cap.free {
            return Some(if cap.free == 0 { cap.reason.clone() } else { format!("only {} free", cap.free) });
        }
        if let Some(why) = cap.one_per_vm_reason.as_ref().filter(|_| unit.count > 1) {
            return Some(format!("one slice per VM: {why}"));
        }
        self.conflict(unit, cap)
    }

    fn conflict(&self, unit: &Unit<'_>, cap: &ParentCapacity<'_>) -> Option<String> {
        let card = cap.assigned.parent.card();
        for (other, placed) in self.units.iter().zip(&self.placed) {
            let there = &self.parents[*placed];
            if there.assigned.parent.card() == card {
                if let Some(why) = cap.one_per_vm_reason.as_ref().or(there.one_per_vm_reason.as_ref()) {
                    return Some(format!("card {card} already serves this VM, one slice per VM: {why}"));
                }
                let size = |c: &ParentCapacity<'_>| c.assigned.mdev_type.facts.framebuffer_mib;
                if cap.assigned.parent.one_size_per_card() && size(cap) != size(there) {
                    return Some(format!("card {card} holds one size of slices only"));
                }
            }
            let same_parent = there.assigned.parent.addr == cap.assigned.parent.addr;
            if self.isolate && same_parent && other.group.suffix != unit.group.suffix {
                return Some("group_policy=isolate: another group has this parent".to_owned());
            }
        }
        None
    }

    fn choices(&self) -> Vec<Choice> {
        let mut taken: BTreeMap<usize, usize> = BTreeMap::new();
        let mut out = Vec::new();
        for (unit, index) in self.units.iter().zip(&self.placed) {
            for _ in 0..unit.count {
                let nth = taken.entry(*index).or_insert(0);
                out.push(choice(unit.group, &self.parents[*index], *nth));
                *nth += 1;
            }
        }
        out
    }
}

fn units_of(group: &Group) -> Vec<Unit<'_>> {
    if group.suffix.is_empty() {
        (0..group.count).map(|_| Unit { group, count: 1 }).collect()
    } else {
        vec![Unit { group, count: group.count }]
    }
}

fn choice(group: &Group, cap: &ParentCapacity<'_>, nth: usize) -> Choice {
    let (parent, mdev_type) = (cap.assigned.parent, cap.assigned.mdev_type);
    Choice {
        group: group.suffix.clone(),
        parent: parent.addr.clone(),
        type_id: mdev_type.id.clone(),
        type_name: mdev_type.label().to_owned(),
        device_api: mdev_type.device_api,
        class: group.class.clone(),
        required: group.required.clone(),
        reuse: cap.idle.get(nth).copied(),
    }
}

/// Emptiest or fullest card first; among equals, the lowest address.
fn best_first(parents: &[ParentCapacity<'_>], packing: Packing) -> Vec<usize> {
    let mut cards: BTreeMap<ParentAddr, (u64, u64)> = BTreeMap::new();
    for cap in parents {
        let sum = cards.entry(cap.assigned.parent.card()).or_default();
        sum.0 += u64::from(cap.total.saturating_sub(cap.free));
        sum.1 += u64::from(cap.total);
    }
    let fill = |index: usize| {
        let (taken, total) = cards.get(&parents[index].assigned.parent.card()).copied().unwrap_or_default();
        taken * 1_000_000 / total.max(1)
    };
    let mut order: Vec<usize> = (0..parents.len()).collect();
    order.sort_by_key(|i| match packing {
        Packing::Breadth => (fill(*i), parents[*i].assigned.parent.addr.clone()),
        Packing::Depth => (u64::MAX - fill(*i), parents[*i].assigned.parent.addr.clone()),
    });
    order
}

/// Why this parent can never serve this group, however empty it is.
fn misfit(group: &Group, cap: &ParentCapacity<'_>) -> Option<String> {
    let rule = cap.assigned.rule;
    if rule.class != group.class {
        return Some(format!("has {}, not {}", rule.class, group.class));
    }
    if let Some(missing) = group.required.iter().find(|t| !rule.traits.contains(t)) {
        return Some(format!("{} does not have trait {missing}", cap.assigned.mdev_type.label()));
    }
    let bad = group.forbidden.iter().find(|t| rule.traits.contains(t))?;
    Some(format!("{} has the forbidden trait {bad}", cap.assigned.mdev_type.label()))
}

fn refuse(
    request: &Request,
    parents: &[ParentCapacity<'_>],
    without: &BTreeMap<&ParentAddr, String>,
    search: &Search<'_>,
) -> Refusal {
    let mut reasons: BTreeMap<&ParentAddr, String> = without.iter().map(|(a, r)| (*a, r.clone())).collect();
    let depth = search.best.min(search.units.len().saturating_sub(1));
    // What stands against each parent alone, before any other slice of this request is placed.
    let empty = Search::new(request, parents, Packing::Breadth);
    for (index, cap) in parents.iter().enumerate() {
        let reason = empty.obstacle(depth, index).unwrap_or_else(|| together(search, cap));
        reasons.insert(&cap.assigned.parent.addr, reason);
    }
    let reasons =
        reasons.into_iter().map(|(parent, reason)| ParentReason { parent: parent.clone(), reason }).collect();
    let (kind, message) = headline(request, parents);
    Refusal { kind, message, reasons }
}

fn together(search: &Search<'_>, cap: &ParentCapacity<'_>) -> String {
    let wanted = search.units.len();
    if let Some(why) = &cap.one_per_vm_reason {
        format!("free, but its card gives this VM one slice only, and {wanted} are wanted in all: {why}")
    } else {
        format!("{} free, too few for all {wanted} parts of the request", cap.free)
    }
}

fn headline(request: &Request, parents: &[ParentCapacity<'_>]) -> (FaultKind, String) {
    for group in &request.groups {
        if !parents.iter().any(|p| p.assigned.rule.class == group.class) {
            let text = format!("no configured type on this host has resource class {}", group.class);
            return (FaultKind::TypeUnavailable, text);
        }
        let unknown =
            group.required.iter().find(|t| !parents.iter().any(|p| p.assigned.rule.traits.contains(t)));
        if let Some(name) = unknown {
            return (FaultKind::TraitUnmapped, format!("no configured type on this host has trait {name}"));
        }
    }
    let wanted = request.device_count();
    let noun = if wanted == 1 { "device" } else { "devices" };
    (FaultKind::NoCapacity, format!("no parent on this host has room for the {wanted} {noun} asked for"))
}
