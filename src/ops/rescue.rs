//! Rescue: another definition, with the same devices, until the end of the rescue brings the old one back.

use super::steps::{OnUndo, Record, RedefineDomain, StartDomain, StopDomain};
use super::{Host, Params, VERSION, makings, moved};
use crate::model::{ClaimState, OpKind};
use crate::saga::{Script, Step};

/// The steps of the beginning: the rescue system runs at the end.
pub fn begin(host: &Host, params: Params) -> Script {
    let steps = change_over(host, &params);
    Script {
        result: super::result_of(params, ClaimState::InUse),
        ..Script::new(OpKind::Rescue, VERSION, steps)
    }
}

/// The steps of the end: the guest runs if it ran before the rescue.
pub fn end(host: &Host, params: Params) -> Script {
    let steps = change_over(host, &params);
    let state = if params.start { ClaimState::InUse } else { ClaimState::Parked };
    Script { result: super::result_of(params, state), ..Script::new(OpKind::Unrescue, VERSION, steps) }
}

/// From one definition to another, with the same devices; the guest runs at the end if it is to.
pub(super) fn change_over(host: &Host, params: &Params) -> Vec<Box<dyn Step>> {
    let mut steps: Vec<Box<dyn Step>> =
        vec![Box::new(StopDomain::in_between(host, params)), Box::new(RedefineDomain::new(host, params))];
    if params.start {
        steps.extend(makings(host, &params.devices, OnUndo::Keep));
        steps.push(Box::new(StartDomain::new(host, params)));
    }
    steps.push(Box::new(Record::new(vec![moved(params)])));
    steps
}
