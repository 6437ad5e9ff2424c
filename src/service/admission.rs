//! Which operation an instance may begin: one table over owner, move and claims.

use crate::model::{
    Claim, ClaimState, DomainOwner, Fault, FaultKind, Instance, Move, MoveKind, MovePhase, OpKind,
};

/// Whether the operation may begin on an instance in this state of the books.
///
/// # Errors
/// `InvalidRequest` for an operation that is never possible on it, `InstanceBusy` for one that has to wait for the end of a
/// move, `OperationStuck` for one on what a stuck operation left.
pub(super) fn admit(
    op: OpKind,
    instance: &Instance,
    claims: &[Claim],
    moving: Option<&Move>,
) -> Result<(), Fault> {
    let refuse = |kind: FaultKind, why: &str| {
        Err(Fault::new(kind, format!("{op} instance {:?} ({}): {why}", instance.name, instance.uuid)))
    };
    if let Some(why) = wrong_owner(op, instance.owner) {
        return refuse(FaultKind::InvalidRequest, why);
    }
    match moving {
        None if is_of_move(op) => {
            return refuse(FaultKind::InvalidRequest, "no such move was begun");
        }
        Some(moving) if !goes_with(op, moving) => {
            let Move { kind, phase, .. } = moving;
            let next = next_of(moving);
            return refuse(
                FaultKind::InstanceBusy,
                &format!("it is under way ({kind} {phase}): {next} first"),
            );
        }
        Some(_) | None => {}
    }
    match claims.iter().find(|c| is_half(c.state)) {
        Some(half) if !gives_everything_back(op, moving) && op != OpKind::Restore => {
            let why = format!(
                "its device {} is {} since an operation got stuck; destroy it",
                half.uuid, half.state
            );
            refuse(FaultKind::OperationStuck, &why)
        }
        Some(_) | None => Ok(()),
    }
}

fn is_half(state: ClaimState) -> bool {
    matches!(state, ClaimState::Reserved | ClaimState::Releasing)
}

fn gives_everything_back(op: OpKind, moving: Option<&Move>) -> bool {
    match moving.map(|m| m.kind) {
        Some(MoveKind::Out) => op == OpKind::MigrateConfirm,
        Some(MoveKind::In) => matches!(op, OpKind::Destroy | OpKind::MigrateRevert),
        Some(MoveKind::LiveOut) => matches!(op, OpKind::Destroy | OpKind::LiveCommit),
        Some(MoveKind::LiveIn) => op == OpKind::LiveRollback,
        Some(MoveKind::Resize | MoveKind::Rescue) | None => matches!(op, OpKind::Destroy | OpKind::Release),
    }
}

fn wrong_owner(op: OpKind, owner: DomainOwner) -> Option<&'static str> {
    match (op, owner) {
        (OpKind::Release, DomainOwner::Mdevirt) => Some("its domain was spawned here; use destroy"),
        (OpKind::Release | OpKind::Claim | OpKind::Restore, _) | (_, DomainOwner::Mdevirt) => None,
        (_, DomainOwner::Caller) => Some(
            "its domain belongs to the orchestrator that claimed the devices; use release to give them back",
        ),
        (_, DomainOwner::Libvirt) => Some(
            "its domain is libvirt's own: start, stop and undefine it there, its device follows; `mdevirtctl domain request` \
             writes another flavor",
        ),
    }
}

/// Operations that go on with a move that was begun.
fn is_of_move(op: OpKind) -> bool {
    use OpKind as O;
    matches!(
        op,
        O::Unrescue
            | O::ResizeFinish
            | O::ResizeConfirm
            | O::ResizeRevert
            | O::MigrateFinish
            | O::MigrateConfirm
            | O::MigrateRevert
            | O::LiveRollback
    )
}

