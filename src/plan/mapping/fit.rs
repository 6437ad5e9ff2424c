//! Which of a parent's types a configured key means.
//!
//! In this order: the type with that very id; the type with the same number behind another prefix, if another parent
//! of the same kind shows that id with the same vendor name; the type with that vendor name.
//!
//! # Source
//! Linux `drivers/vfio/mdev/mdev_sysfs.c`: the kernel puts the driver of the parent before the number, so VFs of one
//! card that are bound to different drivers offer `nvidia-575` and `vfio-pci-575` for one type.

use std::collections::{HashMap, HashSet};

use crate::model::{Framework, HostScan, MdevType, Parent, TypeId};

/// What a key means on one parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit<'a> {
    /// Nothing.
    None,
    /// This type.
    One(&'a MdevType),
    /// These, and maybe more, equally well.
    Several(&'a MdevType, &'a MdevType),
}

/// Parents among which a number means one type.
type Kind = (Option<u16>, Option<Framework>);

/// Everything the parents of a host offer, by id and by name.
#[derive(Debug)]
pub(super) struct Offers<'a> {
    names: HashSet<&'a str>,
    by_id: HashMap<&'a str, HashSet<(Kind, Option<&'a str>)>>,
}

impl<'a> Offers<'a> {
    /// Looks through a scan once.
    pub(super) fn of(scan: &'a HostScan) -> Self {
        let mut offers = Self { names: HashSet::new(), by_id: HashMap::new() };
        for parent in &scan.parents {
            for offered in &parent.types {
                let name = name(offered);
                offers.names.extend(name);
                offers.by_id.entry(offered.id.as_str()).or_default().insert((kind(parent), name));
            }
        }
        offers
    }

    /// Whether any parent offers a type with this id or name.
    pub(super) fn anywhere(&self, key: &str) -> bool {
        self.names.contains(key) || self.by_id.contains_key(key)
    }

    /// What `key` means on `parent`.
    pub(super) fn fit<'p>(&self, key: &str, parent: &'p Parent) -> Fit<'p> {
        if let Some(same) = parent.types.iter().find(|t| t.id.as_str() == key) {
            return Fit::One(same);
        }
        match only(self.renumbered(key, parent)) {
            Fit::None => only(parent.types.iter().filter(|t| name(t) == Some(key))),
            found @ (Fit::One(_) | Fit::Several(..)) => found,
        }
    }

    /// Types with the number of `key` and the name that other parents show for it.
    fn renumbered<'p>(&self, key: &str, parent: &'p Parent) -> impl Iterator<Item = &'p MdevType> {
        let number = number(key);
        let seen = self.by_id.get(key);
        parent.types.iter().filter(move |offered| {
            let like = (kind(parent), name(offered));
            number.is_some()
                && number == number_of(&offered.id)
                && like.1.is_some()
                && seen.is_some_and(|s| s.contains(&like))
        })
    }

    /// A type with the number of `key` that may or may not be it: nothing shows the names of both.
    pub(super) fn same_number<'p>(&self, key: &str, parent: &'p Parent) -> Option<&'p MdevType> {
        let number = number(key).filter(|_| parent.vendor_id.is_some())?;
        let named_elsewhere = self.by_id.get(key).is_some_and(|seen| {
            seen.iter().any(|(kind_of, name)| *kind_of == kind(parent) && name.is_some())
        });
        parent
            .types
            .iter()
            .find(|t| number_of(&t.id) == Some(number) && !(named_elsewhere && name(t).is_some()))
    }
}

fn kind(parent: &Parent) -> Kind {
    (parent.vendor_id, parent.framework)
}

/// Scans trim names already; a blank one is none.
fn name(offered: &MdevType) -> Option<&str> {
    offered.name.as_deref().map(str::trim).filter(|name| !name.is_empty())
}

fn number(key: &str) -> Option<u32> {
    number_of(&key.parse::<TypeId>().ok()?)
}

fn number_of(id: &TypeId) -> Option<u32> {
    id.split().map(|(_, number)| number)
}

fn only<'p>(mut found: impl Iterator<Item = &'p MdevType>) -> Fit<'p> {
    match (found.next(), found.next()) {
        (None, _) => Fit::None,
        (Some(one), None) => Fit::One(one),
        (Some(one), Some(other)) => Fit::Several(one, other),
    }
}
