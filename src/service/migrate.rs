//! An instance from one host to another, the guest switched off: what each of the two hosts books.

use serde_json::json;

use super::Service;
use super::api::{Accepted, OperateWith, PrepareRequest};
use super::basis::Tries;
use super::book::{Chosen, Draft, Look, digest_of};
use super::definitions::console_of;
use super::lifecycle::Subject;
use super::observe::Observation;
use super::resize::{baggage_of, moved_on};
use crate::catalog::LockMark;
use crate::model::{
    Baggage, Claim, ClaimRole, DomainOwner, Fault, FaultKind, Instance, InstanceUuid, MdevUuid, Move,
    MoveKind, MovePhase, OpKind, Request,
};
use crate::ops::Params;
use crate::plan::handover::{Handover, Leaving, Traveller};
use crate::plan::migrate::{Moving, landings};
use crate::plan::pick::Choice;
use crate::xml::domain::{DomainDoc, without_hostdevs};

impl Service {
    /// Source: switches the guest off and hands it out.
    pub(super) async fn plan_migrate_begin(
        &self,
        subject: &Subject,
        with: &OperateWith,
    ) -> Result<Params, Fault> {
        // What cannot travel is refused before the guest is switched off.
        let running = self.handover(&subject.instance, &subject.claims, None).await?.running;
        let moving = Move {
            instance: subject.instance.uuid,
            kind: MoveKind::Out,
            phase: MovePhase::Prepared,
            baggage: Baggage { running, peer: with.peer.clone(), ..Baggage::default() },
        };
        Ok(Params { moving: Some(moving), ran: running, ..subject.params() })
    }

    pub(super) async fn handover(
        &self,
        instance: &Instance,
        claims: &[Claim],
        moving: Option<&Move>,
    ) -> Result<Handover, Fault> {
        let out = moving.filter(|m| m.kind == MoveKind::Out);
        let running = match out {
            Some(out) => out.baggage.running,
            None => self.runs(instance.uuid).await?,
        };
        Handover::of(Leaving {
            host: &self.host_name,
            instance,
            claims,
            begun: out.is_some(),
            running,
            lock: self.lock_mark(),
            domain_xml: self.definition(instance).await?,
        })
    }

    /// [`super::api::UseCases::export_instance`].
    pub(super) async fn export(&self, text: &str) -> Result<String, Fault> {
        let instance = self.instance(text)?;
        let books = self.store.books();
        let own = books.claims_of(instance.uuid).filter(|c| c.role != ClaimRole::Incoming);
        let claims: Vec<Claim> = own.cloned().collect();
        let document = self.handover(&instance, &claims, books.move_of(instance.uuid)).await?;
        serde_json::to_string_pretty(&document).map_err(|e| Fault::new(FaultKind::Internal, e.to_string()))
    }

    /// [`super::api::UseCases::migrate_prepare`].
    pub(super) async fn book_arrival(&self, request: PrepareRequest) -> Result<Accepted, Fault> {
        let options = format!("{:?} {} {}", request.flavor, request.allow_type_change, request.evacuate);
        let op = if request.live { OpKind::LivePrepare } else { OpKind::MigratePrepare };
        let digest = digest_of(&[op.as_str(), &request.document, &options]);
        if let Some(again) = self.repeated(request.operation_id.as_deref(), &digest)? {
            return Ok(again);
        }
        let document = Handover::parse(&request.document)?;
        if !document.begun && !request.evacuate && !request.live {
            let text = format!(
                "migrate {:?} from {}: the document was made before the migration was begun there, so the guest may still run",
                document.name, document.host
            );
            return Err(Fault::new(FaultKind::InvalidRequest, text));
        }
        self.same_lock(&document.name, &document.host, document.lock.as_ref())?;
        self.check_domain(&document).await?;
        let flavor = request.flavor.clone().or_else(|| document.flavor.clone());
        let draft = Draft {
            instance: document.instance,
            name: document.name.clone(),
            owner: DomainOwner::Mdevirt,
            flavor,
            digest,
            operation_id: request.operation_id.clone(),
            op,
        };
        let _one_at_a_time = self.booking.lock().await;
        if let Some(again) = self.known(&draft)? {
            return Ok(again);
        }
        self.refuse_taken_domain(&draft).await?;
        let mut tries = Tries::default();
        loop {
            let chosen = self.choose_arrival(&document, &request).await?;
            if request.live {
                self.check_live(&document, &chosen).await?;
            }
            let params = self.arrival(&document, &draft, &chosen)?;
            let begun = self.begin_new(&draft, chosen, &params);
            if !tries.again(&begun) {
                return begun;
            }
        }
    }

