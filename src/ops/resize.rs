//! Resize on one host: new devices beside the old ones, a change over, and then one of the two sides goes.
//!
//! Between two operations the move is in the books, and both sides are booked. `devices` are those of the side that an
//! operation works for, `others` those of the other side.

use super::steps::{OnUndo, Record, RedefineDomain, RemoveDevice, StartDomain, StopDomain};
use super::{Host, Params, VERSION, forget_claims, forget_devices, in_guest, makings, moved, parts, roles};
use crate::model::{ClaimRole, ClaimState, OpKind};
use crate::saga::{Script, Step};
use crate::store::Change;

/// The new devices are made; the guest goes on with the old ones.
pub fn prepare(host: &Host, params: Params) -> Script {
    let mut steps: Vec<Box<dyn Step>> = Vec::new();
    steps.extend(makings(host, &params.devices, OnUndo::Remove));
    steps.push(Box::new(Record::new(vec![moved(&params)])));
    let on_failed = forget_devices(&params.devices);
    Script {
        on_failed,
        result: super::result_of(params, ClaimState::Ready),
        ..Script::new(OpKind::ResizePrepare, VERSION, steps)
    }
}

/// The guest is stopped, defined with the new devices, and started if it ran.
pub fn finish(host: &Host, params: Params) -> Script {
    let old_side = params.turned();
    let mut steps: Vec<Box<dyn Step>> =
        vec![Box::new(StopDomain::in_between(host, &old_side)), Box::new(RedefineDomain::new(host, &params))];
    if params.start {
        steps.extend(makings(host, &params.devices, OnUndo::Keep));
        steps.push(Box::new(StartDomain::unbooked(host, &params)));
    }
    steps.push(Box::new(Record::new(changed_over(&params))));
    let state = if params.start { ClaimState::InUse } else { ClaimState::Parked };
    Script { result: super::result_of(params, state), ..Script::new(OpKind::ResizeFinish, VERSION, steps) }
}

fn changed_over(params: &Params) -> Vec<Change> {
    let flavor = params.flavor.clone();
    let mut changes = in_guest(&params.devices, params.start);
    changes.extend(roles(&params.devices, ClaimRole::Primary));
    changes.extend(roles(&params.others, ClaimRole::Outgoing));
    changes.extend([Change::Flavor { instance: params.instance, flavor }, moved(params)]);
    changes
}

/// The old devices go. The first that is removed is the point of no return.
pub fn confirm(host: &Host, params: Params) -> Script {
    let steps = give_back(host, &params);
    Script {
        point_of_no_return: Some(0),
        result: super::result_of(params, None),
        ..Script::new(OpKind::ResizeConfirm, VERSION, steps)
    }
}

/// The old definition and devices again, exactly; then the new devices go. `devices` are the old ones here.
pub fn revert(host: &Host, params: Params) -> Script {
    let mut steps: Vec<Box<dyn Step>> = Vec::new();
    if params.domain_xml.is_some() {
        steps.push(Box::new(StopDomain::in_between(host, &params.turned())));
        steps.push(Box::new(RedefineDomain::new(host, &params)));
        if params.start {
            steps.extend(makings(host, &params.devices, OnUndo::Keep));
            steps.push(Box::new(StartDomain::new(host, &params)));
        }
    }
    let point_of_no_return = Some(steps.len());
    steps.push(Box::new(Record::decision(back_again(&params))));
    steps.extend(give_back(host, &params));
    let state = match (&params.domain_xml, params.start) {
        (None, _) => None,
        (Some(_), true) => Some(ClaimState::InUse),
        (Some(_), false) => Some(ClaimState::Parked),
    };
    Script {
        point_of_no_return,
        result: super::result_of(params, state),
        ..Script::new(OpKind::ResizeRevert, VERSION, steps)
    }
}

/// The sides as they were before the change over, so that another revert goes on where this one could not.
fn back_again(params: &Params) -> Vec<Change> {
    let mut changes: Vec<Change> = roles(&params.devices, ClaimRole::Primary).collect();
    changes.extend(roles(&params.others, ClaimRole::Incoming));
    changes
        .extend([Change::Flavor { instance: params.instance, flavor: params.flavor.clone() }, moved(params)]);
    changes
}

/// The devices of the other side go, and the move is over.
fn give_back(host: &Host, params: &Params) -> Vec<Box<dyn Step>> {
    let mut steps: Vec<Box<dyn Step>> = Vec::new();
    let mut over = vec![Change::MoveOver(params.instance)];
    if params.keep_devices {
        over.extend(forget_claims(&params.others));
    } else {
        for (part, device) in parts(&params.others) {
            steps.push(Box::new(RemoveDevice::new(host, part, device)));
        }
    }
    steps.push(Box::new(Record::new(over)));
    steps
}
