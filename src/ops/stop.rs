//! Stop: end the domain at once; the devices stay booked and made.

use super::steps::{OnOther, StopDomain};
use super::{Host, Params, VERSION};
use crate::model::{ClaimState, OpKind};
use crate::saga::{Script, Step};

/// The one step of a stop.
pub fn script(host: &Host, params: Params) -> Script {
    let steps: Vec<Box<dyn Step>> = vec![Box::new(StopDomain::new(host, &params, OnOther::Refuse))];
    Script {
        result: super::result_of(params, ClaimState::Parked),
        ..Script::new(OpKind::Stop, VERSION, steps)
    }
}
