//! Which parent of the target serves each slice of a VM that wants to move here, by what stays of its type on any host.
//!
//! 1. Ids are never compared: one id is two types on two hosts, and one type has two ids.
//! 2. A target parent serves the identity of its own type, and those of the traits that resolve to it there.
//! 3. A refusal names both sides.

use std::collections::BTreeMap;

use super::capacity::ParentCapacity;
use super::pick::ParentReason;
use crate::catalog::resolve::Resolution;
use crate::model::{MdevUuid, ParentAddr, TypeId, TypeIdentity};

/// A slice as its VM has it on the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moving {
    /// The device there.
    pub uuid: MdevUuid,
    /// What it is, on any host.
    pub identity: TypeIdentity,
}

/// Where a slice goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landing {
    /// The device on the source.
    pub source: MdevUuid,
    /// The parent here.
    pub parent: ParentAddr,
    /// The local id of the same type.
    pub type_id: TypeId,
}

/// The host does not have what the VM needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} of the source cannot be served here", .identity)]
pub struct Incompatible {
    /// What the source has.
    pub identity: Box<TypeIdentity>,
    /// What each parent here serves instead, or why it cannot.
    pub reasons: Vec<ParentReason>,
}

/// Finds a parent for each slice; one with room for it, each VM's slices of one card only where the vendor allows them.
///
/// # Errors
/// The first slice that no parent serves.
pub fn landings(
    moving: &[Moving],
    parents: &[ParentCapacity<'_>],
    resolution: &Resolution,
) -> Result<Vec<Landing>, Incompatible> {
    let mut taken: BTreeMap<&ParentAddr, u32> = BTreeMap::new();
    let mut found = Vec::new();
    for one in moving {
        let fits =
            |cap: &&ParentCapacity<'_>| obstacle(one, cap, &found, &taken, parents, resolution).is_none();
        let Some(cap) = parents.iter().find(fits) else {
            let reason = |cap: &ParentCapacity<'_>| ParentReason {
                parent: cap.assigned.parent.addr.clone(),
                reason: obstacle(one, cap, &found, &taken, parents, resolution).unwrap_or_default(),
            };
            let reasons = parents.iter().map(reason).collect();
            return Err(Incompatible { identity: Box::new(one.identity.clone()), reasons });
        };
        let parent = &cap.assigned.parent.addr;
        *taken.entry(parent).or_default() += 1;
        found.push(Landing {
            source: one.uuid,
            parent: parent.clone(),
            type_id: cap.assigned.mdev_type.id.clone(),
        });
    }
    Ok(found)
}

fn obstacle(
    moving: &Moving,
    cap: &ParentCapacity<'_>,
    found: &[Landing],
    taken: &BTreeMap<&ParentAddr, u32>,
    parents: &[ParentCapacity<'_>],
    resolution: &Resolution,
) -> Option<String> {
    let (parent, mdev_type) = (cap.assigned.parent, cap.assigned.mdev_type);
    if let Some((_, why)) = &cap.quarantine {
        return Some(why.clone());
    }
    if !serves(&moving.identity, cap, resolution) {
        return Some(format!("serves {}", TypeIdentity::of(parent, mdev_type)));
    }
    if taken.get(&parent.addr).copied().unwrap_or(0) >= cap.free {
        return Some(if cap.free == 0 { cap.reason.clone() } else { format!("only {} free", cap.free) });
    }
    let card_of = |addr: &ParentAddr| parents.iter().find(|p| p.assigned.parent.addr == *addr);
    let shares =
        found.iter().filter_map(|l| card_of(&l.parent)).any(|p| p.assigned.parent.card() == parent.card());
    let why = cap.one_per_vm_reason.as_ref().filter(|_| shares)?;
    Some(format!("card {} already serves this VM, one slice per VM: {why}", parent.card()))
}

fn serves(identity: &TypeIdentity, cap: &ParentCapacity<'_>, resolution: &Resolution) -> bool {
    let (parent, mdev_type) = (cap.assigned.parent, cap.assigned.mdev_type);
    let bound = |resolved: &crate::catalog::resolve::Resolved| {
        resolved.identity.as_ref() == Some(identity)
            && resolved.local.get(&parent.addr) == Some(&mdev_type.id)
    };
    identity.fits(parent, mdev_type) || resolution.values().any(bound)
}
