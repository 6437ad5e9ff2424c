//! Restore: the devices that a reboot or an unplugged card took from an instance, made again under their UUIDs on their
//! parents. The guest is not started by it.

use super::steps::OnUndo;
use super::{Host, Params, VERSION, makings};
use crate::model::{ClaimState, OpKind};
use crate::saga::{Script, Step};

/// The steps of a restore: one device each.
pub fn script(host: &Host, params: Params) -> Script {
    let mut steps: Vec<Box<dyn Step>> = Vec::new();
    steps.extend(makings(host, &params.devices, OnUndo::Keep));
    Script {
        result: super::result_of(params, ClaimState::Ready),
        ..Script::new(OpKind::Restore, VERSION, steps)
    }
}
