//! Destroy: stop the domain, undefine it, give the devices back.
//!
//! The point of no return is the stopped domain: before it nothing has changed, after it there is only forward.

use serde_json::json;

use super::steps::{RemoveDevice, StopDomain, UndefineDomain};
use super::{Host, Params, VERSION};
use crate::model::OpKind;
use crate::saga::{Script, Step};

/// The steps of a destroy.
pub fn script(host: &Host, params: Params) -> Script {
    let mut steps: Vec<Box<dyn Step>> =
        vec![Box::new(StopDomain::new(host, &params)), Box::new(UndefineDomain::new(host, &params))];
    if !params.keep_devices {
        for device in &params.devices {
            steps.push(Box::new(RemoveDevice::new(host, device)));
        }
    }
    Script {
        op: OpKind::Destroy,
        version: VERSION,
        point_of_no_return: Some(0),
        steps,
        on_done: super::forget_instance(&params),
        on_failed: Vec::new(),
        result: json!({ "instance": params.instance }),
    }
}
