//! From a request to booked claims: parse, choose on fresh hardware, write the books, hand the saga over.
//!
//! Bookings are made one at a time, so that two requests never choose on the same room or book one name; everything
//! slow that follows (making devices, starting domains) runs beside others.

use std::collections::BTreeSet;

use serde_json::json;
use sha2::{Digest, Sha256};

use super::Service;
use super::api::{Accepted, ClaimRequest, SpawnRequest, SpawnResult};
use super::basis::{Basis, Tries};
use super::hostdevs::wishes;
use super::observe::Observation;
use crate::model::{
    Claim, ClaimId, ClaimRole, ClaimState, DomainOwner, Fault, FaultKind, Instance, InstanceUuid, MdevUuid,
    OpKind, OwnDevice, Request,
};
use crate::model::{ClaimView, JobId, SagaRow};
use crate::ops::{DevicePlan, Params};
use crate::plan::capacity::ParentCapacity;
use crate::plan::pick::{Choice, Refusal, pick};
use crate::plan::traits::explained;
use crate::store::{Begin, Recheck};
use crate::xml::domain::{DomainDoc, without_hostdevs};

/// An instance that is to be in the books.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) instance: InstanceUuid,
    pub(super) name: String,
    pub(super) owner: DomainOwner,
    pub(super) flavor: Option<String>,
    pub(super) digest: String,
    pub(super) operation_id: Option<String>,
    pub(super) op: OpKind,
}

/// For whom devices are chosen, and which.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) instance: InstanceUuid,
    pub(super) request: &'a Request,
    /// The domain, where it is known, without devices that it is about to lose.
    pub(super) domain: Option<&'a DomainDoc>,
    /// What the new claims are to the instance.
    pub(super) role: ClaimRole,
}

/// Devices that were chosen, nothing written yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Chosen {
    pub(super) claims: Vec<Claim>,
    pub(super) devices: Vec<DevicePlan>,
    pub(super) basis: Basis,
}

impl Draft {
    /// A domain of libvirt's own; `asked` tells one request from another.
    pub(super) fn plain(instance: InstanceUuid, name: &str, flavor: Option<String>, asked: &str) -> Self {
        Self {
            instance,
            name: name.to_owned(),
            owner: DomainOwner::Libvirt,
            flavor,
            digest: digest_of(&[&instance.to_string(), asked]),
            operation_id: None,
            op: OpKind::Claim,
        }
    }
}

impl Chosen {
    /// Gives a device another UUID than the one that was made up for it.
    pub(super) fn rename(&mut self, at: usize, uuid: MdevUuid) {
        if let (Some(claim), Some(plan)) = (self.claims.get_mut(at), self.devices.get_mut(at)) {
            (claim.uuid, plan.claim.uuid) = (uuid, uuid);
        }
    }
}

