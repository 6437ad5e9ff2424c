//! Start: the same devices again; one that is lost is made again under its UUID on its parent.

use super::steps::{OnUndo, StartDomain};
use super::{Host, Params, VERSION, makings};
use crate::model::{ClaimState, OpKind};
use crate::saga::{Script, Step};

/// The steps of a start.
pub fn script(host: &Host, params: Params) -> Script {
    let mut steps: Vec<Box<dyn Step>> = Vec::new();
    steps.extend(makings(host, &params.devices, OnUndo::Keep));
    steps.push(Box::new(StartDomain::new(host, &params)));

    Script {
        result: super::result_of(params, ClaimState::InUse),
        ..Script::new(OpKind::Start, VERSION, steps)
    }
}
