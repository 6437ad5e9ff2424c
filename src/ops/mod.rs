//! One operation per file: which steps it has, where its point of no return is, and what the books say when it ends
//! (rank 3). `steps/` holds what two or more operations share.
//!
//! 1. A script is a pure function of the journal's `params`: a restart builds the same steps again.
//! 2. Steps change only what the books say is ours; anything else found in their place is `Foreign` and stays.
//! 3. A list of steps changes only with a new [`VERSION`]; the old list stays while a journal may hold it.

pub mod attach;
pub mod claim;
pub mod destroy;
pub mod detach;
mod domain;
mod kernel;
pub mod live;
pub mod migrate;
pub mod reboot;
pub mod rebuild;
pub mod release;
pub mod rescue;
pub mod resize;
pub mod restore;
pub mod resume;
pub mod spawn;
pub mod start;
pub mod steps;
pub mod stop;
pub mod suspend;

pub use domain::{Found, Marks};

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::host::{HostError, HostdevXml, Hypervisor, NodeDevices, Passage};
use crate::model::{
    Claim, ClaimEvent, ClaimRole, ClaimState, ClaimView, Fault, FaultKind, InstanceUuid, Move, NewMdev,
    OpKind, ParentAddr, SagaRow,
};
use crate::saga::{Part, Script, Step, StepError};
use crate::store::Change;
use steps::{MakeDevice, OnUndo, RemoveDevice};

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
    /// Moves: the devices of the other side, that is of the one which the domain is not on afterwards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<DevicePlan>,
    /// Where another definition is written: the one that was in force before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_xml: Option<String>,
    /// The guest runs at the end.
    #[serde(default)]
    pub start: bool,
    /// It ran before: it runs again when all is undone.
    #[serde(default)]
    pub ran: bool,
    /// The domain may have none of the devices at times, and is known by its name then.
    #[serde(default)]
    pub bare: bool,
    /// Moves: how the books have the move at the end; `None`: it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moving: Option<Move>,
    /// Moves: the flavor that the instance has at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flavor: Option<String>,
    /// Migration: the instance is not on this host at the end.
    #[serde(default)]
    pub leaves: bool,
    /// Migration, target: which device became which; for everybody to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<Value>,
    /// Attach, detach, suspend, resume: the `<hostdev>` of each device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hostdevs: Vec<HostdevXml>,
    /// Live migration, source: how the guest goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passage: Option<Passage>,
    /// libvirt waits for it, so that it must not be asked: devices are made by the kernel alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_kernel: bool,
}

impl Params {
    /// Parameters of an operation on these devices, without anything more.
    pub fn new(instance: InstanceUuid, name: impl Into<String>, devices: Vec<DevicePlan>) -> Self {
        Self {
            instance,
            name: name.into(),
            devices,
            domain_xml: None,
            keep_devices: false,
            others: Vec::new(),
            old_xml: None,
            start: false,
            ran: false,
            bare: false,
            moving: None,
            flavor: None,
            leaves: false,
            document: None,
            hostdevs: Vec::new(),
            passage: None,
            in_kernel: false,
        }
    }