/// What is possible during a move: its own next operations, and what a user does with the guest where it is.
fn goes_with(op: OpKind, moving: &Move) -> bool {
    use MoveKind as K;
    use MovePhase as P;
    use OpKind as O;
    let on_and_off = matches!(op, O::Start | O::Stop | O::Reboot | O::Restore);
    match (moving.kind, moving.phase) {
        (K::Resize, P::Prepared) => {
            on_and_off || matches!(op, O::Destroy | O::ResizeFinish | O::ResizeRevert)
        }
        (K::Resize, P::Finished) => {
            on_and_off || matches!(op, O::Destroy | O::ResizeConfirm | O::ResizeRevert)
        }
        (K::Rescue, _) => on_and_off || matches!(op, O::Destroy | O::Unrescue),
        // The guest is on the other host, or on its way there.
        (K::Out, _) => matches!(op, O::MigrateConfirm | O::MigrateRevert | O::Restore),
        (K::In, P::Prepared) => matches!(op, O::MigrateFinish | O::MigrateRevert | O::Restore),
        // It got stuck: the guest is away, and not everything of it is given back.
        (K::LiveOut, _) => matches!(op, O::Destroy | O::LiveCommit | O::Restore),
        (K::LiveIn, _) => matches!(op, O::LiveCommit | O::LiveRollback | O::Restore),
        (K::In, P::Finished) => on_and_off || matches!(op, O::Destroy | O::MigrateConfirm | O::MigrateRevert),
    }
}

fn next_of(moving: &Move) -> &'static str {
    match (moving.kind, moving.phase) {
        (MoveKind::Resize, MovePhase::Prepared) => "finish or revert the resize",
        (MoveKind::Resize, MovePhase::Finished) => "confirm or revert the resize",
        (MoveKind::Rescue, _) => "unrescue it",
        (MoveKind::LiveOut, _) => "give the migration again, or destroy it",
        (MoveKind::LiveIn, _) => "wait for its guest, or roll the migration back",
        (MoveKind::In, MovePhase::Prepared) => "finish or revert the migration",
        (MoveKind::Out, _) | (MoveKind::In, MovePhase::Finished) => "confirm or revert the migration",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Baggage;
    use uuid::Uuid;

    fn instance(owner: DomainOwner) -> Instance {
        Instance {
            uuid: crate::model::InstanceUuid(Uuid::from_u128(1)),
            name: "web-01".into(),
            owner,
            request_digest: String::new(),
            flavor: None,
            created_usec: 0,
        }
    }

    fn admitted(owner: DomainOwner, moving: Option<(MoveKind, MovePhase)>) -> Vec<&'static str> {
        let instance = instance(owner);
        let moving = moving.map(|(kind, phase)| Move {
            instance: instance.uuid,
            kind,
            phase,
            baggage: Baggage::default(),
        });
        let fits = |op: &&OpKind| admit(**op, &instance, &[], moving.as_ref()).is_ok();
        OpKind::ALL.iter().filter(fits).map(|op| op.as_str()).collect()
    }

    #[test]
    fn each_move_has_its_way_on_and_its_way_back() {
        let ours = |kind, phase| admitted(DomainOwner::Mdevirt, Some((kind, phase))).join(" ");
        use {MoveKind as K, MovePhase as P};
        assert_eq!(
            ours(K::Resize, P::Prepared),
            "destroy start stop reboot resize-finish resize-revert restore"
        );
        assert_eq!(
            ours(K::Resize, P::Finished),
            "destroy start stop reboot resize-confirm resize-revert restore"
        );
        assert_eq!(ours(K::Rescue, P::Finished), "destroy start stop reboot unrescue restore");
        assert_eq!(ours(K::Out, P::Prepared), "migrate-confirm migrate-revert restore");
        assert_eq!(ours(K::In, P::Prepared), "migrate-finish migrate-revert restore");
        assert_eq!(ours(K::LiveOut, P::Prepared), "destroy live-commit restore");
        assert_eq!(ours(K::LiveIn, P::Prepared), "live-commit live-rollback restore");
        assert_eq!(
            ours(K::In, P::Finished),
            "destroy start stop reboot migrate-confirm migrate-revert restore"
        );
    }

    #[test]
    fn a_domain_of_an_orchestrator_is_left_to_it() {
        assert_eq!(admitted(DomainOwner::Caller, None), ["claim", "release", "restore"]);
    }

    #[test]
    fn no_end_of_a_move_that_was_not_begun() {
        let plain = admitted(DomainOwner::Mdevirt, None);
        assert!(
            !plain.iter().any(|op| op.contains("confirm") || op.contains("revert") || op.contains("finish"))
        );
        assert!(
            plain.contains(&"resize-prepare") && plain.contains(&"suspend") && !plain.contains(&"release")
        );
    }
}
