//! What is to become of claims whose device is gone: claims x what is observed.
//!
//! | seen | verdict |
//! |---|---|
//! | the device is there | `Keep` |
//! | its UUID is somewhere else, or is of another type | `Foreign` |
//! | its parent is not there | `Wait`, after the deadline `Lost` |
//! | its parent is there, its type or a place for it is not | `Lost` |
//! | else | `Create` |
//!
//! A verdict is of one moment: what is lost now is made when a later look finds it possible.

use std::collections::BTreeMap;

use crate::catalog::sense::Sense;
use crate::model::{Claim, ClaimId, HostScan, Mdev, MdevType, Parent, ParentAddr, TypeId};

/// See the head of the file. Reasons are for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is there.
    Keep,
    /// It can be made.
    Create,
    /// Its parent may still come.
    Wait(String),
    /// It cannot be made as things are.
    Lost(String),
    /// What has its UUID is not it, and is left alone.
    Foreign(String),
}

/// Judges claims in their order; places are given to earlier ones first. `overdue`: the deadline of a claim has passed.
pub fn judge<'a>(
    claims: impl IntoIterator<Item = &'a Claim>,
    scan: &HostScan,
    overdue: impl Fn(&Claim) -> bool,
) -> BTreeMap<ClaimId, Verdict> {
    let mut places: BTreeMap<(&ParentAddr, TypeId), u32> = BTreeMap::new();
    let mut one = |claim: &'a Claim| {
        if let Some(there) = found(claim, scan) {
            return there;
        }
        let Some(parent) = scan.parent(&claim.parent) else { return parent_away(claim, overdue(claim)) };
        let mdev_type = match type_now(claim, parent) {
            Ok(mdev_type) => mdev_type,
            Err(why) => return Verdict::Lost(why),
        };
        let free =
            places.entry((&claim.parent, mdev_type.id.clone())).or_insert(mdev_type.available_instances);
        if *free == 0 {
            let label = mdev_type.label();
            return Verdict::Lost(format!("parent {} has no room for another {label}", claim.parent));
        }
        *free -= 1;
        Verdict::Create
    };
    claims.into_iter().map(|claim| (claim.id, one(claim))).collect()
}

/// Whether the claim's device is in the kernel, whatever its type.
pub fn is_there(claim: &Claim, scan: &HostScan) -> bool {
    scan.mdevs_with(claim.uuid).any(|m| m.active && m.parent == claim.parent)
}

/// What has the claim's UUID already; a definition of its own is none.
fn found(claim: &Claim, scan: &HostScan) -> Option<Verdict> {
    let all: Vec<&Mdev> = scan.mdevs_with(claim.uuid).collect();
    let here = all.iter().find(|m| m.parent == claim.parent);
    let active = all.iter().find(|m| m.active);
    // mdevctl takes no second definition of a UUID, wherever it is.
    let in_the_way = active.or_else(|| all.first().filter(|_| here.is_none()))?;
    if in_the_way.parent != claim.parent {
        let what = if in_the_way.active { "a device" } else { "a definition" };
        let text = format!("{what} with its UUID is on {}; remove that one", in_the_way.parent);
        return Some(Verdict::Foreign(text));
    }
    let wanted = scan.parent(&claim.parent).and_then(|parent| type_now(claim, parent).ok());
    let wanted = wanted.map_or(&claim.mdev_type, |t| &t.id);
    match &in_the_way.type_id {
        Some(other) if other != wanted => {
            let text = format!("the device with its UUID is a {other}, not a {wanted}; remove that one");
            Some(Verdict::Foreign(text))
        }
        Some(_) | None => Some(Verdict::Keep),
    }
}

fn parent_away(claim: &Claim, overdue: bool) -> Verdict {
    let parent = &claim.parent;
    if overdue {
        let text = format!("parent {parent} did not come in time; it is made again when the parent is there");
        return Verdict::Lost(text);
    }
    Verdict::Wait(format!("parent {parent} is not there yet"))
}

/// The claim's type as its parent offers it now.
fn type_now<'a>(claim: &Claim, parent: &'a Parent) -> Result<&'a MdevType, String> {
    let Claim { mdev_type: id, identity, .. } = claim;
    let gone = || format!("parent {} does not offer {} any more", parent.addr, claim.type_name);
    let Some(identity) = identity else { return parent.mdev_type(id).ok_or_else(gone) };
    match Sense::look(identity, id, parent) {
        Sense::Same(t) | Sense::Renumbered(t) | Sense::Renamed(t) => Ok(t),
        Sense::Drifted(t) => {
            let (now, label) = (t.label(), &claim.type_name);
            Err(format!("{id} is {now} now on parent {}, it was {label}", parent.addr))
        }
        Sense::Gone => Err(gone()),
    }
}
