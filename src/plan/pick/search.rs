//! All parts of a request placed together: depth first, best parents first, bounded.

use std::collections::BTreeMap;

use crate::config::Packing;
use crate::model::{DeviceApi, Group, ParentAddr, Request};
use crate::plan::capacity::ParentCapacity;

use super::fit::misfit;
use super::numa::Nodes;
use super::obstacle::{Obstacle, conflict};
use super::{Choice, Wishes, choice};

/// Slices that have to come from one parent together.
pub(super) struct Unit<'a> {
    pub(super) group: &'a Group,
    pub(super) count: u32,
    /// Index of the group, and so of its candidates.
    nth: usize,
    /// It shares no parent with another numbered group.
    pub(super) isolate: bool,
}

/// A parent, and what is asked of it over and over.
pub(super) struct Place<'a> {
    pub(super) cap: &'a ParentCapacity<'a>,
    pub(super) index: usize,
    /// The same number for the same card.
    pub(super) card: usize,
    pub(super) one_per_vm: bool,
    /// The VM's XML names a device of this card.
    named: bool,
}

/// One search over the parents of a host.
pub(super) struct Search<'a> {
    pub(super) request: &'a Request,
    pub(super) parents: &'a [ParentCapacity<'a>],
    pub(super) nodes: Nodes<'a>,
    units: Vec<Unit<'a>>,
    places: Vec<Place<'a>>,
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
            cap.free > 0 && misfit(group, cap).is_none() && nodes.obstacle(cap).is_none()
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
            units: units.collect(),
            places: places(parents, wishes),
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

    /// Where two units ask for the same, trying them in every order would find nothing new.
    fn first_position(&self, depth: usize) -> usize {
        let Some(before) = depth.checked_sub(1) else { return 0 };
        let (unit, other) = (&self.units[depth], &self.units[before]);
        let alike =
            unit.nth == other.nth || (unit.count == other.count && same_wish(unit.group, other.group));
        if alike { self.positions[before] } else { 0 }
    }

    /// Why this unit cannot go to this parent, which may serve its group, beside what is placed so far.
    fn crowded(&self, depth: usize, index: usize) -> Option<Obstacle<'a>> {
        let (unit, place) = (&self.units[depth], &self.places[index]);
        let before = || self.units.iter().zip(&self.placed);
        let taken: u32 = before().filter(|(_, p)| **p == index).map(|(u, _)| u.count).sum();
        if taken + unit.count > place.cap.free {
            return Some(Obstacle::Full);
        }
        if place.one_per_vm && unit.count > 1 {
            return Some(Obstacle::OnePerVm);
        }
        if place.one_per_vm && place.named {
            return Some(Obstacle::CardIsNamed);
        }
        before().find_map(|(other, placed)| conflict((unit, place), (other, &self.places[*placed])))
    }

    /// What stands against each parent alone, for the part of the request that came last; `None` where nothing does.
    pub(super) fn obstacles(&self) -> (&'a Group, Vec<Option<String>>) {
        let depth = self.best.min(self.units.len().saturating_sub(1));
        let group = self.units[depth].group;
        let one = |(index, cap): (usize, &ParentCapacity<'_>)| {
            // A search that failed has nothing placed.
            let alone = || self.crowded(depth, index).map(|obstacle| obstacle.text(cap));
            misfit(group, cap).or_else(|| self.nodes.obstacle(cap)).or_else(alone)
        };
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

fn units_of(nth: usize, group: &Group, isolate: bool) -> Vec<Unit<'_>> {
    if group.suffix.is_empty() {
        (0..group.count).map(|_| Unit { group, count: 1, nth, isolate }).collect()
    } else {
        vec![Unit { group, count: group.count, nth, isolate }]
    }
}

/// Whether two numbered groups can be exchanged for one another.
fn same_wish(a: &Group, b: &Group) -> bool {
    let numbered = !a.suffix.is_empty() && !b.suffix.is_empty() && a.suffix != b.suffix;
    numbered
        && (&a.class, &a.required, &a.forbidden, &a.any_of)
            == (&b.class, &b.required, &b.forbidden, &b.any_of)
}

fn places<'a>(parents: &'a [ParentCapacity<'a>], wishes: &Wishes) -> Vec<Place<'a>> {
    let mut cards: BTreeMap<ParentAddr, usize> = BTreeMap::new();
    let mut place = |(index, cap): (usize, &'a ParentCapacity<'a>)| {
        let card = cap.assigned.parent.card();
        // A second AP matrix is refused by name where the XML is written.
        let named = cap.assigned.mdev_type.device_api != DeviceApi::VfioAp && wishes.cards.contains(&card);
        let next = cards.len();
        let card = *cards.entry(card).or_insert(next);
        Place { cap, index, card, one_per_vm: cap.one_per_vm(), named }
    };
    parents.iter().enumerate().map(&mut place).collect()
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
