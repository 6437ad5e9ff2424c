//! Destroy: stop the domain, undefine it, give the devices back.
//!
//! The point of no return is the stopped domain: before it nothing has changed, after it there is only forward.

use super::steps::{OnOther, StopDomain, UndefineDomain};
use super::{Host, Params, VERSION, removals};
use crate::model::{ClaimState, OpKind};
use crate::saga::{Script, Step};

/// The steps of a destroy.
pub fn script(host: &Host, params: Params) -> Script {
    let mut steps: Vec<Box<dyn Step>> = vec![
        Box::new(StopDomain::new(host, &params, OnOther::PassBy)),
        Box::new(UndefineDomain::new(host, &params)),
    ];
    steps.extend(removals(host, &params));
    let point_of_no_return = Some(0);
    let on_done = super::forget_instance(&params);
    Script {
        point_of_no_return,
        on_done,
        result: super::result_of(params, ClaimState::Releasing),
        ..Script::new(OpKind::Destroy, VERSION, steps)
    }
}
