//! How much each parent has, holds and can still give: hardware x configuration x books.
//!
//! 1. `total` = existing slices of the configured type, ours and foreign, + what can still be made; the card and the
//!    operator's cap trim only what can still be made, never what exists.
//! 2. A claim whose device does not exist yet (booked, or lost) keeps its place: it lowers `free`, never `total`.
//! 3. What the books do not know is foreign: counted, reserved, never given out.
//! 4. A parent that lacks a device of a claim gives out nothing new until it is there again: everything is reserved, and the
//!    record stays.

mod parent;

use std::collections::{BTreeMap, BTreeSet};

use super::mapping::{Assigned, Mapping};
use crate::model::{Claim, FaultKind, HostScan, Mdev, MdevUuid, OwnDevice, ParentAddr, TypeId};

pub use parent::{ParentCapacity, awaited};

/// The books, as far as capacity needs them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Booked<'a> {
    /// All claims.
    pub claims: &'a [Claim],
    /// All devices that we made.
    pub own: &'a [OwnDevice],
}

/// Works out every parent that has a type, in address order.
pub fn capacity<'a>(mapping: &Mapping<'a>, scan: &HostScan, booked: Booked<'_>) -> Vec<ParentCapacity<'a>> {
    let seen = Seen::new(scan, booked);
    let room = Room::trimmed(mapping, scan, &seen);
    let one = |assigned: &Assigned<'a>| {
        let mut cap = one_parent(*assigned, &seen, &room);
        if let Some(why) = mapping.drifted.get(&assigned.parent.addr) {
            cap.quarantine(FaultKind::TraitDrift, why.clone());
        }
        cap
    };
    mapping.assigned.values().map(one).collect()
}

fn one_parent<'a>(assigned: Assigned<'a>, seen: &Seen<'_>, room: &Room) -> ParentCapacity<'a> {
    let addr = &assigned.parent.addr;
    let existing = seen.existing(addr, &assigned.mdev_type.id);
    let foreign = count(existing.iter().filter(|m| !seen.is_own(m)));
    let idle: Vec<MdevUuid> =
        existing.iter().filter(|m| seen.is_own(m) && !seen.is_claimed(m)).map(|m| m.uuid).collect();
    let available = room.available.get(addr).copied().unwrap_or(0);
    let gone = count(seen.claims_on(addr).filter(|c| c.is_gone()));
    let total = count(existing.iter()) + available.max(gone);
    let reserved = (assigned.rule.reserved + foreign).min(total);
    let used = count(seen.claims_on(addr).filter(|c| c.mdev_type == assigned.mdev_type.id));
    let mut cap = ParentCapacity {
        assigned,
        numa_node: seen.scan.numa_node_of(assigned.parent),
        traits: assigned.rule.traits.clone(),
        total,
        reserved,
        max_unit: total,
        used,
        foreign,
        idle,
        free: 0,
        reason: String::new(),
        quarantine: None,
        one_per_vm_reason: parent::one_per_vm(assigned),
    };
    if cap.one_per_vm() {
        cap.max_unit = total.min(1);
    }
    let open = (count(cap.idle.iter()) + available).saturating_sub(seen.pending(addr));
    cap.free = open.min(total.saturating_sub(reserved).saturating_sub(used));
    cap.reason = room.other_size_booked(assigned).unwrap_or_default();
    if !cap.reason.is_empty() {
        cap.free = count(cap.idle.iter()).min(cap.free);
    }
    if gone > 0 {
        (cap.reserved, cap.free) = (total, 0);
        cap.reason = format!("{gone} devices of instances are missing here; nothing new until they are back");
    }
    if cap.free == 0 && cap.reason.is_empty() {
        cap.reason = why_full(&cap, seen, room);
    }
    cap
}

fn count<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

fn why_full(cap: &ParentCapacity<'_>, seen: &Seen<'_>, room: &Room) -> String {
    let Assigned { parent, mdev_type, .. } = cap.assigned;
    if let Some(limit) = room.limit.get(&parent.addr) {
        return limit.clone();
    }
    let card = parent.card();
    if cap.total > 0 {
        let reserve = if cap.reserved > 0 {
            format!(", {} reserved ({} foreign)", cap.reserved, cap.foreign)
        } else {
            String::new()
        };
        return format!("full: {} of {} {} in use{reserve}", cap.used, cap.total, mdev_type.label());
    }
    let others = seen.other_types_on_card(cap.assigned);
    if !others.is_empty() {
        return format!("{others} exist on card {card}, so {} cannot be made", mdev_type.label());
    }
    match existing_on_card(&card, &cap.assigned, seen) {
        0 => format!("the driver says that no {} can be made", mdev_type.label()),
        there => format!("card {card} is full: it carries {there} {}", mdev_type.label()),
    }
}

