//! Operations on an instance that is in the books: which one, on which devices, in which state of its move.
//!
//! What an operation needs besides the books is in the files beside: definitions (`definitions`), single devices (`plug`),
//! another flavor (`resize`), another host (`migrate`).

use serde_json::json;

use super::Service;
use super::admission::admit;
use super::api::{Accepted, Operate};
use super::basis::Basis;
use super::book::digest_of;
use crate::config::OnRelease;
use crate::model::{
    Claim, ClaimRole, ClaimState, Fault, FaultKind, HostScan, Instance, InstanceUuid, Move, OpKind,
};
use crate::ops::{DevicePlan, Params, host_fault};
use crate::store::{Begin, Books, Recheck, StoreError};

/// An instance as an operation finds it in the books.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    pub(super) instance: Instance,
    /// All of its claims.
    pub(super) claims: Vec<Claim>,
    pub(super) moving: Option<Move>,
    /// One for each claim, in their order.
    pub(super) plans: Vec<DevicePlan>,
    /// Devices that are given back stay, idle.
    pub(super) keeps: bool,
    /// Its domain may have none of its devices, and is known by its name then.
    pub(super) bare: bool,
}

impl Subject {
    /// Devices of claims that have this role.
    pub(super) fn of(&self, role: ClaimRole) -> Vec<DevicePlan> {
        self.plans.iter().filter(|plan| plan.claim.role == role).cloned().collect()
    }

    /// Devices of claims that have another one.
    pub(super) fn but(&self, role: ClaimRole) -> Vec<DevicePlan> {
        self.plans.iter().filter(|plan| plan.claim.role != role).cloned().collect()
    }

    /// Parameters of an operation for the instance's own devices; those of the other side of a move beside them.
    pub(super) fn params(&self) -> Params {
        Params {
            others: self.but(ClaimRole::Primary),
            moving: self.moving.clone(),
            keep_devices: self.keeps,
            ..self.params_of(self.of(ClaimRole::Primary))
        }
    }

    /// Parameters of an operation for these devices.
    pub(super) fn params_of(&self, devices: Vec<DevicePlan>) -> Params {
        Params { bare: self.bare, ..Params::new(self.instance.uuid, self.instance.name.clone(), devices) }
    }

    /// Refuses if the books are not any more what was planned with.
    pub(super) fn recheck(&self, op: OpKind, books: &Books) -> Result<(), Fault> {
        let uuid = self.instance.uuid;
        let now: Vec<Claim> = books.claims_of(uuid).cloned().collect();
        let key = |c: &Claim| (c.id, c.role);
        if !now.iter().map(key).eq(self.claims.iter().map(key)) || books.move_of(uuid) != self.moving.as_ref()
        {
            let text =
                format!("the devices of instance {uuid} changed while {op} was looked into; ask again");
            return Err(Fault::new(FaultKind::InstanceBusy, text));
        }
        admit(op, &self.instance, &now, self.moving.as_ref())
    }
}

/// Parameters of an operation, and what is booked with its beginning.
#[derive(Debug)]
pub(super) struct Booking {
    pub(super) params: Params,
    pub(super) new: Vec<Claim>,
    pub(super) basis: Basis,
}

impl From<Params> for Booking {
    fn from(params: Params) -> Self {
        Self { params, new: Vec::new(), basis: Basis::default() }
    }
}

