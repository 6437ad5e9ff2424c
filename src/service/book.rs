//! From a request to booked claims: parse, choose on fresh hardware, write the books, hand the saga over.
//!
//! Bookings are made one at a time, so that two requests never choose on the same room or book one name; everything
//! slow that follows (making devices, starting domains) runs beside others.

use std::collections::BTreeSet;

use serde_json::json;
use sha2::{Digest, Sha256};

use super::Service;
use super::api::{Accepted, ClaimRequest, SpawnRequest, SpawnResult};
use super::hostdevs::wishes;
use super::observe::Observation;
use crate::model::{
    Claim, ClaimId, ClaimRole, ClaimState, DomainOwner, Fault, FaultKind, Instance, InstanceUuid, MdevUuid,
    OpKind, OwnDevice, Request,
};
use crate::model::{ClaimView, JobId, SagaRow};
use crate::ops::{DevicePlan, Params};
use crate::plan::pick::{Choice, Refusal, pick};
use crate::plan::traits::explained;
use crate::store::Begin;
use crate::xml::domain::DomainDoc;

/// Who asks, and for what.
#[derive(Debug)]
struct Draft {
    instance: InstanceUuid,
    name: String,
    owner: DomainOwner,
    request: Request,
    digest: String,
    operation_id: Option<String>,
    op: OpKind,
    /// The domain, if it is ours to start.
    domain: Option<DomainDoc>,
}

/// Devices chosen for a draft, nothing written yet.
#[derive(Debug)]
struct Chosen {
    claims: Vec<Claim>,
    devices: Vec<DevicePlan>,
}

/// How far back a repeated request is looked for.
const RECENT_SAGAS: u32 = 5000;

impl Service {
    /// [`super::api::UseCases::spawn`].
    pub(super) async fn book_spawn(&self, request: SpawnRequest) -> Result<Accepted, Fault> {
        let digest = digest_of(&[&request.domain_xml, &request.flavor, &format!("{:?}", request.display)]);
        let operation_id = request.operation_id.clone();
        if let Some(again) = self.repeated(operation_id.as_deref(), &digest)? {
            return Ok(again);
        }
        let draft = self.draft_spawn(&request, digest, operation_id).await?;
        let _one_at_a_time = self.booking.lock().await;
        if let Some(again) = self.known(&draft)? {
            return Ok(again);
        }
        self.refuse_taken_domain(&draft).await?;
        let chosen = self.choose(&draft).await?;
        let xml =
            self.write_hostdevs(&request.domain_xml, Some(draft.instance), &chosen.claims, request.display)?;
        self.begin(draft, chosen, Some(xml))
    }

    /// [`super::api::UseCases::preview_spawn`].
    pub(super) async fn preview(&self, request: SpawnRequest) -> Result<SpawnResult, Fault> {
        let draft = self.draft_spawn(&request, String::new(), None).await?;
        let chosen = self.choose(&draft).await?;
        let domain_xml =
            self.write_hostdevs(&request.domain_xml, Some(draft.instance), &chosen.claims, request.display)?;
        let devices = chosen.claims.iter().map(ClaimView::from).collect();
        Ok(SpawnResult { job: None, instance: draft.instance, devices, domain_xml })
    }

    /// [`super::api::UseCases::claim`].
    pub(super) async fn book_claim(&self, request: ClaimRequest) -> Result<Accepted, Fault> {
        let digest = digest_of(&[&request.instance.to_string(), &request.flavor]);
        if let Some(again) = self.repeated(request.operation_id.as_deref(), &digest)? {
            return Ok(again);
        }
        let draft = Draft {
            instance: request.instance,
            name: request.name,
            owner: DomainOwner::Caller,
            request: Request::parse(&request.flavor)?,
            digest,
            operation_id: request.operation_id,
            op: OpKind::Claim,
            domain: None,
        };
        let _one_at_a_time = self.booking.lock().await;
        if let Some(again) = self.known(&draft)? {
            return Ok(again);
        }
        let chosen = self.choose(&draft).await?;
        self.begin(draft, chosen, None)
    }

    async fn draft_spawn(
        &self,
        request: &SpawnRequest,
        digest: String,
        operation_id: Option<String>,
    ) -> Result<Draft, Fault> {
        let flavor = Request::parse(&request.flavor)?;
        let doc = DomainDoc::parse(&request.domain_xml)?;
        self.check_hostdevs(&doc).await?;
        Ok(Draft {
            instance: doc.uuid.unwrap_or_else(|| InstanceUuid(self.ids.fresh())),
            name: doc.name.clone(),
            owner: DomainOwner::Mdevirt,
            request: flavor,
            digest,
            operation_id,
            op: OpKind::Spawn,
            domain: Some(doc),
        })
    }

    /// The job of the same operation id; another request under that id is refused.
    pub(super) fn repeated(
        &self,
        operation_id: Option<&str>,
        digest: &str,
    ) -> Result<Option<Accepted>, Fault> {
        let Some(id) = operation_id else { return Ok(None) };
        let Some(row) = self.store.saga_by_operation(id)? else { return Ok(None) };
        if row.request_digest == digest {
            return Ok(Some(Accepted { job: row.id, fresh: false }));
        }
        let text =
            format!("operation id {id:?} was used for another request ({} of {})", row.op, row.instance);
        Err(Fault::new(FaultKind::InvalidRequest, text))
    }

