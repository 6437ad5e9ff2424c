//! [`Hypervisor`] of the simulated host: the test driver runs the domains, the state remembers them.

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::SimHost;
use super::faults::CallSite;
use super::script::Call;
use super::state::{Edit, SimDomain, Table};
use crate::host::{Config, Domain, HostError, HostEvent, HostdevXml, Hypervisor, Passage, Sent, Whereabouts};
use crate::model::{InstanceUuid, MdevUuid, Versions};
use crate::xml::domain::{DomainDoc, with_vgpu_element};

#[async_trait]
impl Hypervisor for SimHost {
    async fn domains(&self) -> Result<Vec<Domain>, HostError> {
        let list = async {
            let all = self.base_domains.domains().await?;
            Ok(all.into_iter().map(|domain| self.as_it_is(domain)).collect())
        };
        self.call(site(Call::Domains, None, "listing domains"), list).await
    }

    async fn domain(&self, uuid: InstanceUuid) -> Result<Option<Domain>, HostError> {
        let look = async { Ok(self.base_domains.domain(uuid).await?.map(|domain| self.as_it_is(domain))) };
        self.call(site(Call::Domains, Some(uuid), "looking for"), look).await
    }

    async fn define(&self, xml: &str) -> Result<(), HostError> {
        let uuid = DomainDoc::parse(xml).ok().and_then(|doc| doc.uuid);
        self.call(site(Call::Define, uuid, "defining"), self.define_and_record(xml)).await
    }

    async fn undefine(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        self.call(site(Call::Undefine, Some(uuid), "undefining"), async {
            let _turn = self.domain_turn.lock().await;
            self.base_domains.undefine(uuid).await?;
            self.record(uuid, |domain| {
                (domain.defined, domain.saved, domain.autostart) = (None, None, false);
            })
        })
        .await
    }

    async fn start(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        self.call(site(Call::Start, Some(uuid), "starting"), self.start_with_devices(uuid)).await
    }

    async fn autostarts(&self, uuid: InstanceUuid) -> Result<bool, HostError> {
        let look = async { Ok(self.state().table().domain(uuid).is_some_and(|d| d.autostart)) };
        self.call(site(Call::Domains, Some(uuid), "looking for"), look).await
    }

    async fn stop(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        self.call(site(Call::Stop, Some(uuid), "stopping"), async {
            let _turn = self.domain_turn.lock().await;
            self.base_domains.stop(uuid).await?;
            self.record(uuid, |domain| domain.live = None)
        })
        .await
    }

    async fn definition(&self, uuid: InstanceUuid) -> Result<Option<String>, HostError> {
        let look = async { Ok(self.state().table().domain(uuid).and_then(|domain| domain.defined.clone())) };
        self.call(site(Call::Domains, Some(uuid), "looking for"), look).await
    }

    async fn save(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        self.call(site(Call::Save, Some(uuid), "saving"), self.save_memory(uuid)).await
    }

    async fn is_saved(&self, uuid: InstanceUuid) -> Result<bool, HostError> {
        let look = async { Ok(self.state().table().domain(uuid).is_some_and(|d| d.saved.is_some())) };
        self.call(site(Call::Domains, Some(uuid), "looking for"), look).await
    }

    async fn describe(&self, uuid: InstanceUuid, element: &str) -> Result<(), HostError> {
        self.call(site(Call::Define, Some(uuid), "describing"), async {
            let _turn = self.domain_turn.lock().await;
            self.base_domains.describe(uuid, element).await?;
            let described = |xml: &Option<String>| {
                let xml = xml.as_ref().map(|xml| with_vgpu_element(xml, element)).transpose();
                xml.map_err(|e| HostError::InvalidXml(e.to_string()))
            };
            let Some(known) = self.state().table().domain(uuid).cloned() else { return Ok(()) };
            let (live, defined) = (described(&known.live)?, described(&known.defined)?);
            self.record(uuid, |domain| (domain.live, domain.defined) = (live, defined))
        })
        .await
    }

    async fn migrate(&self, uuid: InstanceUuid, passage: &Passage) -> Result<(), HostError> {
        self.call(site(Call::Migrate, Some(uuid), "migrating"), self.send_to(uuid, passage)).await
    }

    async fn abort_migration(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        self.call_back(uuid);
        Ok(())
    }

    async fn whereabouts(&self, uuid: InstanceUuid) -> Result<Whereabouts, HostError> {
        let look = async {
            if self.is_under_way(uuid) {
                return Ok(Whereabouts::UnderWay(Sent { bytes: 1 << 20, left: 3 << 20 }));
            }
            Ok(Whereabouts::at_rest(self.base_domains.domain(uuid).await?.as_ref()))
        };
        self.call(site(Call::Domains, Some(uuid), "looking for"), look).await
    }

    async fn versions(&self) -> Result<Versions, HostError> {
        let read = async { Ok(self.platform().versions) };
        self.call(site(Call::Domains, None, "reading the versions"), read).await
    }

    async fn attach(&self, uuid: InstanceUuid, hostdev: &HostdevXml, into: Config) -> Result<(), HostError> {
        let site = site(Call::Attach, Some(uuid), "attaching a device to");
        self.call(site, self.plug(uuid, hostdev, into)).await
    }

