//! All parts of a request placed together: depth first, best parents first, bounded.

use std::collections::BTreeMap;

use crate::config::Packing;
use crate::model::{Group, ParentAddr, Request};
use crate::plan::capacity::ParentCapacity;

use super::fit::misfit;
use super::numa::Nodes;
use super::{Choice, Wishes, choice};

/// Slices that have to come from one parent together.
struct Unit<'a> {
    group: &'a Group,
    count: u32,
    /// Index of the group, and so of its candidates.
    nth: usize,
    /// It shares no parent with another numbered group.
    isolate: bool,
}

/// One search over the parents of a host.
pub(super) struct Search<'a> {
    pub(super) request: &'a Request,
    pub(super) parents: &'a [ParentCapacity<'a>],
    pub(super) nodes: Nodes<'a>,
    wishes: &'a Wishes,
    units: Vec<Unit<'a>>,
    /// For each group the indices of parents that may serve it, best first.
    candidates: Vec<Vec<usize>>,
    /// Parent index of each placed unit.
    placed: Vec<usize>,
    /// Position among the candidates of each placed unit.
    positions: Vec<usize>,
    /// The deepest that any attempt came, for the message.
    best: usize,
    steps_left: u32,
}

/// Attempts before giving up; a request of 8 groups on 384 parents needs far fewer.
const MAX_STEPS: u32 = 20_000;

impl<'a> Search<'a> {
    pub(super) fn new(request: &'a Request, parents: &'a [ParentCapacity<'a>], wishes: &'a Wishes) -> Self {
        let nodes = Nodes::new(request.numa, wishes.memory_nodes.as_ref());
        let order = best_first(parents, wishes.packing, nodes);
        let may = |group: &Group, cap: &ParentCapacity<'_>| {
            misfit(group, cap).is_none() && nodes.obstacle(cap).is_none() && cap.free > 0
        };
        let candidates = request
            .groups
            .iter()
            .map(|group| order.iter().copied().filter(|i| may(group, &parents[*i])).collect())
            .collect();
        let units = (0..).zip(&request.groups).flat_map(|(nth, group)| units_of(nth, group, request.isolate));
        Self {
            request,
            parents,
            nodes,
            wishes,
            units: units.collect(),
            candidates,
            placed: Vec::new(),
            positions: Vec::new(),
            best: 0,
            steps_left: MAX_STEPS,
        }
    }

    /// Places every unit; `false` if that cannot be done, or not in time.
    pub(super) fn place_all(&mut self) -> bool {
        self.place(0)
    }

