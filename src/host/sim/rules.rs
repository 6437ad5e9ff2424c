//! The vendors' rules: what a card still offers, given the devices that exist on it. Pure.
//!
//! 1. One size per card: while an NVIDIA card carries a slice, only types of its framebuffer size stay.
//! 2. The card, not the function, has the limit: `max_instance` of the type counts over all functions of the card.
//! 3. A VF makes one slice; used, it offers nothing.
//! 4. Any other parent is a plain pool: a slice takes its share of the card from every type.
//!
//! # Source
//! NVIDIA vGPU user guide ("Homogeneous and heterogeneous vGPUs", `available_instances`), public listings of A2 and A40
//! before and after a create; Linux `samples/vfio-mdev/mtty.c` (one pool of ports for both types).

use std::collections::BTreeSet;

use crate::model::{Mdev, MdevType, Parent, ParentAddr, TypeId};

/// Rewrites `available_instances` of all functions of one card.
///
/// `file` are the devices that existed when the numbers in `card` were read, `now` those that exist now; only active
/// devices on these functions count. For NVIDIA's types with a stated `max_instance` the numbers are worked out anew.
pub(super) fn offer(card: &mut [Parent], file: &[Mdev], now: &[Mdev]) {
    let file = on_card(card, file);
    let now = on_card(card, now);
    let sizes: BTreeSet<Size> = now.iter().filter_map(|d| size_of_device(card, d)).collect();
    let vf_count = card.iter().filter(|p| p.physical_function.is_some()).count();
    for parent in card {
        let used = now.iter().any(|d| d.parent == parent.addr);
        let pool = (!parent.one_size_per_card()).then(|| Pool::of(parent, &file, &now));
        for mdev_type in &mut parent.types {
            let untouched_zero = mdev_type.available_instances == 0 && file.is_empty();
            mdev_type.available_instances = match &pool {
                Some(pool) => pool.left(mdev_type),
                None if untouched_zero || sizes.iter().any(|s| *s != Size::of(mdev_type)) => 0,
                None if parent.physical_function.is_some() => {
                    let limit = mdev_type.facts.max_instances.unwrap_or(count(vf_count));
                    u32::from(!used && limit > count(now.len()))
                }
                None => {
                    let same = file.iter().filter(|d| d.type_id.as_ref() == Some(&mdev_type.id)).count();
                    let in_file = mdev_type.available_instances + count(same);
                    mdev_type.facts.max_instances.unwrap_or(in_file).saturating_sub(count(now.len()))
                }
            };
        }
    }
}

/// What must be equal on one card: the framebuffer, or the type itself where the size is not known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Size {
    Mib(u32),
    Type(TypeId),
}

impl Size {
    fn of(mdev_type: &MdevType) -> Self {
        mdev_type.facts.framebuffer_mib.map_or_else(|| Self::Type(mdev_type.id.clone()), Self::Mib)
    }
}

fn size_of_device(card: &[Parent], device: &Mdev) -> Option<Size> {
    let parent = card.iter().find(|p| p.addr == device.parent)?;
    let id = device.type_id.as_ref()?;
    Some(parent.mdev_type(id).map_or_else(|| Size::Type(id.clone()), Size::of))
}

fn on_card<'a>(card: &[Parent], devices: &'a [Mdev]) -> Vec<&'a Mdev> {
    let addrs: BTreeSet<&ParentAddr> = card.iter().map(|p| &p.addr).collect();
    devices.iter().filter(|d| d.active && addrs.contains(&d.parent)).collect()
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// How much of a plain pool was taken since its numbers were read, as a share of the whole; negative if given back.
struct Pool {
    in_file: Vec<TypeId>,
    taken: f64,
}

impl Pool {
    fn of(parent: &Parent, file: &[&Mdev], now: &[&Mdev]) -> Self {
        let types_of = |devices: &[&Mdev]| -> Vec<TypeId> {
            devices.iter().filter(|d| d.parent == parent.addr).filter_map(|d| d.type_id.clone()).collect()
        };
        let mut pool = Self { in_file: types_of(file), taken: 0.0 };
        let share = |ids: &[TypeId]| -> f64 {
            let offered = ids.iter().filter_map(|id| parent.mdev_type(id));
            offered.map(|t| 1.0 / f64::from(pool.whole(t).max(1))).sum()
        };
        pool.taken = share(&types_of(now)) - share(&pool.in_file);
        pool
    }

    /// How many of the type the empty parent makes.
    fn whole(&self, mdev_type: &MdevType) -> u32 {
        mdev_type.available_instances + count(self.in_file.iter().filter(|id| **id == mdev_type.id).count())
    }

    fn left(&self, mdev_type: &MdevType) -> u32 {
        let whole = f64::from(self.whole(mdev_type));
        let left = f64::from(mdev_type.available_instances) - whole * self.taken;
        // Shares such as 1/24 are not exact; the sum must not lose a whole instance to that.
        (left + 1e-6).floor().clamp(0.0, whole) as u32
    }
}

#[cfg(test)]
#[path = "rules_test.rs"]
mod tests;
