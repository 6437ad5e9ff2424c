//! Suspend: save the guest's memory with its devices where they can be saved, without them where not.
//!
//! The devices stay booked, whatever libvirt still says of them. The point of no return is the saved memory.

use super::steps::{Attempt, PlugDevice, SaveDomain, Way};
use super::{Host, Params, VERSION, parts};
use crate::host::Config;
use crate::model::{ClaimState, OpKind};
use crate::saga::{Script, Step};

/// The steps of a suspend.
pub fn script(host: &Host, params: Params) -> Script {
    let mut steps: Vec<Box<dyn Step>> = vec![Box::new(SaveDomain::new(host, &params, Attempt::WithDevices))];
    for device in parts(&params.devices) {
        steps.push(Box::new(PlugDevice::new(host, &params, device, (Config::Live, Way::Out))));
    }
    steps.push(Box::new(SaveDomain::new(host, &params, Attempt::Final)));
    Script {
        point_of_no_return: Some(steps.len() - 1),
        result: super::result_of(params, ClaimState::Parked),
        ..Script::new(OpKind::Suspend, VERSION, steps)
    }
}
