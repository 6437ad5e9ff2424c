//! Spawn: make the devices, define the domain with them, start it.
//!
//! The point of no return is the running domain. Any failure before it undoes all, newest first.

use serde_json::json;

use super::steps::{DefineDomain, MakeDevice, OnUndo, StartDomain};
use super::{Host, Params, VERSION};
use crate::model::OpKind;
use crate::saga::{Script, Step};

/// The steps of a spawn.
pub fn script(host: &Host, params: Params) -> Script {
    let mut steps: Vec<Box<dyn Step>> = Vec::new();
    for device in &params.devices {
        steps.push(Box::new(MakeDevice::new(host, device, OnUndo::Remove)));
    }
    steps.push(Box::new(DefineDomain::new(host, &params)));
    steps.push(Box::new(StartDomain::new(host, &params)));
    Script {
        op: OpKind::Spawn,
        version: VERSION,
        point_of_no_return: Some(steps.len() - 1),
        steps,
        on_done: Vec::new(),
        on_failed: super::forget_booking(&params),
        result: json!({ "instance": params.instance, "domain_xml": params.domain_xml }),
    }
}