    /// The lock of traits in force here.
    pub(super) fn lock_mark(&self) -> Option<LockMark> {
        self.settings.now().lock.as_ref().map(LockMark::from)
    }

    /// Types mean the same on both hosts only under one lock.
    pub(super) fn same_lock(&self, name: &str, host: &str, theirs: Option<&LockMark>) -> Result<(), Fault> {
        let ours = self.lock_mark();
        if ours.as_ref().map(|l| l.digest) == theirs.map(|l| l.digest) {
            return Ok(());
        }
        let shown = |mark: Option<&LockMark>| match mark {
            Some(mark) => format!("revision {}, digest {}", mark.revision, mark.digest.short()),
            None => "none".to_owned(),
        };
        let (there, here) = (shown(theirs), shown(ours.as_ref()));
        let text = format!(
            "migrate {name:?} from {host}: the lock of traits there is {there}, here it is {here}; ship one traits.lock to both, \
             `mdevirtctl trait verify` on exports of both says what differs"
        );
        Err(Fault::new(FaultKind::TraitMismatch, text)
            .with_details(json!({ "source": theirs, "target": ours })))
    }

    /// The seal says that the document is whole, not that its parts belong together: the domain must be the instance's, and
    /// name no device of this host that is not free for it.
    pub(super) async fn check_domain(&self, document: &Handover) -> Result<(), Fault> {
        let theirs: Vec<MdevUuid> = document.devices.iter().map(|d| d.uuid).collect();
        let doc = DomainDoc::parse(without_hostdevs(&document.domain_xml, &theirs)?)?;
        if doc.name != document.name || doc.uuid != Some(document.instance) {
            let text = format!(
                "the migration document: it is of instance {:?} ({}), its domain is another one, {:?}",
                document.name, document.instance, doc.name
            );
            return Err(Fault::new(FaultKind::InvalidRequest, text));
        }
        self.check_hostdevs(&doc).await
    }

    /// Devices of the same identities; of another flavor, or by the flavor alone, where that was asked for.
    async fn choose_arrival(&self, document: &Handover, request: &PrepareRequest) -> Result<Chosen, Fault> {
        if request.flavor.is_none() && !request.allow_type_change {
            return self.land(document, Look::AndLearn).await;
        }
        let flavor = request.flavor.as_ref().or(document.flavor.as_ref()).ok_or_else(|| {
            let text = format!("the flavor of {:?} is not known; give one with --flavor", document.name);
            Fault::new(FaultKind::InvalidRequest, text)
        })?;
        if request.flavor.is_none() {
            same_count(document, flavor)?;
        }
        if flavor.trim().is_empty() {
            return Ok(Chosen::default());
        }
        let theirs: Vec<MdevUuid> = document.devices.iter().map(|d| d.uuid).collect();
        let (instance, xml) = (document.instance, &document.domain_xml);
        let chosen = self.choose_instead(instance, flavor, xml, &theirs).await?;
        warn_of_changes(document, &chosen);
        Ok(chosen)
    }

    pub(super) async fn land(&self, document: &Handover, look: Look) -> Result<Chosen, Fault> {
        let seen = self.observe().await?;
        let whose = (document.instance, document.name.as_str(), document.host.as_str());
        self.land_on(&seen, look, whose, (&document.devices, ClaimRole::Incoming))
    }

    /// Devices of the same identities, on what was seen.
    pub(super) fn land_on(
        &self,
        seen: &Observation,
        look: Look,
        (instance, name, host): (InstanceUuid, &str, &str),
        (devices, role): (&[Traveller], ClaimRole),
    ) -> Result<Chosen, Fault> {
        let settings = self.settings.now();
        let picture = seen.picture(&settings);
        if look != Look::Only {
            self.learn(seen, &settings, &picture)?;
        }
        let moving: Vec<Moving> =
            devices.iter().map(|d| Moving { uuid: d.uuid, identity: d.identity.clone() }).collect();
        let landed = landings(&moving, &picture.capacity, &picture.resolution).map_err(|err| {
            let text = format!("migrate {name:?} from {host}: {err}");
            let no_room = err.reasons.iter().any(|r| !r.reason.starts_with("serves "));
            let kind = if no_room { FaultKind::NoCapacity } else { FaultKind::Incompatible };
            Fault::new(kind, text).with_details(json!({ "identity": err.identity, "parents": err.reasons }))
        })?;
        let choices = devices.iter().zip(landed).map(|(device, landing)| Choice {
            group: device.group.clone(),
            type_name: seen
                .identity(&landing.parent, &landing.type_id)
                .map_or_else(|| landing.type_id.to_string(), |i| i.label().to_owned()),
            parent: landing.parent,
            type_id: landing.type_id,
            device_api: device.device_api,
            class: device.resource_class.clone(),
            required: device.traits.clone(),
            reuse: None,
        });
        Ok(self.chosen((instance, role), seen, choices.collect()))
    }

