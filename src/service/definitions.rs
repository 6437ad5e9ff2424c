//! Operations on the domain's definition or memory: suspend, resume, rescue, unrescue, rebuild. The devices stay.

use super::Service;
use super::api::OperateWith;
use super::lifecycle::Subject;
use crate::host::HostdevXml;
use crate::model::{
    Baggage, Claim, DeviceApi, DisplayWish, Fault, FaultKind, Hostdev, MdevUuid, Move, MoveKind, MovePhase,
    OpKind,
};
use crate::ops::{DevicePlan, Params};
use crate::xml::domain::{DomainDoc, Wanted, with_devices, with_other_uuids, without_hostdevs};

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
        let domain_xml = Some(self.with_own_devices(subject, with.domain_xml()?, &old_xml).await?);
        let moving = (op == OpKind::Rescue).then(|| Move {
            instance: subject.instance.uuid,
            kind: MoveKind::Rescue,
            phase: MovePhase::Finished,
            baggage: Baggage { running: ran, old_xml: Some(old_xml), ..Baggage::default() },
        });
        // The rescue system is there to be used.
        Ok(Params { domain_xml, moving, start: ran || op == OpKind::Rescue, ..params })
    }

    /// The given domain XML with the devices that the instance has, shown as in its definition of now; it must be of the same
    /// UUID and name.
    async fn with_own_devices(&self, subject: &Subject, given: &str, now: &str) -> Result<String, Fault> {
        let doc = DomainDoc::parse(given)?;
        if doc.name != subject.instance.name {
            let text = format!(
                "the domain XML is of {:?}, the instance is {:?}; give it the instance's name and UUID",
                doc.name, subject.instance.name
            );
            return Err(Fault::new(FaultKind::InvalidDomainXml, text));
        }
        self.check_hostdevs(&doc).await?;
        let uuids: Vec<MdevUuid> = subject.claims.iter().map(|c| c.uuid).collect();
        let display =
            if doc.has_graphics { console_of(&DomainDoc::parse(now)?, &uuids) } else { DisplayWish::Off };
        let claims: Vec<Claim> = subject.params().devices.into_iter().map(|plan| plan.claim).collect();
        self.write_hostdevs(given, Some(subject.instance.uuid), &claims, display)
    }

    /// A definition with other devices in the place of these: each of the same kind keeps its place in the guest.
    pub(super) fn exchanged(
        &self,
        xml: &str,
        old: &[(MdevUuid, DeviceApi)],
        new: &[(MdevUuid, DeviceApi)],
        display: DisplayWish,
    ) -> Result<String, Fault> {
        let doc = DomainDoc::parse(xml)?;
        let in_place =
            |(a, b): (&(MdevUuid, DeviceApi), &(MdevUuid, DeviceApi))| a.1 == b.1 && doc.mdev(a.0).is_some();
        if old.len() == new.len() && old.iter().zip(new).all(in_place) {
            let pairs: Vec<_> = old.iter().zip(new).map(|(a, b)| (a.0, b.0)).collect();
            return Ok(with_other_uuids(xml, &pairs)?);
        }
        let gone: Vec<MdevUuid> = old.iter().map(|(uuid, _)| *uuid).collect();
        let bare = without_hostdevs(xml, &gone)?;
        Ok(with_devices(&bare, &Wanted { uuid: None, devices: new, display }, &self.templates)?)
    }
}

/// Whether the console of this domain shows one of these devices.
pub(super) fn console_of(doc: &DomainDoc, devices: &[MdevUuid]) -> DisplayWish {
    let shown = |uuid: &MdevUuid| doc.mdev(*uuid).is_some_and(|h| h.display == Some(true));
    if devices.iter().any(shown) { DisplayWish::On } else { DisplayWish::Off }
}