    /// The same with the sides changed over.
    fn turned(&self) -> Self {
        Self { devices: self.others.clone(), others: self.devices.clone(), ..self.clone() }
    }
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
    let in_kernel = params.in_kernel.then(|| host.in_kernel());
    let host = in_kernel.as_ref().unwrap_or(host);
    let script = match row.op {
        OpKind::Spawn => spawn::script(host, params),
        OpKind::Destroy => destroy::script(host, params),
        OpKind::Start => start::script(host, params),
        OpKind::Stop => stop::script(host, params),
        OpKind::Claim => claim::script(host, params),
        OpKind::Release => release::script(host, params),
        OpKind::Suspend => suspend::script(host, params),
        OpKind::Resume => resume::script(host, params),
        OpKind::Reboot => reboot::script(host, params),
        OpKind::Rescue => rescue::begin(host, params),
        OpKind::Unrescue => rescue::end(host, params),
        OpKind::Rebuild => rebuild::script(host, params),
        OpKind::Attach => attach::script(host, params),
        OpKind::Detach => detach::script(host, params),
        OpKind::ResizePrepare => resize::prepare(host, params),
        OpKind::ResizeFinish => resize::finish(host, params),
        OpKind::ResizeConfirm => resize::confirm(host, params),
        OpKind::ResizeRevert => resize::revert(host, params),
        OpKind::MigrateBegin => migrate::begin(host, params),
        OpKind::MigratePrepare | OpKind::LivePrepare => migrate::prepare(host, params, row.op),
        OpKind::MigrateFinish => migrate::finish(host, params),
        OpKind::MigrateConfirm => migrate::confirm(host, params),
        OpKind::MigrateRevert => migrate::revert(host, params),
        OpKind::LiveCommit => live::commit(host, params),
        OpKind::LiveRollback => live::rollback(host, params),
        OpKind::Restore => restore::script(host, params),
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
    let mut changes = forget_devices(&params.devices);
    changes.push(Change::InstanceGone(params.instance));
    changes
}

/// What the books say of devices that were booked and came to nothing; those that were there before stay ours, idle.
fn forget_devices(devices: &[DevicePlan]) -> Vec<Change> {
    let made = devices.iter().filter(|d| !d.reused).map(|d| &d.claim);
    let gone = made.map(|c| Change::DeviceForgotten { uuid: c.uuid, parent: c.parent.clone() });
    forget_claims(devices).into_iter().chain(gone).collect()
}

/// What the books say when an instance has given everything back: kept devices stay ours, without a claim.
fn forget_instance(params: &Params) -> Vec<Change> {
    let mut changes = if params.keep_devices { forget_claims(&params.devices) } else { Vec::new() };
    changes.push(Change::InstanceGone(params.instance));
    changes
}

/// The steps that take devices away, which only the operation's way forward has; none if they stay for reuse.
fn removals(host: &Host, params: &Params) -> impl Iterator<Item = Box<dyn Step>> {
    let devices = if params.keep_devices { &[][..] } else { &params.devices };
    parts(devices).map(|(part, device)| -> Box<dyn Step> { Box::new(RemoveDevice::new(host, part, device)) })
}

/// The steps that make devices.
fn makings(host: &Host, devices: &[DevicePlan], on_undo: OnUndo) -> impl Iterator<Item = Box<dyn Step>> {
    parts(devices).map(move |(part, device)| -> Box<dyn Step> {
        Box::new(MakeDevice::new(host, part, device, on_undo))
    })
}

/// Devices with their place among the equal steps.
fn parts(devices: &[DevicePlan]) -> impl Iterator<Item = (Part, &DevicePlan)> {
    let of = u32::try_from(devices.len()).unwrap_or(u32::MAX);
    (0u32..).zip(devices).map(move |(index, device)| (Part { index, of }, device))
}

/// Makes a job's result from what its steps returned.
type JobResult = Box<dyn Fn(&[Value]) -> Value + Send + Sync>;

/// A job's result: whose operation it was, and the devices as it left them (`None`: as they were). Everybody may read it, so
/// that a definition, which has the guest's secrets, is never in it; the XML of a spawn is what the caller gave.
fn result_of(params: Params, state: impl Into<Option<ClaimState>>) -> JobResult {
    let state = state.into();
    Box::new(move |_| {
        let view =
            |d: &DevicePlan| ClaimView { state: state.unwrap_or(d.claim.state), ..ClaimView::from(&d.claim) };
        let devices: Vec<ClaimView> = params.devices.iter().map(view).collect();
        let given =
            params.domain_xml.as_ref().filter(|_| params.old_xml.is_none() && params.moving.is_none());
        let mut result = json!({ "instance": params.instance, "devices": devices, "domain_xml": given });
        if let Some(document) = &params.document {
            result["document"] = document.clone();
        }
        result
    })
}

/// What the books say of a side of a move: its claims have this role.
fn roles(devices: &[DevicePlan], role: ClaimRole) -> impl Iterator<Item = Change> + '_ {
    devices.iter().map(move |d| Change::Role { claim: d.claim.id, role })
}

/// What the books say of devices whose guest runs or is off from now on.
fn in_guest(devices: &[DevicePlan], runs: bool) -> Vec<Change> {
    let event = if runs { ClaimEvent::Started } else { ClaimEvent::Stopped };
    devices.iter().map(|d| Change::Claim { claim: d.claim.id, event }).collect()
}

/// What the books say of the move at the end of an operation.
fn moved(params: &Params) -> Change {
    params.moving.clone().map_or(Change::MoveOver(params.instance), Change::Moving)
}

fn forget_claims(devices: &[DevicePlan]) -> Vec<Change> {
    devices
        .iter()
        .flat_map(|d| {
            [Change::Claim { claim: d.claim.id, event: ClaimEvent::Release }, Change::ClaimGone(d.claim.id)]
        })
        .collect()
}