impl Service {
    /// [`super::api::UseCases::operate`].
    pub(super) async fn book_operation(&self, request: Operate) -> Result<Accepted, Fault> {
        let Operate { op, instance, operation_id, with } = request;
        let digest = digest_of(&[op.as_str(), &instance, &format!("{with:?}")]);
        if let Some(again) = self.repeated(operation_id.as_deref(), &digest)? {
            return Ok(again);
        }
        if op == OpKind::LiveRollback
            && let Some(under_way) = self.break_off(&instance).await?
        {
            return Ok(under_way);
        }
        // Only what books new devices has to wait for other bookings.
        let books_devices = matches!(op, OpKind::ResizePrepare | OpKind::Attach);
        let _one_at_a_time = if books_devices { Some(self.booking.lock().await) } else { None };
        let subject = self.subject(op, &instance).await?;
        if loses_memory(op) {
            self.refuse_suspended(op, &subject.instance).await?;
        }
        let booking: Booking = match op {
            OpKind::Destroy | OpKind::Release => everything(&subject).into(),
            OpKind::Start | OpKind::Stop | OpKind::Reboot => subject.params().into(),
            OpKind::Suspend | OpKind::Resume => self.plan_memory(op, &subject).await?.into(),
            OpKind::Rescue | OpKind::Unrescue | OpKind::Rebuild => {
                self.plan_definition(op, &subject, &with).await?.into()
            }
            OpKind::Attach => self.plan_attach(&subject, &with).await?,
            OpKind::Detach => self.plan_detach(&subject, &with).await?.into(),
            OpKind::ResizePrepare => self.plan_resize(&subject, &with).await?,
            OpKind::ResizeFinish => self.plan_resize_finish(&subject).await?.into(),
            OpKind::ResizeConfirm => self.plan_resize_confirm(&subject).into(),
            OpKind::ResizeRevert => self.plan_resize_revert(&subject).await?.into(),
            OpKind::MigrateBegin => self.plan_migrate_begin(&subject, &with).await?.into(),
            OpKind::MigrateFinish => self.plan_migrate_finish(&subject).into(),
            OpKind::MigrateConfirm => self.plan_migrate_confirm(&subject).into(),
            OpKind::MigrateRevert => self.plan_migrate_revert(&subject).into(),
            OpKind::LiveCommit => self.plan_live_commit(&subject, &with).await?.into(),
            OpKind::LiveRollback => everything(&subject).into(),
            OpKind::Restore => restored(&subject)?.into(),
            OpKind::Spawn | OpKind::Claim | OpKind::MigratePrepare | OpKind::LivePrepare => {
                let text = format!("{op} is not an operation on an instance that is there already");
                return Err(Fault::new(FaultKind::InvalidRequest, text));
            }
        };
        let saga = self.new_saga(op, &booking.params, operation_id, digest);
        let devices = super::book::new_devices(&booking.new, &booking.params.devices);
        let Booking { new, basis, .. } = booking;
        let recheck: Recheck =
            Box::new(move |books| subject.recheck(op, books).and_then(|()| basis.check(books)));
        self.launch(saga, |begin| Begin { recheck: Some(recheck), claims: new, devices, ..begin })
    }

    pub(super) async fn subject(&self, op: OpKind, text: &str) -> Result<Subject, Fault> {
        let instance = self.instance(text)?;
        let books = self.store.books();
        let claims: Vec<Claim> = books.claims_of(instance.uuid).cloned().collect();
        let moving = books.move_of(instance.uuid).cloned();
        if let Some(job) = self.store.live_saga(instance.uuid)? {
            if self.store.saga(job)?.is_some_and(|row| row.op == OpKind::Restore) {
                let name = &instance.name;
                let text =
                    format!("the devices of instance {name:?} are being made again by job {job}; ask again");
                return Err(Fault::new(FaultKind::RestorePending, text));
            }
            return Err(StoreError::Busy { instance: instance.uuid, job }.into());
        }
        admit(op, &instance, &claims, moving.as_ref())?;
        let plans = self.plans_of(&claims).await?;
        // What a stuck operation left half made is no device to keep.
        let all_made = claims.iter().all(|c| c.state != ClaimState::Reserved);
        let keeps = all_made && self.settings.now().config.on_release == OnRelease::Keep;
        let bare = self.may_be_bare(&instance, &claims, moving.as_ref())?;
        Ok(Subject { instance, claims, moving, plans, keeps, bare })
    }

    /// Whether the domain may have no device of the instance: it has none of its own, or an operation that gives it the first
    /// or takes the last got stuck.
    fn may_be_bare(
        &self,
        instance: &Instance,
        claims: &[Claim],
        moving: Option<&Move>,
    ) -> Result<bool, Fault> {
        // Between two hosts the domain has the devices of its only side.
        let one_side = moving.is_some_and(|m| m.kind.is_between_hosts());
        if claims.iter().all(|c| !one_side && c.role != ClaimRole::Primary) {
            return Ok(true);
        }
        let stuck = self.store.stuck_sagas()?;
        let last = stuck.iter().rfind(|saga| saga.instance == instance.uuid);
        Ok(last.is_some_and(|saga| saga.params["bare"].as_bool() == Some(true)))
    }

