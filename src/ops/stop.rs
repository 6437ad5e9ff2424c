//! Stop: end the domain at once; the devices stay booked and made.

use serde_json::json;

use super::steps::StopDomain;
use super::{Host, Params, VERSION};
use crate::model::OpKind;
use crate::saga::Script;

/// The one step of a stop.
pub fn script(host: &Host, params: Params) -> Script {
    Script {
        op: OpKind::Stop,
        version: VERSION,
        point_of_no_return: None,
        steps: vec![Box::new(StopDomain::new(host, &params))],
        on_done: Vec::new(),
        on_failed: Vec::new(),
        result: json!({ "instance": params.instance }),
    }
}