    /// The job that made this very instance; the instance with another request is `InstanceExists`.
    fn known(&self, draft: &Draft) -> Result<Option<Accepted>, Fault> {
        let books = self.store.books();
        let same =
            |i: &&Instance| i.uuid == draft.instance || (!draft.name.is_empty() && i.name == draft.name);
        let Some(there) = books.instances().find(same) else { return Ok(None) };
        let made_by = self.job_of_request(there.uuid, draft)?;
        match made_by {
            Some(job) => Ok(Some(Accepted { job, fresh: false })),
            None => Err(Fault::new(
                FaultKind::InstanceExists,
                format!(
                    "instance {:?} ({}) is in the books already; destroy or release it first",
                    there.name, there.uuid
                ),
            )),
        }
    }

    fn job_of_request(&self, instance: InstanceUuid, draft: &Draft) -> Result<Option<JobId>, Fault> {
        let same = |row: &SagaRow| {
            row.instance == instance && row.op == draft.op && row.request_digest == draft.digest
        };
        Ok(self.store.recent_sagas(RECENT_SAGAS)?.into_iter().find(same).map(|row| row.id))
    }

    /// A domain of that UUID or name that is not in our books belongs to somebody else.
    async fn refuse_taken_domain(&self, draft: &Draft) -> Result<(), Fault> {
        let what = format!("look for domain {:?}", draft.name);
        let taken = self.host.hypervisor.find_domain(draft.instance, &draft.name).await;
        match taken.map_err(|e| crate::ops::host_fault(&what, &e))? {
            None => Ok(()),
            Some(uuid) => {
                let text = format!(
                    "libvirt has a domain {:?} or {uuid} already; spawn under another name and UUID",
                    draft.name
                );
                Err(Fault::new(FaultKind::InstanceExists, text))
            }
        }
    }

    async fn choose(&self, draft: &Draft) -> Result<Chosen, Fault> {
        let settings = self.settings.now();
        let seen = self.observe().await?;
        let picture = seen.picture(&settings);
        // What a booking rests on is durable before it.
        self.learn(&seen, &settings, &picture)?;
        let wishes = wishes(draft.domain.as_ref(), settings.config.packing, &seen.scan);
        let choices = pick(&draft.request, &picture.capacity, &picture.mapping.without, &wishes)
            .map_err(|r| refusal_fault(&explained(r, &draft.request, &picture.resolution)))?;
        Ok(self.chosen(draft, &seen, choices))
    }

    fn chosen(&self, draft: &Draft, seen: &Observation, choices: Vec<Choice>) -> Chosen {
        let mut claims = Vec::new();
        let mut devices = Vec::new();
        for choice in choices {
            let claim = self.new_claim(draft, &choice, seen);
            let card = seen.scan.card_of(&claim.parent);
            devices.push(DevicePlan { claim: claim.clone(), card, reused: choice.reuse.is_some() });
            claims.push(claim);
        }
        Chosen { claims, devices }
    }

    fn new_claim(&self, draft: &Draft, choice: &Choice, seen: &Observation) -> Claim {
        // A UUID that any definition on this host has, on whatever parent, is never given to a new device.
        let taken: BTreeSet<MdevUuid> = seen.scan.mdevs.iter().map(|m| m.uuid).collect();
        let fresh = || std::iter::repeat_with(|| MdevUuid(self.ids.fresh())).find(|u| !taken.contains(u));
        let uuid = choice.reuse.or_else(fresh).unwrap_or_else(|| MdevUuid(self.ids.fresh()));
        Claim {
            id: ClaimId(self.ids.fresh()),
            instance: draft.instance,
            uuid,
            parent: choice.parent.clone(),
            mdev_type: choice.type_id.clone(),
            type_name: choice.type_name.clone(),
            identity: seen.identity(&choice.parent, &choice.type_id),
            card: Some(seen.scan.card_of(&choice.parent)),
            device_api: choice.device_api,
            resource_class: choice.class.clone(),
            group: choice.group.clone(),
            traits: choice.required.clone(),
            state: ClaimState::Reserved,
            role: ClaimRole::Primary,
            created_usec: self.clock.now_usec(),
        }
    }

    fn begin(&self, draft: Draft, chosen: Chosen, domain_xml: Option<String>) -> Result<Accepted, Fault> {
        let new_devices = chosen.claims.iter().zip(&chosen.devices).filter(|(_, d)| !d.reused);
        let devices = new_devices
            .map(|(c, _)| OwnDevice {
                uuid: c.uuid,
                parent: c.parent.clone(),
                type_id: c.mdev_type.clone(),
                type_name: c.type_name.clone(),
            })
            .collect();
        let params = Params {
            instance: draft.instance,
            name: draft.name.clone(),
            devices: chosen.devices,
            domain_xml,
            keep_devices: false,
        };
        let instance = Instance {
            uuid: draft.instance,
            name: draft.name,
            owner: draft.owner,
            request_digest: draft.digest.clone(),
            created_usec: self.clock.now_usec(),
        };
        let saga = self.new_saga(draft.op, &params, draft.operation_id, draft.digest);
        self.launch(saga, |begin| Begin { instance: Some(instance), claims: chosen.claims, devices, ..begin })
    }
}

/// SHA-256 over the parts of a request, to tell a repeat from another request.
pub(super) fn digest_of(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn refusal_fault(refusal: &Refusal) -> Fault {
    Fault::new(refusal.kind, refusal.message.clone()).with_details(json!({ "parents": refusal.reasons }))
}
