//! Changes of the books, and what is legal among them.

use super::error::{Missing, StoreError};
use super::tables::Turn;
use crate::model::{
    Claim, ClaimEvent, ClaimId, ClaimRole, ClaimState, Instance, InstanceUuid, MdevUuid, Move, OwnDevice,
    ParentAddr, Usec,
};

/// One change of the books, applied in the transaction of the journal line that it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A claim moves, as the claim table allows.
    Claim {
        /// Which claim.
        claim: ClaimId,
        /// What happened to it.
        event: ClaimEvent,
    },
    /// A claim is something else to its instance.
    Role {
        /// Which claim.
        claim: ClaimId,
        /// What it is from now on.
        role: ClaimRole,
    },
    /// A releasing claim is over; its device is idle then, or forgotten by a later change.
    ClaimGone(ClaimId),
    /// A device is ours, or is ours with another type id than before; the claim that holds it follows.
    DeviceRecorded(OwnDevice),
    /// A device that no claim holds is gone, or not ours any more. One that is not there is no error.
    DeviceForgotten {
        /// The device.
        uuid: MdevUuid,
        /// Where it was.
        parent: ParentAddr,
    },
    /// An instance has another flavor.
    Flavor {
        /// Which.
        instance: InstanceUuid,
        /// What it has from now on.
        flavor: Option<String>,
    },
    /// An instance is under way, and this far.
    Moving(Move),
    /// It is not any more. One that was not is no error.
    MoveOver(InstanceUuid),
    /// An instance without claims leaves the books. One that is not there is no error.
    InstanceGone(InstanceUuid),
}

/// Applies changes in their order.
///
/// # Errors
/// `NotFound`, `IllegalMove`, `ClaimStands`, `DeviceTaken`; `Constraint` for an instance that has claims.
pub(super) fn apply(turn: &mut Turn<'_>, changes: Vec<Change>, now: Usec) -> Result<(), StoreError> {
    changes.into_iter().try_for_each(|change| match change {
        Change::Claim { claim, event } => move_claim(turn, claim, event),
        Change::Role { claim, role } => {
            let claim = the_claim(turn, claim)?;
            turn.update_claim(Claim { role, ..claim })
        }
        Change::Flavor { instance, flavor } => {
            let missing = || StoreError::NotFound(Missing::Instance(instance));
            let instance = turn.books().instance(instance).cloned().ok_or_else(missing)?;
            turn.update_instance(Instance { flavor, ..instance })
        }
        Change::Moving(moving) => turn.upsert_move(moving),
        Change::MoveOver(instance) => turn.delete_move(instance),
        Change::ClaimGone(claim) => end_claim(turn, claim),
        Change::DeviceRecorded(device) => record(turn, device, now),
        Change::DeviceForgotten { uuid, parent } => {
            check_free(turn, uuid, &parent)?;
            turn.delete_device(uuid, &parent)
        }
        Change::InstanceGone(uuid) => turn.delete_instance(uuid),
    })
}

/// Books a claim on a free device.
pub(super) fn book(turn: &mut Turn<'_>, claim: Claim) -> Result<(), StoreError> {
    check_free(turn, claim.uuid, &claim.parent)?;
    turn.insert_claim(claim)
}

/// The instance whose books a change touches; idle devices belong to none.
pub(super) fn instance_of(turn: &Turn<'_>, change: &Change) -> Result<Option<InstanceUuid>, StoreError> {
    match change {
        Change::Claim { claim, .. } | Change::Role { claim, .. } | Change::ClaimGone(claim) => {
            Ok(Some(the_claim(turn, *claim)?.instance))
        }
        Change::InstanceGone(uuid) | Change::MoveOver(uuid) => Ok(Some(*uuid)),
        Change::Flavor { instance, .. } => Ok(Some(*instance)),
        Change::Moving(moving) => Ok(Some(moving.instance)),
        Change::DeviceRecorded(_) | Change::DeviceForgotten { .. } => Ok(None),
    }
}

fn the_claim(turn: &Turn<'_>, id: ClaimId) -> Result<Claim, StoreError> {
    turn.books().claim(id).cloned().ok_or(StoreError::NotFound(Missing::Claim(id)))
}

fn move_claim(turn: &mut Turn<'_>, id: ClaimId, event: ClaimEvent) -> Result<(), StoreError> {
    let claim = the_claim(turn, id)?.after(event);
    turn.update_claim(claim.map_err(|err| StoreError::IllegalMove { claim: id, err })?)
}

fn record(turn: &mut Turn<'_>, device: OwnDevice, now: Usec) -> Result<(), StoreError> {
    let holder = turn.books().holder(device.uuid, &device.parent).cloned();
    if let Some(claim) = holder.filter(|claim| claim.mdev_type != device.type_id) {
        turn.update_claim(Claim { mdev_type: device.type_id.clone(), ..claim })?;
    }
    turn.upsert_device(device, now)
}

fn end_claim(turn: &mut Turn<'_>, id: ClaimId) -> Result<(), StoreError> {
    let state = the_claim(turn, id)?.state;
    if state != ClaimState::Releasing {
        return Err(StoreError::ClaimStands { claim: id, state });
    }
    turn.delete_claim(id)
}

fn check_free(turn: &Turn<'_>, uuid: MdevUuid, parent: &ParentAddr) -> Result<(), StoreError> {
    match turn.books().holder(uuid, parent) {
        None => Ok(()),
        Some(holder) => Err(StoreError::DeviceTaken { uuid, parent: parent.clone(), claim: holder.id }),
    }
}
