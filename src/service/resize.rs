//! Another flavor for an instance on this host. Both sides are booked until it is confirmed or reverted.

use super::Service;
use super::api::OperateWith;
use super::book::{Asked, Chosen};
use super::lifecycle::{Booking, Subject};
use crate::model::{Baggage, ClaimRole, Fault, FaultKind, MdevUuid, Move, MoveKind, MovePhase, Request};
use crate::ops::Params;
use crate::xml::domain::{DomainDoc, without_hostdevs};

impl Service {
    /// Chooses the devices of the new flavor beside the old ones.
    pub(super) async fn plan_resize(&self, subject: &Subject, with: &OperateWith) -> Result<Booking, Fault> {
        let missing = || Fault::new(FaultKind::InvalidRequest, "option flavor is missing");
        let flavor = with.flavor.as_ref().ok_or_else(missing)?.trim();
        let chosen = self.choose_new_side(subject, flavor).await?;
        let moving = Move {
            instance: subject.instance.uuid,
            kind: MoveKind::Resize,
            phase: MovePhase::Prepared,
            baggage: Baggage {
                old_flavor: subject.instance.flavor.clone(),
                new_flavor: Some(flavor.to_owned()),
                display: with.display,
                ..Baggage::default()
            },
        };
        let others = subject.plans.clone();
        let params = Params { others, moving: Some(moving), ..subject.params_of(chosen.devices) };
        Ok(Booking { params, new: chosen.claims })
    }

    /// An empty flavor is one without devices. The old devices leave the guest, so they stand in nobody's way there.
    async fn choose_new_side(&self, subject: &Subject, flavor: &str) -> Result<Chosen, Fault> {
        if flavor.is_empty() {
            return Ok(Chosen::default());
        }
        let request = Request::parse(flavor)?;
        let old: Vec<MdevUuid> = subject.claims.iter().map(|c| c.uuid).collect();
        let doc = DomainDoc::parse(without_hostdevs(&self.definition(&subject.instance).await?, &old)?)?;
        let asked = Asked {
            instance: subject.instance.uuid,
            request: &request,
            domain: Some(&doc),
            role: ClaimRole::Incoming,
        };
        self.choose(&asked).await
    }

    /// Changes over to the new side.
    pub(super) async fn plan_resize_finish(&self, subject: &Subject) -> Result<Params, Fault> {
        let (new, old) = (subject.of(ClaimRole::Incoming), subject.of(ClaimRole::Primary));
        let old_xml = self.definition(&subject.instance).await?;
        let running = self.runs(subject.instance.uuid).await?;
        let baggage = baggage_of(subject);
        let domain_xml = self.exchanged(&old_xml, &old, &new, baggage.display)?;
        let flavor = baggage.new_flavor.clone();
        let baggage = Baggage { running, old_xml: Some(old_xml.clone()), ..baggage };
        Ok(Params {
            others: old,
            domain_xml: Some(domain_xml),
            old_xml: Some(old_xml),
            start: running,
            flavor,
            moving: moved_on(subject, MovePhase::Finished, baggage),
            ..subject.params_of(new)
        })
    }

    /// Gives the old side back.
    pub(super) fn plan_resize_confirm(&self, subject: &Subject) -> Params {
        let others = subject.of(ClaimRole::Outgoing);
        Params { others, keep_devices: subject.keeps, ..subject.params_of(subject.of(ClaimRole::Primary)) }
    }

    /// Goes back to the old side. Before the change over only the new devices go.
    pub(super) async fn plan_resize_revert(&self, subject: &Subject) -> Result<Params, Fault> {
        let baggage = baggage_of(subject);
        let keep_devices = subject.keeps;
        let flavor = baggage.old_flavor;
        let finished = subject.moving.as_ref().is_some_and(|m| m.phase == MovePhase::Finished);
        if !finished {
            let (old, others) = (subject.of(ClaimRole::Primary), subject.of(ClaimRole::Incoming));
            return Ok(Params { others, keep_devices, flavor, ..subject.params_of(old) });
        }
        let (old, others) = (subject.of(ClaimRole::Outgoing), subject.of(ClaimRole::Primary));
        Ok(Params {
            others,
            keep_devices,
            flavor,
            old_xml: Some(self.definition(&subject.instance).await?),
            domain_xml: baggage.old_xml,
            start: self.runs(subject.instance.uuid).await?,
            ..subject.params_of(old)
        })
    }
}

/// What the move carries; nothing if there is none.
pub(super) fn baggage_of(subject: &Subject) -> Baggage {
    subject.moving.as_ref().map(|m| m.baggage.clone()).unwrap_or_default()
}

/// The move in its next phase.
pub(super) fn moved_on(subject: &Subject, phase: MovePhase, baggage: Baggage) -> Option<Move> {
    subject.moving.clone().map(|moving| Move { phase, baggage, ..moving })
}
