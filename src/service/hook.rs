//! libvirt's qemu hook: libvirt waits for the answer with the domain locked, so it is given from the books and the kernel.
//!
//! 1. libvirt is not asked, neither here nor by anything that this waits for.
//! 2. What an instance holds goes to no other guest, whoever starts it.
//! 3. A guest starts with all devices of its instance, or not at all; what is lost is made again.
//! 4. When the guest runs or is gone nothing is refused: the books follow by events.

use super::Service;
use super::api::{Change, HookCall};
use crate::model::{
    Claim, ClaimId, ClaimRole, DomainOwner, Fault, FaultKind, Instance, InstanceUuid, JobId, MdevUuid,
    MoveKind, SagaState,
};
use crate::ops::host_fault;
use crate::xml::domain::DomainDoc;

impl Service {
    /// [`super::api::UseCases::hook`].
    pub(super) async fn answer_hook(&self, call: HookCall) -> Result<String, Fault> {
        match call.operation.as_str() {
            "migrate" => return self.receive(&call).await,
            "prepare" | "restore" => self.make_ready(&call).await?,
            // A start that came to nothing has no event of its own.
            "release" => self.look_later(&call.domain_xml),
            _ => {}
        }
        Ok(String::new())
    }

    /// Every device that the domain names and its instance holds is there afterwards.
    async fn make_ready(&self, call: &HookCall) -> Result<(), Fault> {
        let doc = DomainDoc::parse(&call.domain_xml)?;
        let named: Vec<MdevUuid> = doc.mdevs().collect();
        let books = self.store.books();
        for device in &named {
            self.refuse_held_by_another(&call.name, doc.uuid, *device)?;
        }
        let Some(instance) = doc.uuid.and_then(|uuid| books.instance(uuid).cloned()) else {
            return self.book_named(&doc, &named).await;
        };
        // It is our own start, which has made sure of all this.
        if self.store.live_saga(instance.uuid)?.is_some() {
            return Ok(());
        }
        if books.move_of(instance.uuid).is_some_and(|m| m.kind.leaves()) {
            let text = format!(
                "instance {:?} is on its way to another host, and may run there; confirm or revert its migration first",
                instance.name
            );
            return Err(Fault::new(FaultKind::InstanceBusy, text));
        }
        // A guest that comes running starts with the devices that are booked for it.
        let comes = books.move_of(instance.uuid).is_some_and(|m| m.kind == MoveKind::LiveIn);
        let role = if comes { ClaimRole::Incoming } else { ClaimRole::Primary };
        let held: Vec<Claim> = books.claims_of(instance.uuid).filter(|c| c.role == role).cloned().collect();
        names_all(&instance, &held, &named)?;
        let mut gone = Vec::new();
        for claim in &held {
            if !self.is_in_kernel(claim).await? {
                gone.push(claim.id);
            }
        }
        match gone.is_empty() {
            true => Ok(()),
            false => self.make_again(&instance, &gone).await,
        }
    }

    async fn is_in_kernel(&self, claim: &Claim) -> Result<bool, Fault> {
        let found = self.host.nodes.find_in_kernel(claim.uuid).await;
        let found = found.map_err(|e| host_fault(&format!("look for mdev {}", claim.uuid), &e))?;
        let Some(mdev) = found else { return Ok(false) };
        let books = self.store.books();
        let made = books.own_device(claim.uuid, &claim.parent).map(|device| &device.type_id);
        let same_type = mdev.type_id.as_ref().zip(made).is_none_or(|(now, made)| now == made);
        if mdev.parent == claim.parent && same_type {
            return Ok(true);
        }
        let its_type = mdev.type_id.map_or_else(|| "an unknown type".to_owned(), |id| id.to_string());
        let text = format!(
            "mdev {} is {its_type} on {}, its instance has it as {} on {}; somebody else made it so, remove it",
            claim.uuid, mdev.parent, claim.type_name, claim.parent
        );
        Err(Fault::new(FaultKind::HostRefused, text))
    }

    async fn make_again(&self, instance: &Instance, gone: &[ClaimId]) -> Result<(), Fault> {
        let changes = self.changes.subscribe();
        let job = self.begin_restore(instance.uuid, gone, true).await?.job;
        self.outcome(job, changes).await
    }

    /// The end of a job as its books have it. Those who watch jobs hear of it later, when its domain has been looked at.
    pub(super) async fn outcome(
        &self,
        job: JobId,
        mut changes: tokio::sync::broadcast::Receiver<Change>,
    ) -> Result<(), Fault> {
        loop {
            match self.store.saga(job)? {
                Some(row) if row.state == SagaState::Done => return Ok(()),
                Some(row) if !row.state.is_open() => {
                    let unknown = || Fault::new(FaultKind::Internal, format!("job {job} failed"));
                    let fault = row.result.and_then(|result| serde_json::from_value(result).ok());
                    return Err(fault.unwrap_or_else(unknown));
                }
                Some(_) | None => {}
            }
            // Lagging behind is a reason to look, too; the sender lives as long as the service.
            let _ = changes.recv().await;
        }
    }

    /// A clone carries the devices of its model.
    fn refuse_held_by_another(
        &self,
        name: &str,
        asker: Option<InstanceUuid>,
        device: MdevUuid,
    ) -> Result<(), Fault> {
        let books = self.store.books();
        let Some(claim) = books.claims().find(|c| c.uuid == device && Some(c.instance) != asker) else {
            return Ok(());
        };
        let owner = books.instance(claim.instance).map_or_else(String::new, |i| i.name.clone());
        let text = format!(
            "domain {name:?} names mdev {device}, which instance {owner:?} ({}) holds; give {name:?} a device of its own",
            claim.instance
        );
        Err(Fault::new(FaultKind::DeviceInUse, text))
    }

    /// Looks at the domain when libvirt has let go of it.
    fn look_later(&self, domain_xml: &str) {
        if let Some(uuid) = DomainDoc::parse(domain_xml).ok().and_then(|doc| doc.uuid) {
            self.leave_later(uuid);
        }
    }
}

/// Refuses if the domain lacks a device of its instance: it would run without what its user has booked. What an orchestrator
/// gives its domains, and when, is its own affair.
fn names_all(instance: &Instance, held: &[Claim], named: &[MdevUuid]) -> Result<(), Fault> {
    let Some(missing) = held.iter().find(|c| !named.contains(&c.uuid)) else { return Ok(()) };
    let what_now = match instance.owner {
        DomainOwner::Caller => return Ok(()),
        DomainOwner::Mdevirt => {
            format!("a suspended guest goes on with `mdevirtctl resume {}`", instance.name)
        }
        DomainOwner::Libvirt => {
            "write it into the definition again, or give it back with `mdevirtctl claim release`".to_owned()
        }
    };
    let text = format!(
        "the definition of {:?} does not name {} {}, which the instance holds; {what_now}",
        instance.name, missing.type_name, missing.uuid
    );
    Err(Fault::new(FaultKind::InvalidDomainXml, text))
}
