//! Start: the same devices again; one that is lost is made again under its UUID on its parent.

use serde_json::json;

use super::steps::{MakeDevice, OnUndo, StartDomain};
use super::{Host, Params, VERSION};
use crate::model::OpKind;
use crate::saga::{Script, Step};

/// The steps of a start.
pub fn script(host: &Host, params: Params) -> Script {
    let mut steps: Vec<Box<dyn Step>> = Vec::new();
    for device in &params.devices {
        steps.push(Box::new(MakeDevice::new(host, device, OnUndo::Keep)));
    }
    steps.push(Box::new(StartDomain::new(host, &params)));
    Script {
        op: OpKind::Start,
        version: VERSION,
        point_of_no_return: None,
        steps,
        on_done: Vec::new(),
        on_failed: Vec::new(),
        result: json!({ "instance": params.instance }),
    }
}
