//! One operation per file: which steps it has, where its point of no return is, and what the books say when it ends
//! (rank 3). `steps/` holds what two or more operations share.
//!
//! 1. A script is a pure function of the journal's `params`: a restart builds the same steps again.
//! 2. Steps change only what the books say is ours; anything else found in their place is `Foreign` and stays.
//! 3. A list of steps changes only with a new [`VERSION`]; the old list stays while a journal may hold it.

pub mod claim;
pub mod destroy;
mod domain;
pub mod release;
pub mod spawn;
pub mod start;
pub mod steps;
pub mod stop;

pub use domain::Found;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::host::{HostError, Hypervisor, NodeDevices};
use crate::model::{
    Claim, ClaimEvent, ClaimState, ClaimView, Fault, FaultKind, InstanceUuid, NewMdev, OpKind, ParentAddr,
    SagaRow,
};
use crate::saga::{Part, Script, StepError};
use crate::store::Change;

/// Version of the lists of steps in this room.
pub const VERSION: u32 = 1;

/// What steps act on.
#[derive(Debug, Clone)]
pub struct Host {
    /// Hardware.
    pub nodes: Arc<dyn NodeDevices>,
    /// Domains.
    pub hypervisor: Arc<dyn Hypervisor>,
    /// One creation at a time per card.
    pub cards: Arc<CardLocks>,
}

/// One device of an operation, as its journal keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevicePlan {
    /// Its claim, as it was when the operation began.
    pub claim: Claim,
    /// The card that its parent is a part of.
    pub card: ParentAddr,
    /// It existed, idle, before the operation: undoing leaves it there.
    #[serde(default)]
    pub reused: bool,
}

impl DevicePlan {
    fn as_new(&self) -> NewMdev {
        NewMdev {
            uuid: self.claim.uuid,
            parent: self.claim.parent.clone(),
            type_id: self.claim.mdev_type.clone(),
            device_api: self.claim.device_api,
        }
    }
}

/// What every operation of this room needs; the journal's `params`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Params {
    /// Whose operation it is.
    pub instance: InstanceUuid,
    /// The domain's name.
    pub name: String,
    /// Its devices.
    pub devices: Vec<DevicePlan>,
    /// Spawn: the domain XML with the host devices written in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain_xml: Option<String>,
    /// Destroy, release: devices stay, idle, for reuse.
    #[serde(default)]
    pub keep_devices: bool,
}

/// The steps of a journal's saga.
///
/// # Errors
/// The journal holds a version or parameters that this program does not know: `OperationStuck`, and nothing is guessed.
pub fn script(host: &Host, row: &SagaRow) -> Result<Script, Fault> {
    let stuck =
        |why: String| Fault::new(FaultKind::OperationStuck, format!("{} of {}: {why}", row.op, row.instance));
    if row.version != VERSION {
        return Err(stuck(format!("its journal has version {}, this program knows {VERSION}", row.version)));
    }
    let params: Params = serde_json::from_value(row.params.clone())
        .map_err(|e| stuck(format!("its journal cannot be read: {e}")))?;
    let script = match row.op {
        OpKind::Spawn => spawn::script(host, params),
        OpKind::Destroy => destroy::script(host, params),
        OpKind::Start => start::script(host, params),
        OpKind::Stop => stop::script(host, params),
        OpKind::Claim => claim::script(host, params),
        OpKind::Release => release::script(host, params),
    };
    Ok(script)
}

/// Locks by card, made as they are needed.
#[derive(Debug, Default)]
pub struct CardLocks(Mutex<HashMap<ParentAddr, Arc<tokio::sync::Mutex<()>>>>);

impl CardLocks {
    async fn hold(&self, card: &ParentAddr) -> tokio::sync::OwnedMutexGuard<()> {
        let lock = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(card.clone()).or_default())
        };
        lock.lock_owned().await
    }
}

/// A host error on the way to the journal. `what` is verb and operands, `make nvidia-18 on 0000:84:00.0`.
pub fn step_error(what: &str, err: &HostError) -> StepError {
    // Waiting for libvirt is no failure, and a lost answer is settled by looking.
    if fault_kind(err) == FaultKind::HostUnreachable {
        return StepError::Unknown(format!("{what}: {err}"));
    }
    StepError::Fault(host_fault(what, err))
}

/// A host error as callers see it.
pub fn host_fault(what: &str, err: &HostError) -> Fault {
    Fault::new(fault_kind(err), format!("{what}: {err}"))
}

fn fault_kind(err: &HostError) -> FaultKind {
    match err {
        HostError::Unreachable(_) | HostError::OutcomeUnknown(_) => FaultKind::HostUnreachable,
        HostError::InUse(_) => FaultKind::DeviceInUse,
        HostError::NoRoom(_) => FaultKind::NoCapacity,
        HostError::InvalidXml(_) => FaultKind::InvalidDomainXml,
        HostError::NotSupported(_) => FaultKind::NotSupported,
        HostError::NotFound(_) | HostError::Unreadable { .. } | HostError::Refused(_) => {
            FaultKind::HostRefused
        }
    }
}

/// What the books say when a booking came to nothing: every effect is undone, so every row goes.
fn forget_booking(params: &Params) -> Vec<Change> {
    let mut changes = forget_claims(&params.devices);
    for device in params.devices.iter().filter(|d| !d.reused) {
        changes
            .push(Change::DeviceForgotten { uuid: device.claim.uuid, parent: device.claim.parent.clone() });
    }
    changes.push(Change::InstanceGone(params.instance));
    changes
}

/// What the books say when an instance has given everything back: kept devices stay ours, without a claim.
fn forget_instance(params: &Params) -> Vec<Change> {
    let mut changes = if params.keep_devices { forget_claims(&params.devices) } else { Vec::new() };
    changes.push(Change::InstanceGone(params.instance));
    changes
}

/// Devices with their place among the equal steps.
fn parts(devices: &[DevicePlan]) -> impl Iterator<Item = (Part, &DevicePlan)> {
    let of = u32::try_from(devices.len()).unwrap_or(u32::MAX);
    (0u32..).zip(devices).map(move |(index, device)| (Part { index, of }, device))
}

/// Makes a job's result from what its steps returned.
type JobResult = Box<dyn Fn(&[Value]) -> Value + Send + Sync>;

/// A job's result: whose operation it was, the devices as it left them, and the domain XML where one was written.
fn result_of(params: Params, state: ClaimState) -> JobResult {
    Box::new(move |_| {
        let view = |d: &DevicePlan| ClaimView { state, ..ClaimView::from(&d.claim) };
        let devices: Vec<ClaimView> = params.devices.iter().map(view).collect();
        json!({ "instance": params.instance, "devices": devices, "domain_xml": params.domain_xml })
    })
}

fn forget_claims(devices: &[DevicePlan]) -> Vec<Change> {
    devices
        .iter()
        .flat_map(|d| {
            [Change::Claim { claim: d.claim.id, event: ClaimEvent::Release }, Change::ClaimGone(d.claim.id)]
        })
        .collect()
}