    fn place(&mut self, depth: usize) -> bool {
        self.best = self.best.max(depth);
        if depth == self.units.len() {
            return true;
        }
        let nth = self.units[depth].nth;
        for at in self.first_position(depth)..self.candidates[nth].len() {
            let index = self.candidates[nth][at];
            if self.steps_left == 0 {
                return false;
            }
            if self.crowded(depth, index).is_some() {
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
        let alike = depth > 0 && self.units[depth].nth == self.units[depth - 1].nth;
        if alike { self.positions[depth - 1] } else { 0 }
    }

    /// Why this unit cannot go to this parent, which may serve its group, beside what is placed so far.
    fn crowded(&self, depth: usize, index: usize) -> Option<String> {
        let (unit, cap) = (&self.units[depth], &self.parents[index]);
        let taken: u32 =
            self.placed.iter().zip(&self.units).filter(|(p, _)| **p == index).map(|(_, u)| u.count).sum();
        if taken + unit.count > cap.free {
            return Some(if cap.free == 0 { cap.reason.clone() } else { format!("only {} free", cap.free) });
        }
        let label = cap.assigned.mdev_type.label();
        if unit.count > 1 && cap.one_per_vm() {
            return Some(format!("{label} allows one slice per VM"));
        }
        let card = cap.assigned.parent.card();
        if cap.one_per_vm() && self.wishes.cards.contains(&card) {
            return Some(format!(
                "the domain's XML names a device of card {card} already, and {label} allows one slice per VM"
            ));
        }
        let mut before = self.units.iter().zip(&self.placed);
        before.find_map(|(other, placed)| conflict(unit, cap, other, &self.parents[*placed]))
    }

    /// What stands against each parent alone, for the part of the request that came last; `None` where nothing does.
    pub(super) fn obstacles(&self) -> (&'a Group, Vec<Option<String>>) {
        let depth = self.best.min(self.units.len().saturating_sub(1));
        let group = self.units[depth].group;
        let one = |(index, cap): (usize, &ParentCapacity<'_>)| {
            let alone = || self.crowded(depth, index);
            misfit(group, cap).or_else(|| self.nodes.obstacle(cap)).or_else(alone)
        };
        // A search that failed has nothing placed.
        (group, self.parents.iter().enumerate().map(one).collect())
    }

    /// How many parts have to be placed.
    pub(super) fn part_count(&self) -> usize {
        self.units.len()
    }

    /// The slices of what was placed.
    pub(super) fn choices(&self) -> Vec<Choice> {
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

/// Why a unit cannot go to `cap` if another one is at `there`.
///
/// # Source
/// OpenStack Placement, "Provider trees": `group_policy=isolate` parts the numbered groups; the unnumbered one may
/// share a provider with any of them.
fn conflict(
    unit: &Unit<'_>,
    cap: &ParentCapacity<'_>,
    other: &Unit<'_>,
    there: &ParentCapacity<'_>,
) -> Option<String> {
    let card = cap.assigned.parent.card();
    if there.assigned.parent.card() == card {
        if cap.one_per_vm() || there.one_per_vm() {
            return Some(format!(
                "card {card} already serves this VM, and {} allows one slice per VM",
                cap.assigned.mdev_type.label()
            ));
        }
        let size = |c: &ParentCapacity<'_>| c.assigned.mdev_type.facts.framebuffer_mib;
        if cap.assigned.parent.one_size_per_card() && size(cap) != size(there) {
            return Some(format!("card {card} holds one size of slices only"));
        }
    }
    let same_parent = there.assigned.parent.addr == cap.assigned.parent.addr;
    let (mine, theirs) = (&unit.group.suffix, &other.group.suffix);
    if mine.is_empty() || theirs.is_empty() {
        return None;
    }
    match (mine == theirs, same_parent) {
        (true, false) => Some(format!("group {mine} comes from one parent, and another one serves it")),
        (false, true) if unit.isolate => {
            Some("group_policy=isolate: another group has this parent".to_owned())
        }
        (true, true) | (false, _) => None,
    }
}

fn units_of(nth: usize, group: &Group, isolate: bool) -> Vec<Unit<'_>> {
    if group.suffix.is_empty() {
        (0..group.count).map(|_| Unit { group, count: 1, nth, isolate }).collect()
    } else {
        vec![Unit { group, count: group.count, nth, isolate }]
    }
}

/// Nodes of the VM's memory first, then the emptiest or fullest card; among equals, the lowest address.
fn best_first(parents: &[ParentCapacity<'_>], packing: Packing, nodes: Nodes<'_>) -> Vec<usize> {
    let mut cards: BTreeMap<ParentAddr, (u64, u64)> = BTreeMap::new();
    for cap in parents {
        let sum = cards.entry(cap.assigned.parent.card()).or_default();
        sum.0 += u64::from(cap.total.saturating_sub(cap.free));
        sum.1 += u64::from(cap.total);
    }
    let fill = |cap: &ParentCapacity<'_>| {
        let (taken, total) = cards.get(&cap.assigned.parent.card()).copied().unwrap_or_default();
        let fill = taken * 1_000_000 / total.max(1);
        match packing {
            Packing::Breadth => fill,
            Packing::Depth => u64::MAX - fill,
        }
    };
    let mut order: Vec<usize> = (0..parents.len()).collect();
    order.sort_by_cached_key(|i| {
        let cap = &parents[*i];
        (nodes.rank(cap), fill(cap), cap.assigned.parent.addr.clone())
    });
    order
}
