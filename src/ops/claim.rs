//! Claim: make devices for a domain that somebody else owns.

use super::steps::{MakeDevice, OnUndo};
use super::{Host, Params, VERSION, parts};
use crate::model::{ClaimState, OpKind};
use crate::saga::{Script, Step};

/// The steps of a claim: one device each.
pub fn script(host: &Host, params: Params) -> Script {
    let mut steps: Vec<Box<dyn Step>> = Vec::new();
    for (part, device) in parts(&params.devices) {
        steps.push(Box::new(MakeDevice::new(host, part, device, OnUndo::Remove)));
    }
    let on_failed = super::forget_booking(&params);
    Script {
        on_failed,
        result: super::result_of(params, ClaimState::Ready),
        ..Script::new(OpKind::Claim, VERSION, steps)
    }
}
