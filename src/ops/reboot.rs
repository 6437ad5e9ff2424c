//! Reboot, the hard way: off and on again, with the same devices; one that is lost is made again. A reboot from inside the
//! guest needs nothing of us.

use super::steps::{OnOther, OnUndo, StartDomain, StopDomain};
use super::{Host, Params, VERSION, makings};
use crate::model::{ClaimState, OpKind};
use crate::saga::{Script, Step};

/// The steps of a reboot.
pub fn script(host: &Host, params: Params) -> Script {
    let mut steps: Vec<Box<dyn Step>> = vec![Box::new(StopDomain::new(host, &params, OnOther::Refuse))];
    steps.extend(makings(host, &params.devices, OnUndo::Keep));
    steps.push(Box::new(StartDomain::new(host, &params)));
    Script {
        result: super::result_of(params, ClaimState::InUse),
        ..Script::new(OpKind::Reboot, VERSION, steps)
    }
}
