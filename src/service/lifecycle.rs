//! Destroy, start, stop and release: operations on an instance that is in the books.

use serde_json::json;

use super::Service;
use super::api::Accepted;
use super::book::digest_of;
use crate::config::OnRelease;
use crate::model::{
    Claim, ClaimState, DomainOwner, Fault, FaultKind, HostScan, Instance, InstanceUuid, OpKind,
};
use crate::ops::{DevicePlan, Params, host_fault};
use crate::store::{Begin, Books, Recheck};

impl Service {
    /// Books one operation on an instance given by name or UUID.
    pub(super) async fn operate(
        &self,
        op: OpKind,
        text: &str,
        operation_id: Option<String>,
    ) -> Result<Accepted, Fault> {
        let digest = digest_of(&[op.as_str(), text]);
        if let Some(again) = self.repeated(operation_id.as_deref(), &digest)? {
            return Ok(again);
        }
        let instance = self.instance(text)?;
        refuse_wrong_owner(op, &instance)?;
        let claims: Vec<Claim> = self.store.books().claims_of(instance.uuid).cloned().collect();
        let devices = self.plans_of(&claims).await?;
        // What a stuck operation left half made is no device to keep.
        let all_made = claims.iter().all(|c| c.state != ClaimState::Reserved);
        let params = Params {
            instance: instance.uuid,
            name: instance.name.clone(),
            devices,
            domain_xml: None,
            keep_devices: all_made && self.settings.now().config.on_release == OnRelease::Keep,
        };
        let saga = self.new_saga(op, &params, operation_id, digest);
        let recheck: Recheck = Box::new(move |books| recheck(books, op, instance.uuid, &claims));
        self.launch(saga, |begin| Begin { recheck: Some(recheck), ..begin })
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
}

/// The claims are those that were planned with, and nothing but giving back follows on one that is half made or gone.
fn recheck(books: &Books, op: OpKind, instance: InstanceUuid, planned: &[Claim]) -> Result<(), Fault> {
    let now = || books.claims_of(instance);
    if !now().map(|c| c.id).eq(planned.iter().map(|c| c.id)) {
        let text =
            format!("the devices of instance {instance} changed while {op} was looked into; ask again");
        return Err(Fault::new(FaultKind::InstanceBusy, text));
    }
    let half = |c: &&Claim| matches!(c.state, ClaimState::Reserved | ClaimState::Releasing);
    match now().find(half) {
        Some(claim) if matches!(op, OpKind::Start | OpKind::Stop) => {
            let Claim { uuid, state, .. } = claim;
            let text = format!(
                "{op} instance {instance}: its device {uuid} is {state} since an operation got stuck; destroy it"
            );
            Err(Fault::new(FaultKind::OperationStuck, text))
        }
        Some(_) | None => Ok(()),
    }
}

fn refuse_wrong_owner(op: OpKind, instance: &Instance) -> Result<(), Fault> {
    let text = match (op, instance.owner) {
        (OpKind::Destroy | OpKind::Start | OpKind::Stop, DomainOwner::Caller) => {
            "its domain belongs to the orchestrator that claimed the devices; use release"
        }
        (OpKind::Release, DomainOwner::Mdevirt) => "its domain was spawned here; use destroy",
        (
            OpKind::Spawn | OpKind::Claim | OpKind::Destroy | OpKind::Start | OpKind::Stop | OpKind::Release,
            _,
        ) => {
            return Ok(());
        }
    };
    Err(Fault::new(
        FaultKind::InvalidRequest,
        format!("{op} instance {:?} ({}): {text}", instance.name, instance.uuid),
    ))
}
