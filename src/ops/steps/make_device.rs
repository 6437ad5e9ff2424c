//! Make one mediated device, and read it back before saying so.

use std::collections::BTreeSet;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{claim, remove_when_closed};
use crate::catalog::sense::Sense;
use crate::host::HostError;
use crate::model::{
    Claim, ClaimEvent, Fault, FaultKind, Mdev, MdevType, NewMdev, OwnDevice, Parent, TypeId, TypeIdentity,
};
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

    /// What is there under the UUID, judged by the type that is wanted now.
    async fn look(&self) -> Result<Sight, StepError> {
        let found = self.host.nodes.find(self.claim().uuid).await.map_err(|e| self.unknown(&e))?;
        let seen = judge(self.claim(), &self.claim().mdev_type, &found);
        if self.claim().identity.is_none() || !matches!(seen, Seen::Foreign(_) | Seen::Partial) {
            return Ok(Sight { seen, stale: false });
        }
        // Ids move with the driver: the same type may be there under another one.
        let functions = self.functions().await?;
        let now = self.type_now(&functions).map_or_else(|_| self.claim().mdev_type.clone(), |t| t.id.clone());
        let other = |m: &Mdev| !m.active && m.type_id.as_ref().is_some_and(|id| *id != now);
        // Only a device that was made before can have a definition of ours.
        let stale = self.on_undo == OnUndo::Keep && found.iter().any(other);
        let seen = judge(self.claim(), &now, &found);
        Ok(Sight { seen: if stale { Seen::Partial } else { seen }, stale })
    }

    async fn functions(&self) -> Result<Vec<Parent>, StepError> {
        self.host.nodes.scan_card(&self.device.card).await.map_err(|e| step_error(&self.what(), &e))
    }

    /// A look that failed says nothing about the device.
    fn unknown(&self, err: &HostError) -> StepError {
        StepError::Unknown(format!("{}: {err}", self.what()))
    }

    fn refusal(&self, kind: FaultKind, why: &str) -> StepError {
        StepError::Fault(Fault::new(kind, format!("{}: {why}", self.what())))
    }

    /// The claim's type as its parent offers it now: by what stays of it, by its id where nothing else is known.
    fn type_now<'a>(&self, functions: &'a [Parent]) -> Result<&'a MdevType, StepError> {
        let Claim { parent, mdev_type: type_id, identity, .. } = self.claim();
        let Some(function) = functions.iter().find(|p| p.addr == *parent) else {
            let why = "the parent is gone; look at `mdevirtctl device list`";
            return Err(self.refusal(FaultKind::NoSuchParent, why));
        };
        let Some(wanted) = identity else {
            let gone = || format!("the parent does not offer {type_id} any more");
            let same = function.mdev_type(type_id);
            return same.ok_or_else(|| self.refusal(FaultKind::TypeUnavailable, &gone()));
        };
        find_type(wanted, type_id, function).map_err(|(kind, why)| self.refusal(kind, &why))
    }

    /// Availability is the hardware's word at this moment, never a cached one.
    async fn check_room(&self) -> Result<MdevType, StepError> {
        let functions = self.functions().await?;
        let now = self.type_now(&functions)?;
        if now.available_instances > 0 {
            return Ok(now.clone());
        }
        let bound = bound_to(&functions, now).unwrap_or_default();
        let DevicePlan { card, claim, .. } = &self.device;
        let why = format!("card {card} {bound}has no room for another {}", claim.type_name);
        Err(self.refusal(FaultKind::NoCapacity, &why))
    }

    async fn make(&self) -> Result<(), StepError> {
        let mdev_type = self.check_room().await?;
        let new = NewMdev { type_id: mdev_type.id, ..self.device.as_new() };
        self.host.nodes.create(&new).await.map_err(|e| step_error(&self.what(), &e))
    }
}

/// What a look found.
struct Sight {
    seen: Seen,
    /// A definition of ours names an id that means something else by now.
    stale: bool,
}

/// The type with this identity among what a parent offers, whatever its id is now.
fn find_type<'a>(
    wanted: &TypeIdentity,
    booked: &TypeId,
    parent: &'a Parent,
) -> Result<&'a MdevType, (FaultKind, String)> {
    match Sense::look(wanted, booked, parent) {
        Sense::Same(t) | Sense::Renumbered(t) | Sense::Renamed(t) => Ok(t),
        Sense::Drifted(t) => {
            let now = TypeIdentity::of(parent, t);
            Err((FaultKind::TraitDrift, format!("{booked} is {now} now, it was {wanted}")))
        }
        Sense::Gone => {
            Err((FaultKind::TypeUnavailable, format!("the parent does not offer {wanted} any more")))
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
fn judge(claim: &Claim, type_id: &TypeId, found: &[Mdev]) -> Seen {
    let here = || found.iter().find(|m| m.parent == claim.parent);
    match found.iter().find(|m| m.active).or_else(here) {
        None => Seen::Absent,
        Some(m) if m.parent != claim.parent => Seen::Foreign(format!("{} exists on {}", m.uuid, m.parent)),
        Some(m) if m.type_id.as_ref().is_some_and(|id| id != type_id) => {
            Seen::Foreign(format!("{} exists with another type", m.uuid))
        }
        Some(m) if m.active => Seen::Done(json!({ "uuid": m.uuid, "parent": m.parent, "type_id": type_id })),
        // A definition without a device: its making or its removal was cut off half way.
        Some(_) => Seen::Partial,
    }
}

/// The device as it is to be recorded, if it was made under another id than the booked one.
fn moved(claim: &Claim, out: &Value) -> Option<OwnDevice> {
    let type_id: TypeId = out.get("type_id")?.as_str()?.parse().ok()?;
    let Claim { uuid, parent, type_name, .. } = claim.clone();
    (type_id != claim.mdev_type).then_some(OwnDevice { uuid, parent, type_id, type_name })
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
        Ok(self.look().await?.seen)
    }

    async fn run(&self) -> Result<Value, StepError> {
        let _one_at_a_time = self.host.cards.hold(&self.device.card).await;
        let before = self.look().await?;
        if let Seen::Done(out) = before.seen {
            return Ok(out);
        }
        // A definition is never started under an id that has become another type.
        if before.stale {
            let Claim { uuid, parent, .. } = self.claim();
            self.host.nodes.remove(*uuid, parent).await.map_err(|e| step_error(&self.what(), &e))?;
        }
        self.make().await?;
        match self.look().await?.seen {
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

    fn done_changes(&self, out: &Value) -> Vec<Change> {
        let created = claim(self.claim().id, ClaimEvent::Created);
        std::iter::once(created).chain(moved(self.claim(), out).map(Change::DeviceRecorded)).collect()
    }

    fn undone_changes(&self) -> Vec<Change> {
        match self.on_undo {
            OnUndo::Remove => vec![claim(self.claim().id, ClaimEvent::Uncreated)],
            OnUndo::Keep => Vec::new(),
        }
    }
}
