//! Domains that are libvirt's own: their metadata says what they want. They get it when they start and, unless the configuration
//! says otherwise, give it back when they stop.

use super::Service;
use super::api::{Accepted, Operate};
use super::basis::Tries;
use super::book::{Asked, Chosen, Draft, Look};
use crate::config::OnStop;
use crate::model::{
    ClaimRole, ClaimState, DomainOwner, Fault, FaultKind, InstanceUuid, MdevUuid, OpKind, Request,
};
use crate::ops::{Found, Marks, Params, host_fault};
use crate::xml::domain::{DomainDoc, METADATA};

impl Service {
    /// Books and makes the devices that a domain names and wants, while libvirt waits. Those that exist are somebody else's.
    pub(super) async fn book_named(&self, doc: &DomainDoc, named: &[MdevUuid]) -> Result<(), Fault> {
        let flavor = doc.vgpu.as_ref().and_then(|vgpu| vgpu.flavor.as_deref());
        let (Some(flavor), Some(uuid)) = (flavor, doc.uuid) else { return Ok(()) };
        let request = Request::parse(flavor)?;
        let mut wanted = Vec::new();
        for device in named {
            let found = self.host.nodes.find_in_kernel(*device).await;
            let found = found.map_err(|e| host_fault(&format!("look for mdev {device}"), &e))?;
            if found.is_none() {
                wanted.push(*device);
            }
        }
        if wanted.is_empty() && !named.is_empty() {
            return Ok(());
        }
        fits(doc, &request, wanted.len())?;
        let draft = Draft::plain(uuid, &doc.name, Some(flavor.to_owned()), flavor);
        let changes = self.changes.subscribe();
        let mut tries = Tries::default();
        loop {
            let begun = self.begin_named(&draft, &request, doc, &wanted).await;
            if !tries.again(&begun) {
                return self.outcome(begun?.job, changes).await;
            }
        }
    }

    async fn begin_named(
        &self,
        draft: &Draft,
        request: &Request,
        doc: &DomainDoc,
        wanted: &[MdevUuid],
    ) -> Result<Accepted, Fault> {
        let seen = self.observe_on(&self.host.in_kernel()).await?;
        let asked = Asked { instance: draft.instance, request, domain: Some(doc), role: ClaimRole::Primary };
        let mut chosen = self.choose_of(&asked, &seen, Look::ForNamed)?;
        under_names(&mut chosen, doc, wanted)?;
        self.begin_for_waiting(draft, chosen)
    }

    /// Begins a booking for which libvirt waits.
    pub(super) fn begin_for_waiting(&self, draft: &Draft, chosen: Chosen) -> Result<Accepted, Fault> {
        let params = Params::new(draft.instance, draft.name.clone(), chosen.devices.clone());
        self.begin_new(draft, chosen, &Params { in_kernel: true, ..params })
    }

    /// Whether the instance's domain is libvirt's own.
    pub(super) fn is_plain(&self, instance: InstanceUuid) -> bool {
        self.store.books().instance(instance).is_some_and(|i| i.owner == DomainOwner::Libvirt)
    }

    /// Gives back what libvirt's own domain held, if it does not run any more and is not to keep it, or is gone altogether.
    pub(super) async fn leave_stopped(&self, instance: InstanceUuid) {
        while self.is_to_leave(instance).await {
            let changes = self.changes.subscribe();
            match self.book_operation(Operate::plain(OpKind::Release, &instance.to_string(), None)).await {
                Err(fault) if fault.kind == FaultKind::InstanceBusy => {}
                Err(fault) => {
                    tracing::error!(%instance, "give back the devices of a domain that stopped: {fault}");
                    return;
                }
                Ok(_) => return,
            }
            // Its start was given up before its devices were made: they are given back when they are.
            let Ok(Some(job)) = self.store.live_saga(instance) else { return };
            let _ = self.outcome(job, changes).await;
        }
    }

