//! Rebuild: another definition for good; the devices stay with the instance.

use super::rescue::change_over;
use super::{Host, Params, VERSION};
use crate::model::{ClaimState, OpKind};
use crate::saga::Script;

/// The steps of a rebuild: the guest runs at the end if it ran before.
pub fn script(host: &Host, params: Params) -> Script {
    let steps = change_over(host, &params);
    let state = if params.start { ClaimState::InUse } else { ClaimState::Parked };
    Script { result: super::result_of(params, state), ..Script::new(OpKind::Rebuild, VERSION, steps) }
}