    /// The instance of that UUID or name.
    pub(super) fn instance(&self, text: &str) -> Result<Instance, Fault> {
        let books = self.store.books();
        let by_uuid = text.parse().ok().and_then(|uuid| books.instance(uuid));
        if let Some(found) = by_uuid {
            return Ok(found.clone());
        }
        let named: Vec<&Instance> = books.instances_named(text).filter(|i| !i.name.is_empty()).collect();
        match named[..] {
            [one] => Ok(one.clone()),
            [] => {
                let text =
                    format!("no instance has the name or UUID {text:?}; look at `mdevirtctl instance list`");
                Err(Fault::new(FaultKind::NoSuchInstance, text))
            }
            ref several => {
                let uuids: Vec<String> = several.iter().map(|i| i.uuid.to_string()).collect();
                let message = format!(
                    "{text:?} is the name of {} instances; use a UUID: {}",
                    uuids.len(),
                    uuids.join(", ")
                );
                Err(Fault::new(FaultKind::InvalidRequest, message)
                    .with_details(json!({ "instances": uuids })))
            }
        }
    }

    /// The card is in the books, but for claims booked before they kept it: only these need a look at the hardware.
    async fn plans_of(&self, claims: &[Claim]) -> Result<Vec<DevicePlan>, Fault> {
        let scan = match claims.iter().all(|c| c.card.is_some()) {
            true => HostScan::default(),
            false => self.host.nodes.scan().await.map_err(|e| host_fault("look at the node devices", &e))?,
        };
        let card = |c: &Claim| c.card.clone().unwrap_or_else(|| scan.card_of(&c.parent));
        let plan = |c: &Claim| DevicePlan { card: card(c), claim: c.clone(), reused: false };
        Ok(claims.iter().map(plan).collect())
    }

    /// Refuses for a guest whose memory is kept in an image.
    async fn refuse_suspended(&self, op: OpKind, instance: &Instance) -> Result<(), Fault> {
        if !self.is_saved(instance).await? {
            return Ok(());
        }
        let text = format!(
            "{op} instance {:?}: it is suspended, and its memory would be lost or go on without its devices; resume it first, or \
             destroy it",
            instance.name
        );
        Err(Fault::new(FaultKind::InvalidRequest, text))
    }

    /// Whether the guest's memory is kept in an image.
    pub(super) async fn is_saved(&self, instance: &Instance) -> Result<bool, Fault> {
        let saved = self.host.hypervisor.is_saved(instance.uuid).await;
        saved.map_err(|e| host_fault(&format!("look for the saved memory of {:?}", instance.name), &e))
    }

    /// Whether the guest runs.
    pub(super) async fn runs(&self, instance: InstanceUuid) -> Result<bool, Fault> {
        let domain = self.host.hypervisor.domain(instance).await;
        let domain = domain.map_err(|e| host_fault(&format!("look for domain {instance}"), &e))?;
        Ok(domain.is_some_and(|d| d.running))
    }

    /// The definition of the instance's domain.
    pub(super) async fn definition(&self, instance: &Instance) -> Result<String, Fault> {
        let what = format!("read the definition of domain {:?}", instance.name);
        let xml = self.host.hypervisor.definition(instance.uuid).await.map_err(|e| host_fault(&what, &e))?;
        xml.ok_or_else(|| {
            let text = format!("{what}: libvirt has no domain {}; destroy the instance", instance.uuid);
            Fault::new(FaultKind::HostRefused, text)
        })
    }
}

/// Operations that do not go on from a suspended guest's memory with its devices.
fn loses_memory(op: OpKind) -> bool {
    use OpKind as O;
    matches!(
        op,
        O::Start
            | O::Reboot
            | O::Rescue
            | O::Rebuild
            | O::Attach
            | O::Detach
            | O::ResizePrepare
            | O::MigrateBegin
            | O::LiveCommit
    )
}

/// All devices go, those of both sides of a move.
fn everything(subject: &Subject) -> Params {
    Params {
        keep_devices: subject.keeps,
        moving: subject.moving.clone(),
        ..subject.params_of(subject.plans.clone())
    }
}

/// The devices that are gone.
fn restored(subject: &Subject) -> Result<Params, Fault> {
    let devices: Vec<DevicePlan> =
        subject.plans.iter().filter(|plan| plan.claim.is_gone()).cloned().collect();
    if devices.is_empty() {
        let text = format!("restore instance {:?}: none of its devices is missing", subject.instance.name);
        return Err(Fault::new(FaultKind::InvalidRequest, text));
    }
    Ok(subject.params_of(devices))
}
