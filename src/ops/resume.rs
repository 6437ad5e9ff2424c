//! Resume: the same devices, the saved memory, and the devices back in the guest. Without a device the VM stays suspended.

use super::steps::{OnUndo, PlugDevice, ResumeDomain, Way};
use super::{Host, Params, VERSION, makings, parts};
use crate::host::Config;
use crate::model::{ClaimState, OpKind};
use crate::saga::{Script, Step};

/// The steps of a resume.
pub fn script(host: &Host, params: Params) -> Script {
    let mut steps: Vec<Box<dyn Step>> = Vec::new();
    steps.extend(makings(host, &params.devices, OnUndo::Keep));
    steps.push(Box::new(ResumeDomain::new(host, &params)));
    for device in parts(&params.devices) {
        steps.push(Box::new(PlugDevice::new(host, &params, device, (Config::Live, Way::In))));
    }
    Script {
        result: super::result_of(params, ClaimState::InUse),
        ..Script::new(OpKind::Resume, VERSION, steps)
    }
}
