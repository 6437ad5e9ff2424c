//! Release: give back the devices of a domain that somebody else owns.
//!
//! The point of no return is the first removed device; a device that is open is reported and keeps everything as it was.

use super::{Host, Params, VERSION, removals};
use crate::model::{ClaimState, OpKind};
use crate::saga::{Script, Step};

/// The steps of a release: one device each, none if the devices are kept for reuse.
pub fn script(host: &Host, params: Params) -> Script {
    let mut steps: Vec<Box<dyn Step>> = Vec::new();
    steps.extend(removals(host, &params));
    let point_of_no_return = (!steps.is_empty()).then_some(0);
    let on_done = super::forget_instance(&params);
    Script {
        point_of_no_return,
        on_done,
        result: super::result_of(params, ClaimState::Releasing),
        ..Script::new(OpKind::Release, VERSION, steps)
    }
}
