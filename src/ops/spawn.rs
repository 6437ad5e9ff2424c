//! Spawn: make the devices, define the domain with them, start it.
//!
//! The point of no return is the running domain. Any failure before it undoes all, newest first.

use super::steps::{DefineDomain, OnUndo, StartDomain};
use super::{Host, Params, VERSION, makings};
use crate::model::{ClaimState, OpKind};
use crate::saga::{Script, Step};

/// The steps of a spawn.
pub fn script(host: &Host, params: Params) -> Script {
    let mut steps: Vec<Box<dyn Step>> = Vec::new();
    steps.extend(makings(host, &params.devices, OnUndo::Remove));
    steps.push(Box::new(DefineDomain::new(host, &params)));
    steps.push(Box::new(StartDomain::new(host, &params)));
    let point_of_no_return = Some(steps.len() - 1);
    let on_failed = super::forget_booking(&params);
    Script {
        point_of_no_return,
        on_failed,
        result: super::result_of(params, ClaimState::InUse),
        ..Script::new(OpKind::Spawn, VERSION, steps)
    }
}
