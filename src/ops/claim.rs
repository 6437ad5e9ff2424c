//! Claim: make devices for a domain that somebody else owns.

use serde_json::json;

use super::steps::{MakeDevice, OnUndo};
use super::{Host, Params, VERSION};
use crate::model::OpKind;
use crate::saga::{Script, Step};

/// The steps of a claim: one device each.
pub fn script(host: &Host, params: Params) -> Script {
    let mut steps: Vec<Box<dyn Step>> = Vec::new();
    for device in &params.devices {
        steps.push(Box::new(MakeDevice::new(host, device, OnUndo::Remove)));
    }
    Script {
        op: OpKind::Claim,
        version: VERSION,
        point_of_no_return: None,
        steps,
        on_done: Vec::new(),
        on_failed: super::forget_booking(&params),
        result: json!({ "instance": params.instance }),
    }
}