    async fn is_to_leave(&self, instance: InstanceUuid) -> bool {
        if !self.is_plain(instance) {
            return false;
        }
        let devices = self.store.books().claims_of(instance).map(|c| c.uuid).collect();
        match self.host.find_domain(&Marks { uuid: instance, devices, bare: None }).await {
            Ok(Found::Ours(domain)) => {
                !domain.running && self.settings.now().config.on_stop == OnStop::Release
            }
            // There is nothing any more that they could be kept for.
            Ok(Found::Absent | Found::Other(_)) => true,
            Err(err) => {
                tracing::debug!(%instance, "look whether its domain runs: {err}");
                false
            }
        }
    }

    /// The same beside whatever goes on.
    pub(super) fn leave_later(&self, instance: InstanceUuid) {
        let service = self.clone();
        tokio::spawn(async move { service.leave_stopped(instance).await });
    }

    /// Whether the books say of a domain of libvirt's own that it is off.
    pub(super) fn rests(&self, instance: InstanceUuid) -> bool {
        let books = self.store.books();
        self.is_plain(instance) && books.claims_of(instance).all(|c| c.state == ClaimState::Parked)
    }

    /// Domains of libvirt's own that stopped while nobody looked, or whose start came to nothing then.
    pub(super) async fn leave_all_stopped(&self) {
        let books = self.store.books();
        let off = |uuid: &InstanceUuid| {
            books.claims_of(*uuid).all(|c| matches!(c.state, ClaimState::Parked | ClaimState::Ready))
        };
        let plain = books.instances().filter(|i| i.owner == DomainOwner::Libvirt).map(|i| i.uuid);
        for instance in plain.filter(off) {
            self.leave_stopped(instance).await;
        }
    }

    /// Writes devices into the definition of a domain whose metadata wants some and that names none.
    pub(super) async fn write_wanted(&self, domain: InstanceUuid) {
        if self.store.books().instance(domain).is_some() {
            return;
        }
        let found = self.host.hypervisor.definition(domain).await;
        let Ok(Some(xml)) = found.inspect_err(|err| tracing::debug!(%domain, "read its definition: {err}"))
        else {
            return;
        };
        let Ok(doc) = DomainDoc::parse(&xml) else { return };
        let flavor = doc.vgpu.as_ref().and_then(|vgpu| vgpu.flavor.as_deref());
        if let Some(flavor) = flavor.filter(|_| doc.mdevs().next().is_none())
            && let Err(fault) = self.domain_request(&domain.to_string(), Some(flavor)).await
        {
            tracing::warn!(%domain, flavor, "write the devices that its metadata wants: {fault}");
        }
    }

    /// The same for all domains.
    pub(super) async fn write_all_wanted(&self) {
        let Ok(domains) = self.host.hypervisor.domains().await else { return };
        for domain in domains.iter().filter(|d| d.persistent && d.xml.contains(METADATA)) {
            self.write_wanted(domain.uuid).await;
        }
    }
}

/// The domain has to have one device for each that its flavor asks for.
fn fits(doc: &DomainDoc, request: &Request, wanted: usize) -> Result<(), Fault> {
    let asked = request.device_count();
    if usize::try_from(asked).is_ok_and(|asked| asked == wanted) {
        return Ok(());
    }
    let text = format!(
        "the metadata of domain {:?} asks for {asked} devices, its definition names {wanted} that are to be made; \
         `mdevirtctl domain request {:?} --flavor F` writes both",
        doc.name, doc.name
    );
    Err(Fault::new(FaultKind::InvalidDomainXml, text))
}

/// The devices get the UUIDs that the domain names, in its order.
fn under_names(chosen: &mut Chosen, doc: &DomainDoc, wanted: &[MdevUuid]) -> Result<(), Fault> {
    for (at, uuid) in wanted.iter().enumerate() {
        let model = doc.mdev(*uuid).and_then(|hostdev| hostdev.model());
        let of_type = chosen.claims.get(at).map(|claim| claim.device_api);
        if let (Some(model), Some(of_type)) = (model, of_type)
            && model != of_type
        {
            let text = format!(
                "domain {:?} has mdev {uuid} as another model than {of_type}, which its type is; write model='{of_type}'",
                doc.name
            );
            return Err(Fault::new(FaultKind::InvalidDomainXml, text));
        }
        chosen.rename(at, *uuid);
    }
    Ok(())
}