/// The scan indexed once: a pass over 384 VFs must not be quadratic.
struct Seen<'a> {
    scan: &'a HostScan,
    by_parent: BTreeMap<&'a ParentAddr, Vec<&'a Mdev>>,
    own: BTreeSet<(MdevUuid, &'a ParentAddr)>,
    claims: BTreeMap<&'a ParentAddr, Vec<&'a Claim>>,
    active: BTreeSet<(MdevUuid, &'a ParentAddr)>,
}

impl<'a> Seen<'a> {
    fn new(scan: &'a HostScan, booked: Booked<'a>) -> Self {
        let mut seen = Self {
            scan,
            by_parent: BTreeMap::new(),
            own: booked.own.iter().map(|d| (d.uuid, &d.parent)).collect(),
            claims: BTreeMap::new(),
            active: BTreeSet::new(),
        };
        for mdev in scan.mdevs.iter().filter(|m| m.active) {
            seen.by_parent.entry(&mdev.parent).or_default().push(mdev);
            seen.active.insert((mdev.uuid, &mdev.parent));
        }
        for claim in booked.claims {
            seen.claims.entry(&claim.parent).or_default().push(claim);
        }
        seen
    }

    fn on(&self, addr: &ParentAddr) -> &[&'a Mdev] {
        self.by_parent.get(addr).map_or(&[], Vec::as_slice)
    }

    fn existing(&self, addr: &ParentAddr, type_id: &TypeId) -> Vec<&'a Mdev> {
        self.on(addr).iter().filter(|m| m.type_id.as_ref() == Some(type_id)).copied().collect()
    }

    fn is_own(&self, mdev: &Mdev) -> bool {
        self.own.contains(&(mdev.uuid, &mdev.parent))
    }

    fn claims_on(&self, addr: &ParentAddr) -> impl Iterator<Item = &'a Claim> {
        self.claims.get(addr).into_iter().flatten().copied()
    }

    fn is_claimed(&self, mdev: &Mdev) -> bool {
        self.claims_on(&mdev.parent).any(|c| c.uuid == mdev.uuid)
    }

    /// Claims whose device does not exist: booked and not made yet, or lost.
    fn pending_claims(&self, addr: &ParentAddr) -> impl Iterator<Item = &'a Claim> {
        self.claims_on(addr).filter(|c| !self.active.contains(&(c.uuid, &c.parent)))
    }

    fn pending(&self, addr: &ParentAddr) -> u32 {
        count(self.pending_claims(addr))
    }

    fn framebuffer(&self, addr: &ParentAddr, type_id: &TypeId) -> Option<u32> {
        self.scan.parent(addr)?.mdev_type(type_id)?.facts.framebuffer_mib
    }

    fn other_types_on_card(&self, assigned: Assigned<'_>) -> String {
        let card = assigned.parent.card();
        let mut labels = BTreeSet::new();
        for parent in self.scan.parents.iter().filter(|p| p.card() == card) {
            for mdev in self.on(&parent.addr) {
                let Some(id) = mdev.type_id.as_ref().filter(|id| **id != assigned.mdev_type.id) else {
                    continue;
                };
                let seen = parent.mdev_type(id);
                let size = seen
                    .and_then(|t| t.facts.framebuffer_mib)
                    .map_or_else(String::new, |mib| format!(" ({mib} MiB)"));
                labels.insert(format!("{}{size}", seen.map_or(id.as_str(), |t| t.label())));
            }
        }
        labels.into_iter().collect::<Vec<_>>().join(", ")
    }
}

/// What can still be made on each parent, after the card's and the operator's limits.
struct Room {
    available: BTreeMap<ParentAddr, u32>,
    limit: BTreeMap<ParentAddr, String>,
    /// Framebuffer sizes of claims on each card whose devices are not made yet.
    booked_sizes: BTreeMap<ParentAddr, BTreeSet<u32>>,
}

/// Slices of one size on one card; types without a known size are counted by id.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Size<'a> {
    Framebuffer(u32),
    Type(&'a TypeId),
}

impl<'a> Size<'a> {
    fn of(assigned: &Assigned<'a>) -> Self {
        let facts = &assigned.mdev_type.facts;
        facts.framebuffer_mib.map_or(Self::Type(&assigned.mdev_type.id), Self::Framebuffer)
    }
}

