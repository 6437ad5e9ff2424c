//! Steps that two or more operations share.

mod away_still;
mod define_domain;
mod make_device;
mod move_guest;
mod plug_device;
mod record;
mod redefine_domain;
mod remove_device;
mod resume_domain;
mod save_domain;
mod start_domain;
mod stop_domain;
mod undefine_domain;

pub use away_still::AwayStill;
pub use define_domain::DefineDomain;
pub use make_device::{MakeDevice, OnUndo};
pub use move_guest::MoveGuest;
pub use plug_device::{PlugDevice, Way};
pub use record::Record;
pub use redefine_domain::RedefineDomain;
pub use remove_device::RemoveDevice;
pub use resume_domain::ResumeDomain;
pub use save_domain::{Attempt, SaveDomain};
pub use start_domain::StartDomain;
pub use stop_domain::{OnOther, StopDomain};
pub use undefine_domain::UndefineDomain;

use std::time::Duration;

use tokio::time::Instant;

use super::{DevicePlan, Found, Host, Params, step_error};
use crate::host::{Domain, HostError};
use crate::model::{ClaimEvent, ClaimId};
use crate::saga::StepError;
use crate::store::Change;

/// How long a device may stay open after its VM ended: QEMU closes it while it exits.
const CLOSE_DEADLINE: Duration = Duration::from_secs(15);

/// Removes a device; one that is open is waited for, then reported, never forced.
async fn remove_when_closed(host: &Host, device: &DevicePlan) -> Result<(), StepError> {
    let _one_at_a_time = host.cards.hold(&device.card).await;
    let what = format!("remove {} from {}", device.claim.uuid, device.claim.parent);
    let mut pause = Duration::from_millis(50);
    let deadline = Instant::now() + CLOSE_DEADLINE;
    loop {
        match host.nodes.remove(device.claim.uuid, &device.claim.parent).await {
            Err(HostError::InUse(_)) if Instant::now() < deadline => {
                // The kernel has no event for the closing of a VFIO group; this wait is bounded.
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(1));
            }
            outcome => return outcome.map_err(|e| step_error(&what, &e)),
        }
    }
}

/// The same event for the claims of all devices.
fn claims(devices: &[DevicePlan], event: ClaimEvent) -> Vec<Change> {
    devices.iter().map(|d| claim(d.claim.id, event)).collect()
}

fn claim(claim: ClaimId, event: ClaimEvent) -> Change {
    Change::Claim { claim, event }
}

/// What libvirt has under the UUID of the operation's instance. A look that fails says nothing.
async fn find_domain(host: &Host, params: &Params) -> Result<Found, StepError> {
    let Params { instance, name, .. } = params;
    let found = host.find_domain(&params.marks()).await;
    found.map_err(|e| StepError::Unknown(format!("look for domain {name:?} ({instance}): {e}")))
}

/// Says of a domain that it is not the one of this operation.
fn not_ours(domain: &Domain) -> String {
    format!(
        "domain {:?} ({}) has none of our devices, so it is not ours and is left alone",
        domain.name, domain.uuid
    )
}
