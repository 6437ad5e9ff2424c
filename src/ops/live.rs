//! Live migration: the target books and makes devices (`migrate::prepare`), the source sends the guest to them while it runs, and
//! then the target has the instance and the source nothing of it.
//!
//! The daemons never call each other, and libvirt carries the guest: whoever moves the instance carries the documents. `leaves`
//! tells the host that the instance is not on at the end from the other one.

use super::steps::{AwayStill, MoveGuest, Record, UndefineDomain};
use super::{Host, Params, VERSION, forget_instance, in_guest, moved, removals, roles};
use crate::model::{ClaimRole, ClaimState, OpKind};
use crate::saga::{Script, Step};
use crate::store::Change;

/// Source: the guest goes. Target: it is here.
pub fn commit(host: &Host, params: Params) -> Script {
    if params.leaves { send(host, params) } else { arrive(params) }
}

/// What libvirt reports as success is the point of no return.
fn send(host: &Host, params: Params) -> Script {
    let out: Vec<Change> = roles(&params.devices, ClaimRole::Outgoing).chain([moved(&params)]).collect();
    let back =
        roles(&params.devices, ClaimRole::Primary).chain([Change::MoveOver(params.instance)]).collect();
    let mut steps: Vec<Box<dyn Step>> = vec![
        Box::new(Record::both_ways(out, back)),
        Box::new(MoveGuest::new(host, &params)),
        Box::new(UndefineDomain::new(host, &params)),
    ];
    steps.extend(removals(host, &params));
    let on_done = forget_instance(&params);
    Script {
        point_of_no_return: Some(1),
        on_done,
        result: super::result_of(params, ClaimState::Releasing),
        ..Script::new(OpKind::LiveCommit, VERSION, steps)
    }
}

fn arrive(params: Params) -> Script {
    let mut here = in_guest(&params.devices, params.start);
    here.extend(roles(&params.devices, ClaimRole::Primary).chain([Change::MoveOver(params.instance)]));
    let steps: Vec<Box<dyn Step>> = vec![Box::new(Record::new(here))];
    let state = if params.start { ClaimState::InUse } else { ClaimState::Parked };
    Script { result: super::result_of(params, state), ..Script::new(OpKind::LiveCommit, VERSION, steps) }
}

/// Target: what was made for the guest goes. The source has nothing of its own to take back: a sending that is broken off is
/// undone by its own operation.
pub fn rollback(host: &Host, params: Params) -> Script {
    let mut steps: Vec<Box<dyn Step>> = vec![Box::new(AwayStill::new(host, &params))];
    steps.extend(removals(host, &params));
    // Until the first device is gone the guest may still come.
    let point_of_no_return = (steps.len() > 1).then_some(1);
    let on_done = forget_instance(&params);
    Script {
        point_of_no_return,
        on_done,
        result: super::result_of(params, ClaimState::Releasing),
        ..Script::new(OpKind::LiveRollback, VERSION, steps)
    }
}