impl Room {
    fn trimmed(mapping: &Mapping<'_>, scan: &HostScan, seen: &Seen<'_>) -> Self {
        let mut room =
            Self { available: BTreeMap::new(), limit: BTreeMap::new(), booked_sizes: BTreeMap::new() };
        for (addr, assigned) in &mapping.assigned {
            room.available.insert((*addr).clone(), assigned.mdev_type.available_instances);
        }
        room.note_booked_sizes(scan, seen);
        // Parents with booked places first, so that trimming never takes a place that is promised.
        let mut order: Vec<Assigned<'_>> = mapping.assigned.values().copied().collect();
        order.sort_by_key(|a| (seen.pending(&a.parent.addr) == 0, a.parent.addr.clone()));
        room.trim_by_card(&order, seen);
        room.trim_by_cap(&order, seen);
        room
    }

    fn note_booked_sizes(&mut self, scan: &HostScan, seen: &Seen<'_>) {
        for parent in &scan.parents {
            for claim in seen.pending_claims(&parent.addr) {
                if let Some(size) = seen.framebuffer(&parent.addr, &claim.mdev_type) {
                    self.booked_sizes.entry(parent.card()).or_default().insert(size);
                }
            }
        }
    }

    /// 16 VFs that can hold four slices of 4 GiB make four, not sixteen.
    fn trim_by_card(&mut self, order: &[Assigned<'_>], seen: &Seen<'_>) {
        let mut left: BTreeMap<(ParentAddr, Size<'_>), u32> = BTreeMap::new();
        for assigned in order.iter().filter(|a| a.parent.physical_function.is_some()) {
            let Some(max) = assigned.mdev_type.facts.max_instances else { continue };
            let card = assigned.parent.card();
            let budget = left
                .entry((card.clone(), Size::of(assigned)))
                .or_insert_with(|| max.saturating_sub(existing_on_card(&card, assigned, seen)));
            let text = format!("card {card} holds at most {max} {}", assigned.mdev_type.label());
            self.take(&assigned.parent.addr, budget, text);
        }
    }

    /// The operator's `max_instances` counts over all parents of the type.
    fn trim_by_cap(&mut self, order: &[Assigned<'_>], seen: &Seen<'_>) {
        let mut left: BTreeMap<&str, u32> = BTreeMap::new();
        for assigned in order {
            let Some(max) = assigned.rule.max_instances else { continue };
            let existing = || {
                order
                    .iter()
                    .filter(|a| a.rule.key == assigned.rule.key)
                    .map(|a| count(seen.existing(&a.parent.addr, &a.mdev_type.id).iter()))
                    .sum::<u32>()
            };
            let budget = left.entry(&assigned.rule.key).or_insert_with(|| max.saturating_sub(existing()));
            let text = format!("max_instances = {max} of [mdev.{:?}] is reached", assigned.rule.key);
            self.take(&assigned.parent.addr, budget, text);
        }
    }

    fn take(&mut self, addr: &ParentAddr, budget: &mut u32, text: String) {
        let Some(available) = self.available.get_mut(addr) else { return };
        if *available > *budget {
            *available = *budget;
            self.limit.insert(addr.clone(), text);
        }
        *budget -= *available;
    }

    /// A card that holds one size only is bound by a claim before the driver knows of it.
    fn other_size_booked(&self, assigned: Assigned<'_>) -> Option<String> {
        let size =
            assigned.mdev_type.facts.framebuffer_mib.filter(|_| assigned.parent.one_size_per_card())?;
        let card = assigned.parent.card();
        let other = self.booked_sizes.get(&card)?.iter().find(|s| **s != size)?;
        Some(format!(
            "card {card} is bound to slices of {other} MiB by a claim, {} has {size} MiB",
            assigned.mdev_type.label()
        ))
    }
}

fn existing_on_card(card: &ParentAddr, assigned: &Assigned<'_>, seen: &Seen<'_>) -> u32 {
    let same_size = |addr: &ParentAddr, id: &TypeId| match assigned.mdev_type.facts.framebuffer_mib {
        Some(size) => seen.framebuffer(addr, id) == Some(size),
        None => *id == assigned.mdev_type.id,
    };
    let functions = seen.scan.parents.iter().filter(|p| p.card() == *card);
    functions
        .flat_map(|p| seen.on(&p.addr).iter().map(move |m| (&p.addr, m)))
        .filter(|(addr, m)| m.type_id.as_ref().is_some_and(|id| same_size(addr, id)))
        .count()
        .try_into()
        .unwrap_or(u32::MAX)
}
