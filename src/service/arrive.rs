//! A running domain of libvirt's own comes from another host: its metadata says what it has there, and it gets the same here, or
//! does not come.

use super::Service;
use super::api::HookCall;
use super::basis::Tries;
use super::book::{Chosen, Draft, Look};
use super::observe::Observation;
use crate::model::{ClaimRole, DomainOwner, Fault, FaultKind, InstanceUuid, MdevUuid};
use crate::plan::held::Held;
use crate::xml::domain::{DomainDoc, Vgpu, vgpu_element, with_other_uuids, with_vgpu};

impl Service {
    /// The domain's XML with the devices that it has here. libvirt waits for it.
    pub(super) async fn receive(&self, call: &HookCall) -> Result<String, Fault> {
        let doc = DomainDoc::parse(&call.domain_xml)?;
        let (Some(vgpu), Some(uuid)) = (doc.vgpu.clone(), doc.uuid) else { return Ok(String::new()) };
        let held = Held::parse(vgpu.held.as_deref().ok_or_else(|| untold(&doc.name))?)?;
        self.same_lock(&doc.name, &held.host, held.lock.as_ref())?;
        let draft = Draft::plain(uuid, &doc.name, vgpu.flavor.clone(), &held.text());
        if self.store.books().instance(uuid).is_some() {
            let text = format!(
                "domain {:?} has devices on this host already, and has not given them back",
                doc.name
            );
            return Err(Fault::new(FaultKind::InstanceExists, text));
        }
        let changes = self.changes.subscribe();
        let mut tries = Tries::default();
        let (begun, chosen) = loop {
            let chosen = self.choose_same(&held, &draft).await?;
            let begun = self.begin_for_waiting(&draft, chosen.clone());
            if !tries.again(&begun) {
                break (begun?, chosen);
            }
        };
        self.outcome(begun.job, changes).await?;
        self.with_devices_of_here(&call.domain_xml, &held, &chosen, vgpu)
    }

    async fn choose_same(&self, held: &Held, draft: &Draft) -> Result<Chosen, Fault> {
        let seen = self.observe_on(&self.host.in_kernel()).await?;
        let whose = (draft.instance, draft.name.as_str(), held.host.as_str());
        let mut chosen = self.land_on(&seen, Look::ForNamed, whose, (&held.devices, ClaimRole::Primary))?;
        keep_uuids(&mut chosen, held, &seen);
        Ok(chosen)
    }

    fn with_devices_of_here(
        &self,
        xml: &str,
        held: &Held,
        chosen: &Chosen,
        vgpu: Vgpu,
    ) -> Result<String, Fault> {
        let pairs: Vec<(MdevUuid, MdevUuid)> =
            held.devices.iter().zip(&chosen.claims).map(|(there, here)| (there.uuid, here.uuid)).collect();
        let held = Held::of(&self.host_name, self.lock_mark(), &chosen.claims)?;
        let vgpu = Vgpu { held: Some(held.text()), ..vgpu };
        Ok(with_vgpu(&with_other_uuids(xml, &pairs)?, Some(&vgpu))?)
    }

    /// Writes into the metadata of a running domain of libvirt's own what it has, so that it can move.
    pub(super) async fn describe(&self, instance: InstanceUuid) {
        let books = self.store.books();
        let Some(found) = books.instance(instance).filter(|i| i.owner == DomainOwner::Libvirt) else {
            return;
        };
        let claims: Vec<_> = books.claims_of(instance).cloned().collect();
        let written = match Held::of(&self.host_name, self.lock_mark(), &claims) {
            Ok(held) => {
                let vgpu = Vgpu { flavor: found.flavor.clone(), held: Some(held.text()) };
                let described = self.host.hypervisor.describe(instance, &vgpu_element(&vgpu)).await;
                described.map_err(|err| err.to_string())
            }
            Err(fault) => Err(fault.message),
        };
        if let Err(why) = written {
            tracing::warn!(%instance, "its metadata does not say what it has, so that it cannot move while it runs: {why}");
        }
    }
}

/// A device keeps its UUID where that is free: then a definition that comes along by itself names it rightly, too.
fn keep_uuids(chosen: &mut Chosen, held: &Held, seen: &Observation) {
    for (at, there) in held.devices.iter().enumerate() {
        let known = seen.scan.mdevs_with(there.uuid).next().is_some();
        if !known && !seen.own.iter().any(|device| device.uuid == there.uuid) {
            chosen.rename(at, there.uuid);
        }
    }
}

fn untold(name: &str) -> Fault {
    let text = format!(
        "the metadata of domain {name:?} does not say which devices it has there, so that nobody can tell whether this host has the \
         same; it is written when the domain starts under mdevirt"
    );
    Fault::new(FaultKind::Incompatible, text)
}
