//! Make one mediated device, and read it back before saying so.

use std::collections::BTreeSet;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{claim, remove_when_closed};
use crate::host::HostError;
use crate::model::{Claim, ClaimEvent, Fault, FaultKind, Mdev, MdevType, Parent};
use crate::ops::{DevicePlan, Host, step_error};
use crate::saga::{Part, Seen, Step, StepError};
use crate::store::Change;

/// What an undo does to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnUndo {
    /// It is removed, unless it existed before.
    Remove,
    /// It stays: it belongs to a claim that outlives the operation, and that does not move by it.
    Keep,
}

/// See the head of the file.
#[derive(Debug)]
pub struct MakeDevice {
    host: Host,
    part: Part,
    device: DevicePlan,
    on_undo: OnUndo,
}

impl MakeDevice {
    /// One step for one device.
    pub fn new(host: &Host, part: Part, device: &DevicePlan, on_undo: OnUndo) -> Self {
        Self { host: host.clone(), part, device: device.clone(), on_undo }
    }

    fn claim(&self) -> &Claim {
        &self.device.claim
    }

    fn what(&self) -> String {
        format!("make {} {} on {}", self.claim().type_name, self.claim().uuid, self.claim().parent)
    }

    async fn look(&self) -> Result<Seen, StepError> {
        let found = self.host.nodes.find(self.claim().uuid).await.map_err(|e| self.unknown(&e))?;
        Ok(judge(self.claim(), &found))
    }

    /// A look that failed says nothing about the device.
    fn unknown(&self, err: &HostError) -> StepError {
        StepError::Unknown(format!("{}: {err}", self.what()))
    }

    /// Availability is the hardware's word at this moment, never a cached one.
    async fn check_room(&self) -> Result<(), StepError> {
        let DevicePlan { card, claim: Claim { parent, mdev_type: type_id, type_name, .. }, .. } =
            &self.device;
        let functions = self.host.nodes.scan_card(card).await.map_err(|e| step_error(&self.what(), &e))?;
        let refuse =
            |kind, why: String| Err(StepError::Fault(Fault::new(kind, format!("{}: {why}", self.what()))));
        let Some(function) = functions.iter().find(|p| p.addr == *parent) else {
            return refuse(
                FaultKind::NoSuchParent,
                "the parent is gone; look at `mdevirtctl device list`".into(),
            );
        };
        match function.mdev_type(type_id) {
            None => {
                refuse(FaultKind::TypeUnavailable, format!("the parent does not offer {type_id} any more"))
            }
            Some(t) if t.available_instances == 0 => {
                let bound = bound_to(&functions, t).unwrap_or_default();
                refuse(
                    FaultKind::NoCapacity,
                    format!("card {card} {bound}has no room for another {type_name}"),
                )
            }
            Some(_) => Ok(()),
        }
    }
}

/// A card that holds one size at a time still offers that size, on its other functions at least.
fn bound_to(functions: &[Parent], wanted: &MdevType) -> Option<String> {
    let open = functions.iter().filter(|p| p.one_size_per_card()).flat_map(|p| &p.types);
    let sizes: BTreeSet<u32> =
        open.filter(|t| t.available_instances > 0).filter_map(|t| t.facts.framebuffer_mib).collect();
    match (sizes.first(), wanted.facts.framebuffer_mib) {
        (Some(size), Some(other)) if sizes.len() == 1 && *size != other => {
            Some(format!("is bound to slices of {size} MiB and "))
        }
        (Some(_) | None, _) => None,
    }
}

/// What was found under the UUID against what was asked for.
fn judge(claim: &Claim, found: &[Mdev]) -> Seen {
    let here = || found.iter().find(|m| m.parent == claim.parent);
    match found.iter().find(|m| m.active).or_else(here) {
        None => Seen::Absent,
        Some(m) if m.parent != claim.parent => Seen::Foreign(format!("{} exists on {}", m.uuid, m.parent)),
        Some(m) if m.type_id.as_ref().is_some_and(|id| *id != claim.mdev_type) => {
            Seen::Foreign(format!("{} exists with another type", m.uuid))
        }
        Some(m) if m.active => Seen::Done(json!({ "uuid": m.uuid, "parent": m.parent })),
        // A definition without a device: its making or its removal was cut off half way.
        Some(_) => Seen::Partial,
    }
}

#[async_trait]
impl Step for MakeDevice {
    fn name(&self) -> &'static str {
        "make_device"
    }

    fn part(&self) -> Option<Part> {
        Some(self.part)
    }

    async fn seen(&self) -> Result<Seen, StepError> {
        self.look().await
    }

    async fn run(&self) -> Result<Value, StepError> {
        let _one_at_a_time = self.host.cards.hold(&self.device.card).await;
        if let Seen::Done(out) = self.look().await? {
            return Ok(out);
        }
        self.check_room().await?;
        self.host.nodes.create(&self.device.as_new()).await.map_err(|e| step_error(&self.what(), &e))?;
        match self.look().await? {
            Seen::Done(out) => Ok(out),
            Seen::Absent | Seen::Partial => {
                Err(StepError::Unknown(format!("{}: it is not listed yet", self.what())))
            }
            Seen::Foreign(why) => Err(StepError::Fault(Fault::new(FaultKind::HostRefused, why))),
        }
    }

    async fn undo(&self, _out: Option<&Value>) -> Result<(), StepError> {
        if self.device.reused || self.on_undo == OnUndo::Keep {
            return Ok(());
        }
        remove_when_closed(&self.host, &self.device).await
    }

    fn done_changes(&self, _out: &Value) -> Vec<Change> {
        match self.on_undo {
            OnUndo::Remove => vec![claim(self.claim().id, ClaimEvent::Created)],
            OnUndo::Keep => Vec::new(),
        }
    }

    fn undone_changes(&self) -> Vec<Change> {
        match self.on_undo {
            OnUndo::Remove => vec![claim(self.claim().id, ClaimEvent::Uncreated)],
            OnUndo::Keep => Vec::new(),
        }
    }
}
