//! Detach: one device out of the guest, out of the definition, and back to the card.
//!
//! A guest that does not let go keeps the device. The point of no return is its removal.

use super::steps::{PlugDevice, Way};
use super::{Host, Params, VERSION, forget_claims, parts, removals};
use crate::host::Config;
use crate::model::{ClaimState, OpKind};
use crate::saga::{Script, Step};

/// The steps of a detach. `devices` are those that leave, `others` those that stay.
pub fn script(host: &Host, params: Params) -> Script {
    let mut steps: Vec<Box<dyn Step>> = Vec::new();
    for config in [Config::Live, Config::Definition] {
        for device in parts(&params.devices) {
            steps.push(Box::new(PlugDevice::new(host, &params, device, (config, Way::Out))));
        }
    }
    let point_of_no_return = (!params.keep_devices).then_some(steps.len());
    let on_done = if params.keep_devices { forget_claims(&params.devices) } else { Vec::new() };
    steps.extend(removals(host, &params));
    Script {
        point_of_no_return,
        on_done,
        result: super::result_of(params, ClaimState::Releasing),
        ..Script::new(OpKind::Detach, VERSION, steps)
    }
}
