//! Claim: make devices for a domain that somebody else owns.

use super::steps::OnUndo;
use super::{Host, Params, VERSION, makings};
use crate::model::{ClaimState, OpKind};
use crate::saga::{Script, Step};

/// The steps of a claim: one device each.
pub fn script(host: &Host, params: Params) -> Script {
    let mut steps: Vec<Box<dyn Step>> = Vec::new();
    steps.extend(makings(host, &params.devices, OnUndo::Remove));
    let on_failed = super::forget_booking(&params);
    Script {
        on_failed,
        result: super::result_of(params, ClaimState::Ready),
        ..Script::new(OpKind::Claim, VERSION, steps)
    }
}
