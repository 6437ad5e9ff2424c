//! Attach: one more device, made and written into the definition, and into the guest if it runs.

use super::steps::{OnUndo, PlugDevice, Way};
use super::{Host, Params, VERSION, forget_devices, in_guest, makings, parts};
use crate::host::Config;
use crate::model::{ClaimState, OpKind};
use crate::saga::{Script, Step};

/// The steps of an attach. `devices` are the new ones, `others` those that the domain is known by.
pub fn script(host: &Host, params: Params) -> Script {
    let mut steps: Vec<Box<dyn Step>> = Vec::new();
    steps.extend(makings(host, &params.devices, OnUndo::Remove));
    for config in [Config::Definition, Config::Live] {
        for device in parts(&params.devices) {
            steps.push(Box::new(PlugDevice::new(host, &params, device, (config, Way::In))));
        }
    }
    let on_failed = forget_devices(&params.devices);
    // Not with the steps: a device that was in use is not unmade.
    let on_done = in_guest(&params.devices, params.start);
    let state = if params.start { ClaimState::InUse } else { ClaimState::Parked };
    Script {
        on_done,
        on_failed,
        result: super::result_of(params, state),
        ..Script::new(OpKind::Attach, VERSION, steps)
    }
}