    async fn detach(&self, uuid: InstanceUuid, hostdev: &HostdevXml, from: Config) -> Result<(), HostError> {
        let site = site(Call::Detach, Some(uuid), "detaching a device from");
        self.call(site, self.unplug(uuid, hostdev, from)).await
    }
}

impl SimHost {
    pub(super) async fn define_and_record(&self, xml: &str) -> Result<(), HostError> {
        let doc = read(xml)?;
        let _turn = self.domain_turn.lock().await;
        self.base_domains.define(xml).await?;
        let all = self.base_domains.domains().await?;
        let is_it = |d: &&Domain| doc.uuid.map_or(d.name == doc.name, |uuid| d.uuid == uuid);
        let domain = all
            .iter()
            .find(is_it)
            .ok_or_else(|| HostError::OutcomeUnknown("defining a domain".to_owned()))?;
        let known = self.state().table().domain(domain.uuid).cloned();
        let mut entry = known.map_or_else(|| SimDomain::from_base(domain), Ok)?;
        // What libvirt shows lacks secrets, and is the live XML of a running domain; without a UUID, though, the given
        // text would make another domain at the next start.
        let defined = if doc.uuid.is_some() { xml } else { &domain.xml };
        entry.defined = Some(defined.to_owned());
        entry.name = domain.name.clone();
        self.put(entry)
    }

    pub(super) async fn start_with_devices(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        let _turn = self.domain_turn.lock().await;
        let Some(before) = self.take_devices(uuid)? else { return Ok(()) };
        match self.base_domains.start(uuid).await {
            Ok(()) => {
                self.notify(HostEvent::Domain(uuid));
                Ok(())
            }
            Err(error) => self.put(before).and(Err(error)),
        }
    }

    /// Marks the domain as running with its devices, so that nobody removes or takes them while it starts, and returns
    /// it as it was. `None` if it runs already.
    fn take_devices(&self, uuid: InstanceUuid) -> Result<Option<SimDomain>, HostError> {
        let mut state = self.state();
        let before = state.table().domain(uuid).cloned();
        let before = before.ok_or_else(|| HostError::NotFound(format!("domain {uuid}")))?;
        let (None, Some(xml)) = (&before.live, before.saved.as_ref().or(before.defined.as_ref())) else {
            return Ok(None);
        };
        let holds = mdevs_in(xml)?;
        for mdev in &holds {
            check_free(state.table(), *mdev)?;
        }
        let running = SimDomain { live: Some(xml.clone()), saved: None, holds, ..before.clone() };
        state.apply(vec![Edit::domain(running)])?;
        Ok(Some(before))
    }

    /// Records what became of a domain; one that is not known is left alone.
    pub(super) fn record(
        &self,
        uuid: InstanceUuid,
        change: impl FnOnce(&mut SimDomain),
    ) -> Result<(), HostError> {
        let known = self.state().table().domain(uuid).cloned();
        let Some(mut domain) = known else { return Ok(()) };
        let before = domain.clone();
        change(&mut domain);
        if domain == before { Ok(()) } else { self.put(domain) }
    }

    pub(super) fn put(&self, domain: SimDomain) -> Result<(), HostError> {
        let uuid = domain.uuid;
        self.state().apply(vec![Edit::domain(domain)])?;
        self.notify(HostEvent::Domain(uuid));
        Ok(())
    }
}

/// QEMU cannot open a device that is not there, nor one that another QEMU has open.
pub(super) fn check_free(table: &Table, mdev: MdevUuid) -> Result<(), HostError> {
    if !table.devices.iter().any(|d| d.uuid == mdev && d.active) {
        return Err(HostError::Refused(format!("mediated device '{mdev}' not found")));
    }
    table.holder(mdev).map_or(Ok(()), |holder| {
        let name = holder.name.escape_debug();
        Err(HostError::InUse(format!("mediated device {mdev}, held by domain {name},")))
    })
}

impl SimDomain {
    /// A domain as the test driver shows it.
    pub(super) fn from_base(domain: &Domain) -> Result<Self, HostError> {
        let holds = if domain.running { mdevs_in(&domain.xml)? } else { BTreeSet::new() };
        Ok(Self {
            uuid: domain.uuid,
            name: domain.name.clone(),
            live: domain.running.then(|| domain.xml.clone()),
            defined: domain.persistent.then(|| domain.xml.clone()),
            saved: None,
            autostart: false,
            holds,
        })
    }
}

fn read(xml: &str) -> Result<DomainDoc, HostError> {
    DomainDoc::parse(xml).map_err(|e| HostError::InvalidXml(e.to_string()))
}

pub(super) fn mdevs_in(xml: &str) -> Result<BTreeSet<MdevUuid>, HostError> {
    Ok(read(xml)?.mdevs().collect())
}

fn site(call: Call, instance: Option<InstanceUuid>, verb: &str) -> CallSite {
    let what = instance.map_or_else(|| verb.to_owned(), |uuid| format!("{verb} domain {uuid}"));
    CallSite { call, parent: None, instance, what }
}