    fn arrival(&self, document: &Handover, draft: &Draft, chosen: &Chosen) -> Result<Params, Fault> {
        let live = draft.op == OpKind::LivePrepare;
        // libvirt brings the definition of a guest that runs.
        let new_xml = if live { None } else { Some(self.landed_xml(document, chosen)?) };
        let pairs: Vec<_> = document
            .devices
            .iter()
            .zip(&chosen.claims)
            .map(|(there, here)| json!({ "source": there.uuid, "target": here.uuid }))
            .collect();
        let moving = Move {
            instance: draft.instance,
            kind: if live { MoveKind::LiveIn } else { MoveKind::In },
            phase: MovePhase::Prepared,
            baggage: Baggage {
                running: document.running,
                new_xml,
                peer: Some(document.host.clone()),
                ..Baggage::default()
            },
        };
        Ok(Params {
            moving: Some(moving),
            document: Some(json!({ "host": self.host_name, "pairs": pairs })),
            ..Params::new(draft.instance, draft.name.clone(), chosen.devices.clone())
        })
    }

    /// The source's definition with the target's devices, each at the same place in the guest.
    fn landed_xml(&self, document: &Handover, chosen: &Chosen) -> Result<String, Fault> {
        let theirs: Vec<_> = document.devices.iter().map(|d| (d.uuid, d.device_api)).collect();
        let ours: Vec<_> = chosen.claims.iter().map(|c| (c.uuid, c.device_api)).collect();
        let uuids: Vec<MdevUuid> = theirs.iter().map(|(uuid, _)| *uuid).collect();
        let display = console_of(&DomainDoc::parse(&document.domain_xml)?, &uuids);
        self.exchanged(&document.domain_xml, &theirs, &ours, display)
    }

    /// Target: the guest is here from now on.
    pub(super) fn plan_migrate_finish(&self, subject: &Subject) -> Params {
        let baggage = baggage_of(subject);
        Params {
            domain_xml: baggage.new_xml.clone(),
            start: baggage.running,
            moving: moved_on(subject, MovePhase::Finished, baggage),
            ..subject.params_of(subject.plans.clone())
        }
    }

    /// Source: everything goes. Target: the move is over.
    pub(super) fn plan_migrate_confirm(&self, subject: &Subject) -> Params {
        let leaves = subject.moving.as_ref().is_some_and(|m| m.kind == MoveKind::Out);
        Params { leaves, keep_devices: subject.keeps, ..subject.params_of(subject.plans.clone()) }
    }

    /// Target: everything goes. Source: the guest is here again, and runs if it ran.
    pub(super) fn plan_migrate_revert(&self, subject: &Subject) -> Params {
        let leaves = subject.moving.as_ref().is_some_and(|m| m.kind == MoveKind::In);
        let start = baggage_of(subject).running && !leaves;
        Params { leaves, start, keep_devices: subject.keeps, ..subject.params_of(subject.plans.clone()) }
    }
}

/// A device that was attached or detached later is not in the flavor: that alone would not bring all of them along.
fn same_count(document: &Handover, flavor: &str) -> Result<(), Fault> {
    let wanted = if flavor.trim().is_empty() { 0 } else { Request::parse(flavor)?.device_count() };
    if usize::try_from(wanted).is_ok_and(|wanted| wanted == document.devices.len()) {
        return Ok(());
    }
    let text = format!(
        "{:?} has {} devices and its flavor {flavor:?} asks for {wanted}; say with --flavor what it shall have here",
        document.name,
        document.devices.len()
    );
    Err(Fault::new(FaultKind::InvalidRequest, text))
}

/// Says which devices are of another type than on the source; that was asked for, and an operator should find it in the log.
fn warn_of_changes(document: &Handover, chosen: &Chosen) {
    let instance: InstanceUuid = document.instance;
    for (there, here) in document.devices.iter().zip(&chosen.claims) {
        if here.identity.as_ref() != Some(&there.identity) {
            tracing::warn!(%instance, was = %there.identity, now = %here.type_name, "the type changes with the host");
        }
    }
}
