//! Another flavor for an instance on this host. Both sides are booked until it is confirmed or reverted.

use super::Service;
use super::api::OperateWith;
use super::book::Chosen;
use super::lifecycle::{Booking, Subject};
use crate::model::{Baggage, ClaimRole, DeviceApi, Fault, FaultKind, MdevUuid, Move, MoveKind, MovePhase};
use crate::ops::{DevicePlan, Params};

impl Service {
    /// Chooses the devices of the new flavor beside the old ones.
    pub(super) async fn plan_resize(&self, subject: &Subject, with: &OperateWith) -> Result<Booking, Fault> {
        let flavor = with.flavor()?.trim();
        let old: Vec<MdevUuid> = subject.claims.iter().map(|c| c.uuid).collect();
        let chosen = match flavor {
            "" => Chosen::default(),
            _ => {
                let xml = self.definition(&subject.instance).await?;
                self.choose_instead(subject.instance.uuid, flavor, &xml, &old).await?
            }
        };
        let moving = Move {
            instance: subject.instance.uuid,
            kind: MoveKind::Resize,
            phase: MovePhase::Prepared,
            baggage: Baggage {
                new_devices: chosen.claims.iter().map(|c| c.uuid).collect(),
                old_flavor: subject.instance.flavor.clone(),
                new_flavor: Some(flavor.to_owned()),
                display: with.display,
                ..Baggage::default()
            },
        };
        let others = subject.plans.clone();
        let Chosen { claims: new, devices, basis } = chosen;
        let params = Params { others, moving: Some(moving), ..subject.params_of(devices) };
        Ok(Booking { params, new, basis })
    }

    /// Changes over to the new side.
    pub(super) async fn plan_resize_finish(&self, subject: &Subject) -> Result<Params, Fault> {
        let (new, old) = (subject.of(ClaimRole::Incoming), subject.of(ClaimRole::Primary));
        let old_xml = self.definition(&subject.instance).await?;
        let running = self.runs(subject.instance.uuid).await?;
        let baggage = baggage_of(subject);
        all_there(&new, &baggage.new_devices, "finish", "revert")?;
        let domain_xml = self.exchanged(&old_xml, &kinds(&old), &kinds(&new), baggage.display)?;
        let flavor = baggage.new_flavor.clone();
        let bare = new.is_empty() || old.is_empty();
        let old_devices = old.iter().map(|d| d.claim.uuid).collect();
        let baggage = Baggage { running, old_xml: Some(old_xml.clone()), old_devices, ..baggage };
        Ok(Params {
            others: old,
            domain_xml: Some(domain_xml),
            old_xml: Some(old_xml),
            start: running,
            ran: running,
            bare,
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
        let moving = moved_on(subject, MovePhase::Prepared, baggage.clone());
        let flavor = baggage.old_flavor;
        let back = Params { keep_devices: subject.keeps, flavor, moving, ..subject.params_of(Vec::new()) };
        let finished = subject.moving.as_ref().is_some_and(|m| m.phase == MovePhase::Finished);
        if !finished {
            let (devices, others) = (subject.of(ClaimRole::Primary), subject.of(ClaimRole::Incoming));
            return Ok(Params { devices, others, ..back });
        }
        let (devices, others) = (subject.of(ClaimRole::Outgoing), subject.of(ClaimRole::Primary));
        all_there(&devices, &baggage.old_devices, "revert", "confirm")?;
        let running = self.runs(subject.instance.uuid).await?;
        Ok(Params {
            bare: devices.is_empty() || others.is_empty(),
            devices,
            others,
            old_xml: Some(self.definition(&subject.instance).await?),
            domain_xml: baggage.old_xml,
            start: running,
            ran: running,
            ..back
        })
    }
}

/// A side of which an operation that got stuck has given a part back is no side to change over to.
fn all_there(side: &[DevicePlan], wanted: &[MdevUuid], verb: &str, other: &str) -> Result<(), Fault> {
    match wanted.iter().find(|uuid| side.iter().all(|plan| plan.claim.uuid != **uuid)) {
        None => Ok(()),
        Some(gone) => {
            let text = format!(
                "{verb} the resize: its device {gone} was given back by a {other} that got stuck; {other} it again"
            );
            Err(Fault::new(FaultKind::InvalidRequest, text))
        }
    }
}

fn kinds(plans: &[DevicePlan]) -> Vec<(MdevUuid, DeviceApi)> {
    plans.iter().map(|plan| (plan.claim.uuid, plan.claim.device_api)).collect()
}

/// What the move carries; nothing if there is none.
pub(super) fn baggage_of(subject: &Subject) -> Baggage {
    subject.moving.as_ref().map(|m| m.baggage.clone()).unwrap_or_default()
}

/// The move in its next phase.
pub(super) fn moved_on(subject: &Subject, phase: MovePhase, baggage: Baggage) -> Option<Move> {
    subject.moving.clone().map(|moving| Move { phase, baggage, ..moving })
}