/// What a look at the host is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// To show; nothing is written.
    Only,
    /// To book; what it teaches is written before.
    AndLearn,
    /// To book for a domain that names its devices already: an idle device has another UUID.
    ForNamed,
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
        let (draft, wanted, doc) = self.draft_spawn(&request, digest, operation_id).await?;
        let _one_at_a_time = self.booking.lock().await;
        if let Some(again) = self.known(&draft)? {
            return Ok(again);
        }
        self.refuse_taken_domain(&draft).await?;
        let mut tries = Tries::default();
        loop {
            let begun = self.begin_spawn(&request, &draft, &asked(&draft, &wanted, Some(&doc))).await;
            if !tries.again(&begun) {
                return begun;
            }
        }
    }

    async fn begin_spawn(
        &self,
        request: &SpawnRequest,
        draft: &Draft,
        asked: &Asked<'_>,
    ) -> Result<Accepted, Fault> {
        let chosen = self.choose(asked).await?;
        let (xml, uuid) = (&request.domain_xml, Some(draft.instance));
        let xml = self.write_hostdevs(xml, uuid, &chosen.claims, request.display)?;
        let params = Params::new(draft.instance, draft.name.clone(), chosen.devices.clone());
        self.begin_new(draft, chosen, &Params { domain_xml: Some(xml), ..params })
    }

    /// [`super::api::UseCases::preview_spawn`].
    pub(super) async fn preview(&self, request: SpawnRequest) -> Result<SpawnResult, Fault> {
        let (draft, wanted, doc) = self.draft_spawn(&request, String::new(), None).await?;
        let seen = self.observe().await?;
        let chosen = self.choose_of(&asked(&draft, &wanted, Some(&doc)), &seen, Look::Only)?;
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
        let wanted = Request::parse(&request.flavor)?;
        let draft = Draft {
            instance: request.instance,
            name: request.name,
            owner: DomainOwner::Caller,
            flavor: Some(request.flavor),
            digest,
            operation_id: request.operation_id,
            op: OpKind::Claim,
        };
        let _one_at_a_time = self.booking.lock().await;
        if let Some(again) = self.known(&draft)? {
            return Ok(again);
        }
        let mut tries = Tries::default();
        loop {
            let chosen = self.choose(&asked(&draft, &wanted, None)).await?;
            let params = Params::new(draft.instance, draft.name.clone(), chosen.devices.clone());
            let begun = self.begin_new(&draft, chosen, &params);
            if !tries.again(&begun) {
                return begun;
            }
        }
    }

    async fn draft_spawn(
        &self,
        request: &SpawnRequest,
        digest: String,
        operation_id: Option<String>,
    ) -> Result<(Draft, Request, DomainDoc), Fault> {
        let wanted = Request::parse(&request.flavor)?;
        let doc = DomainDoc::parse(&request.domain_xml)?;
        self.check_hostdevs(&doc).await?;
        let draft = Draft {
            instance: doc.uuid.unwrap_or_else(|| InstanceUuid(self.ids.fresh())),
            name: doc.name.clone(),
            owner: DomainOwner::Mdevirt,
            flavor: Some(request.flavor.clone()),
            digest,
            operation_id,
            op: OpKind::Spawn,
        };
        Ok((draft, wanted, doc))
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
    pub(super) fn known(&self, draft: &Draft) -> Result<Option<Accepted>, Fault> {
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
    pub(super) async fn refuse_taken_domain(&self, draft: &Draft) -> Result<(), Fault> {
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

    /// Chooses devices. What a booking rests on is durable before it.
    pub(super) async fn choose(&self, asked: &Asked<'_>) -> Result<Chosen, Fault> {
        let seen = self.observe().await?;
        self.choose_of(asked, &seen, Look::AndLearn)
    }

    /// Chooses devices of a flavor for the other side of a move. The devices of this side leave the guest, so they stand in
    /// nobody's way there.
    pub(super) async fn choose_instead(
        &self,
        instance: InstanceUuid,
        flavor: &str,
        xml: &str,
        leaving: &[MdevUuid],
    ) -> Result<Chosen, Fault> {
        let request = Request::parse(flavor)?;
        let doc = DomainDoc::parse(without_hostdevs(xml, leaving)?)?;
        let (domain, role) = (Some(&doc), ClaimRole::Incoming);
        self.choose(&Asked { instance, request: &request, domain, role }).await
    }

    /// Chooses of what was seen.
    pub(super) fn choose_of(
        &self,
        asked: &Asked<'_>,
        seen: &Observation,
        look: Look,
    ) -> Result<Chosen, Fault> {
        let settings = self.settings.now();
        let mut picture = seen.picture(&settings);
        if look != Look::Only {
            self.learn(seen, &settings, &picture)?;
        }
        if look == Look::ForNamed {
            picture.capacity.iter_mut().for_each(ParentCapacity::without_idle);
        }
        let wishes = wishes(asked.domain, settings.config.packing, &seen.scan);
        let choices = pick(asked.request, &picture.capacity, &picture.mapping.without, &wishes)
            .map_err(|r| refusal_fault(&explained(r, asked.request, &picture.resolution)))?;
        Ok(self.chosen((asked.instance, asked.role), seen, choices))
    }

    /// Claims for choices.
    pub(super) fn chosen(
        &self,
        of: (InstanceUuid, ClaimRole),
        seen: &Observation,
        choices: Vec<Choice>,
    ) -> Chosen {
        let mut chosen = Chosen::default();
        for choice in choices {
            let claim = self.new_claim(of, &choice, seen);
            let card = seen.scan.card_of(&claim.parent);
            chosen.devices.push(DevicePlan { claim: claim.clone(), card, reused: choice.reuse.is_some() });
            chosen.claims.push(claim);
        }
        chosen.basis = Basis::of(&chosen.claims, seen);
        chosen
    }

    fn new_claim(
        &self,
        (instance, role): (InstanceUuid, ClaimRole),
        choice: &Choice,
        seen: &Observation,
    ) -> Claim {
        // A UUID that any definition on this host has, on whatever parent, is never given to a new device.
        let taken: BTreeSet<MdevUuid> = seen.scan.mdevs.iter().map(|m| m.uuid).collect();
        let fresh = || std::iter::repeat_with(|| MdevUuid(self.ids.fresh())).find(|u| !taken.contains(u));
        let uuid = choice.reuse.or_else(fresh).unwrap_or_else(|| MdevUuid(self.ids.fresh()));
        Claim {
            id: ClaimId(self.ids.fresh()),
            instance,
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
            was_parked: false,
            role,
            created_usec: self.clock.now_usec(),
        }
    }

    /// Begins an operation that brings an instance into the books.
    pub(super) fn begin_new(
        &self,
        draft: &Draft,
        chosen: Chosen,
        params: &Params,
    ) -> Result<Accepted, Fault> {
        let Chosen { claims, basis, .. } = chosen;
        let devices = new_devices(&claims, &params.devices);
        let instance = Instance {
            uuid: draft.instance,
            name: draft.name.clone(),
            owner: draft.owner,
            request_digest: draft.digest.clone(),
            flavor: draft.flavor.clone(),
            created_usec: self.clock.now_usec(),
        };
        let saga = self.new_saga(draft.op, params, draft.operation_id.clone(), draft.digest.clone());
        let recheck: Recheck = Box::new(move |books| basis.check(books));
        let recheck = Some(recheck);
        self.launch(saga, |begin| Begin { instance: Some(instance), claims, devices, recheck, ..begin })
    }
}

fn asked<'a>(draft: &Draft, request: &'a Request, domain: Option<&'a DomainDoc>) -> Asked<'a> {
    Asked { instance: draft.instance, request, domain, role: ClaimRole::Primary }
}

/// Devices that are ours from the booking on: those of new claims that did not exist before.
pub(super) fn new_devices(claims: &[Claim], plans: &[DevicePlan]) -> Vec<OwnDevice> {
    let is_new = |c: &&Claim| !plans.iter().any(|d| d.claim.id == c.id && d.reused);
    let device = |c: &Claim| OwnDevice {
        uuid: c.uuid,
        parent: c.parent.clone(),
        type_id: c.mdev_type.clone(),
        type_name: c.type_name.clone(),
    };
    claims.iter().filter(is_new).map(device).collect()
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
