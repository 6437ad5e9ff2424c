//! Cold migration: the guest is switched off on the source, made on the target from a document, and then one of the two
//! hosts gives everything back.
//!
//! The daemons never call each other: whoever moves the instance carries the documents. `leaves` tells the host that the
//! instance is not on at the end from the one that keeps it.

use super::steps::{DefineDomain, OnOther, OnUndo, Record, StartDomain, StopDomain, UndefineDomain};
use super::{
    Host, Params, VERSION, forget_booking, forget_instance, in_guest, makings, moved, removals, roles,
};
use crate::model::{ClaimRole, ClaimState, OpKind};
use crate::saga::{Script, Step};

/// Source: the guest is switched off, its devices are kept for it.
pub fn begin(host: &Host, params: Params) -> Script {
    let out = roles(&params.devices, ClaimRole::Outgoing).chain([moved(&params)]).collect();
    let steps: Vec<Box<dyn Step>> =
        vec![Box::new(StopDomain::in_between(host, &params)), Box::new(Record::new(out))];
    Script {
        result: super::result_of(params, ClaimState::Parked),
        ..Script::new(OpKind::MigrateBegin, VERSION, steps)
    }
}

/// Target: devices of the same kind are booked and made, for a guest that comes switched off or running.
pub fn prepare(host: &Host, params: Params, op: OpKind) -> Script {
    let mut steps: Vec<Box<dyn Step>> = Vec::new();
    steps.extend(makings(host, &params.devices, OnUndo::Remove));
    steps.push(Box::new(Record::new(vec![moved(&params)])));
    let on_failed = forget_booking(&params);
    Script {
        on_failed,
        result: super::result_of(params, ClaimState::Ready),
        ..Script::new(op, VERSION, steps)
    }
}

/// Target: the domain is defined with its new devices, and started if it ran on the source.
pub fn finish(host: &Host, params: Params) -> Script {
    let mut steps: Vec<Box<dyn Step>> = vec![Box::new(DefineDomain::new(host, &params))];
    if params.start {
        steps.extend(makings(host, &params.devices, OnUndo::Keep));
        steps.push(Box::new(StartDomain::unbooked(host, &params)));
    }
    let mut here = in_guest(&params.devices, params.start);
    here.extend(roles(&params.devices, ClaimRole::Primary).chain([moved(&params)]));
    steps.push(Box::new(Record::new(here)));
    let state = if params.start { ClaimState::InUse } else { ClaimState::Parked };
    Script { result: super::result_of(params, state), ..Script::new(OpKind::MigrateFinish, VERSION, steps) }
}

/// The instance stays on the target.
pub fn confirm(host: &Host, params: Params) -> Script {
    if params.leaves {
        return leave(host, params, OpKind::MigrateConfirm);
    }
    let steps: Vec<Box<dyn Step>> = vec![Box::new(Record::new(vec![moved(&params)]))];
    Script { result: super::result_of(params, None), ..Script::new(OpKind::MigrateConfirm, VERSION, steps) }
}

/// It stays on the source, with its devices, and runs if it ran.
pub fn revert(host: &Host, params: Params) -> Script {
    if params.leaves {
        return leave(host, params, OpKind::MigrateRevert);
    }
    let mut steps: Vec<Box<dyn Step>> = Vec::new();
    if params.start {
        steps.extend(makings(host, &params.devices, OnUndo::Keep));
        steps.push(Box::new(StartDomain::new(host, &params)));
    }
    let back = roles(&params.devices, ClaimRole::Primary).chain([moved(&params)]).collect();
    steps.push(Box::new(Record::new(back)));
    let state = if params.start { ClaimState::InUse } else { ClaimState::Parked };
    Script { result: super::result_of(params, state), ..Script::new(OpKind::MigrateRevert, VERSION, steps) }
}

/// Everything of the instance goes from this host. The stopped domain is the point of no return.
fn leave(host: &Host, params: Params, op: OpKind) -> Script {
    let mut steps: Vec<Box<dyn Step>> = vec![
        Box::new(StopDomain::new(host, &params, OnOther::PassBy)),
        Box::new(UndefineDomain::new(host, &params)),
    ];
    steps.extend(removals(host, &params));
    let on_done = forget_instance(&params);
    Script {
        point_of_no_return: Some(0),
        on_done,
        result: super::result_of(params, ClaimState::Releasing),
        ..Script::new(op, VERSION, steps)
    }
}
