//! Operations on the domain's definition or memory: suspend, resume, rescue, unrescue, rebuild. The devices stay.

use super::Service;
use super::api::OperateWith;
use super::lifecycle::Subject;
use crate::host::HostdevXml;
use crate::model::{
    Baggage, Claim, DisplayWish, Fault, FaultKind, Hostdev, Move, MoveKind, MovePhase, OpKind,
};
use crate::ops::{DevicePlan, Params};
use crate::xml::domain::{DomainDoc, with_devices, without_hostdevs};

impl Service {
    /// Suspend and resume.
    pub(super) async fn plan_memory(&self, op: OpKind, subject: &Subject) -> Result<Params, Fault> {
        let (name, uuid) = (&subject.instance.name, subject.instance.uuid);
        let saved = self.is_saved(&subject.instance).await?;
        let runs = self.runs(uuid).await?;
        let why = match (op == OpKind::Suspend, runs, saved) {
            (true, false, _) => Some("its guest does not run"),
            (false, true, _) => Some("its guest runs"),
            (false, false, false) => Some("it is not suspended; use start"),
            (true, true, _) | (false, false, true) => None,
        };
        if let Some(why) = why {
            return Err(Fault::new(FaultKind::InvalidRequest, format!("{op} instance {name:?}: {why}")));
        }
        let params = subject.params();
        let xml = self.definition(&subject.instance).await?;
        let hostdevs = self.hostdevs(&xml, &params.devices)?;
        Ok(Params { hostdevs, start: op == OpKind::Resume, ran: op == OpKind::Suspend, ..params })
    }

    /// The `<hostdev>` of each device as a definition has it, with its place in the guest; a plain one where it has none.
    pub(super) fn hostdevs(&self, xml: &str, devices: &[DevicePlan]) -> Result<Vec<HostdevXml>, Fault> {
        let doc = DomainDoc::parse(xml)?;
        let element = |claim: &Claim| match doc.element(xml, claim.uuid) {
            Some(element) => Ok(HostdevXml { uuid: claim.uuid, xml: element.to_owned() }),
            None => self.plain_hostdev(claim),
        };
        devices.iter().map(|plan| element(&plan.claim)).collect()
    }

    /// A `<hostdev>` without console.
    pub(super) fn plain_hostdev(&self, claim: &Claim) -> Result<HostdevXml, Fault> {
        let hostdev = Hostdev { uuid: claim.uuid, model: claim.device_api, display: false, ramfb: false };
        Ok(HostdevXml { uuid: claim.uuid, xml: self.templates.hostdev(&hostdev)? })
    }

    /// Rescue, unrescue and rebuild.
    pub(super) async fn plan_definition(
        &self,
        op: OpKind,
        subject: &Subject,
        with: &OperateWith,
    ) -> Result<Params, Fault> {
        let old_xml = self.definition(&subject.instance).await?;
        let ran = self.runs(subject.instance.uuid).await?;
        let params =
            Params { old_xml: Some(old_xml.clone()), moving: None, start: ran, ran, ..subject.params() };
        let kept = subject.moving.as_ref().map(|m| &m.baggage);
        if op == OpKind::Unrescue {
            let domain_xml = kept.and_then(|b| b.old_xml.clone());
            return Ok(Params { domain_xml, start: kept.is_some_and(|b| b.running), ..params });
        }
        let domain_xml = Some(self.with_own_devices(subject, with).await?);
        let moving = (op == OpKind::Rescue).then(|| Move {
            instance: subject.instance.uuid,
            kind: MoveKind::Rescue,
            phase: MovePhase::Finished,
            baggage: Baggage { running: ran, old_xml: Some(old_xml), ..Baggage::default() },
        });
        // The rescue system is there to be used.
        Ok(Params { domain_xml, moving, start: ran || op == OpKind::Rescue, ..params })
    }

    /// The given domain XML with the devices that the instance has; it must be of the same UUID and name.
    async fn with_own_devices(&self, subject: &Subject, with: &OperateWith) -> Result<String, Fault> {
        let missing = || Fault::new(FaultKind::InvalidRequest, "option domain_xml is missing");
        let given = with.domain_xml.as_ref().ok_or_else(missing)?;
        let doc = DomainDoc::parse(given)?;
        if doc.name != subject.instance.name {
            let text = format!(
                "the domain XML is of {:?}, the instance is {:?}; give it the instance's name and UUID",
                doc.name, subject.instance.name
            );
            return Err(Fault::new(FaultKind::InvalidDomainXml, text));
        }
        self.check_hostdevs(&doc).await?;
        let display = if doc.has_graphics { self.console_of(subject).await? } else { DisplayWish::Off };
        let claims: Vec<Claim> = subject.params().devices.into_iter().map(|plan| plan.claim).collect();
        self.write_hostdevs(given, Some(subject.instance.uuid), &claims, display)
    }

    /// Whether the instance's console shows one of its devices.
    pub(super) async fn console_of(&self, subject: &Subject) -> Result<DisplayWish, Fault> {
        let doc = DomainDoc::parse(self.definition(&subject.instance).await?)?;
        let shown = |claim: &Claim| doc.mdev(claim.uuid).is_some_and(|h| h.display == Some(true));
        Ok(if subject.claims.iter().any(shown) { DisplayWish::On } else { DisplayWish::Off })
    }

    /// A definition with other devices in the place of these: each of the same kind keeps its place in the guest.
    pub(super) fn exchanged(
        &self,
        xml: &str,
        old: &[DevicePlan],
        new: &[DevicePlan],
        display: DisplayWish,
    ) -> Result<String, Fault> {
        let doc = DomainDoc::parse(xml)?;
        let in_place = |(a, b): (&DevicePlan, &DevicePlan)| {
            a.claim.device_api == b.claim.device_api && doc.mdev(a.claim.uuid).is_some()
        };
        if old.len() == new.len() && old.iter().zip(new).all(in_place) {
            let pairs: Vec<_> = old.iter().zip(new).map(|(a, b)| (a.claim.uuid, b.claim.uuid)).collect();
            return Ok(crate::xml::domain::with_other_uuids(xml, &pairs)?);
        }
        let gone: Vec<_> = old.iter().map(|plan| plan.claim.uuid).collect();
        let bare = without_hostdevs(xml, &gone)?;
        let devices: Vec<_> = new.iter().map(|plan| (plan.claim.uuid, plan.claim.device_api)).collect();
        let wanted = crate::xml::domain::Wanted { uuid: None, devices: &devices, display };
        Ok(with_devices(&bare, &wanted, &self.templates)?)
    }
}
