//! Domains: list, define, start, stop, undefine; saving and host devices are in `guest`.

use std::collections::HashSet;

use async_trait::async_trait;
use uuid::Uuid;
use virt::domain::Domain as VirtDomain;
use virt::error::Error;
use virt_sys as sys;

use super::LibvirtHost;
use super::error::{Doing, is_fresh_group_error, is_gone, is_unsupported_flag, is_wrong_state};
use super::guest;
use super::lanes::each;
use super::link::Session;
use crate::host::{Config, Domain, HostError, HostdevXml, Hypervisor, Passage, Whereabouts};
use crate::model::{InstanceUuid, Versions};

#[async_trait]
impl Hypervisor for LibvirtHost {
    async fn domains(&self) -> Result<Vec<Domain>, HostError> {
        self.link.call(Doing::read("domains"), list).await
    }

    async fn domain(&self, uuid: InstanceUuid) -> Result<Option<Domain>, HostError> {
        let look = move |session: &Session| {
            let Some(domain) = lookup(session, uuid)? else { return Ok(None) };
            let persistent = domain.is_persistent();
            persistent.and_then(|persistent| read(&domain, persistent)).or_else(none_if_gone)
        };
        self.link.call(Doing::read(subject(uuid)), look).await
    }

    async fn find_domain(&self, uuid: InstanceUuid, name: &str) -> Result<Option<InstanceUuid>, HostError> {
        let name = name.to_owned();
        let look = move |session: &Session| {
            if lookup(session, uuid)?.is_some() {
                return Ok(Some(uuid));
            }
            let named = session.conn.lookup_domain_by_name(&name).map(Some).or_else(none_if_gone)?;
            named.map(|domain| domain.uuid().map(InstanceUuid)).transpose()
        };
        self.link.call(Doing::read(subject(uuid)), look).await
    }

    async fn define(&self, xml: &str) -> Result<(), HostError> {
        let xml = xml.to_owned();
        let define = move |session: &Session| session.conn.define_domain_xml(&xml).map(|_| ());
        self.link.call(Doing::define("define", "a domain"), define).await
    }

    async fn undefine(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        let undefine = move |session: &Session| match lookup(session, uuid)? {
            Some(domain) if domain.is_persistent()? => undefine_all(&domain).or_else(ok_if_gone),
            Some(_) | None => Ok(()),
        };
        self.link.call(Doing::change("undefine", subject(uuid)), undefine).await
    }

    async fn start(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        let start = move |session: &Session| start(&session.conn.lookup_domain_by_uuid(uuid.0)?);
        self.link.call(Doing::change("start", subject(uuid)), start).await
    }

    async fn autostarts(&self, uuid: InstanceUuid) -> Result<bool, HostError> {
        let look = move |session: &Session| match lookup(session, uuid)? {
            Some(domain) if domain.is_persistent()? => domain.autostart(),
            Some(_) | None => Ok(false),
        };
        self.link.call(Doing::read(subject(uuid)), look).await
    }

    async fn stop(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        let stop = move |session: &Session| match lookup(session, uuid)? {
            Some(domain) if domain.is_active()? => domain.destroy().or_else(|err| {
                // It ended by itself in between.
                if is_gone(&err) || (is_wrong_state(&err) && !domain.is_active()?) {
                    Ok(())
                } else {
                    Err(err)
                }
            }),
            Some(_) | None => Ok(()),
        };
        self.link.call(Doing::change("stop", subject(uuid)), stop).await
    }

    async fn definition(&self, uuid: InstanceUuid) -> Result<Option<String>, HostError> {
        let look = move |session: &Session| match lookup(session, uuid)? {
            Some(domain) if domain.is_persistent()? => guest::definition(&domain).map(Some),
            Some(_) | None => Ok(None),
        };
        self.link.call(Doing::read(subject(uuid)), look).await
    }

    async fn save(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        let save = move |session: &Session| guest::save(&session.conn.lookup_domain_by_uuid(uuid.0)?);
        self.link.call(Doing::save(subject(uuid)), save).await
    }

    async fn is_saved(&self, uuid: InstanceUuid) -> Result<bool, HostError> {
        let look = move |session: &Session| match lookup(session, uuid)? {
            Some(domain) => domain.has_managed_save(0),
            None => Ok(false),
        };
        self.link.call(Doing::read(subject(uuid)), look).await
    }

    async fn describe(&self, uuid: InstanceUuid, element: &str) -> Result<(), HostError> {
        let element = element.to_owned();
        let describe =
            move |session: &Session| guest::describe(&session.conn.lookup_domain_by_uuid(uuid.0)?, &element);
        self.link.call(Doing::change("describe", subject(uuid)), describe).await
    }

    async fn migrate(&self, uuid: InstanceUuid, passage: &Passage) -> Result<(), HostError> {
        self.send(uuid, passage).await
    }

    async fn abort_migration(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        self.break_off(uuid).await
    }

    async fn whereabouts(&self, uuid: InstanceUuid) -> Result<Whereabouts, HostError> {
        self.look_where(uuid).await
    }

    async fn versions(&self) -> Result<Versions, HostError> {
        self.read_versions().await
    }

    async fn attach(&self, uuid: InstanceUuid, hostdev: &HostdevXml, into: Config) -> Result<(), HostError> {
        self.plug(uuid, hostdev, into).await
    }

    async fn detach(&self, uuid: InstanceUuid, hostdev: &HostdevXml, from: Config) -> Result<(), HostError> {
        self.detach_and_wait(uuid, hostdev, from).await
    }
}

pub(super) fn subject(uuid: InstanceUuid) -> String {
    format!("domain {uuid}")
}

pub(super) fn lookup(session: &Session, uuid: InstanceUuid) -> Result<Option<VirtDomain>, Error> {
    session.conn.lookup_domain_by_uuid(uuid.0).map(Some).or_else(none_if_gone)
}

fn none_if_gone<T>(err: Error) -> Result<Option<T>, Error> {
    if is_gone(&err) { Ok(None) } else { Err(err) }
}

fn ok_if_gone(err: Error) -> Result<(), Error> {
    if is_gone(&err) { Ok(()) } else { Err(err) }
}

fn list(session: &Session) -> Result<Vec<Domain>, Error> {
    // One more list instead of one more call for every domain.
    let transient = session.conn.list_all_domains(sys::VIR_CONNECT_LIST_DOMAINS_TRANSIENT)?;
    let transient = transient.iter().map(VirtDomain::uuid).collect::<Result<HashSet<Uuid>, Error>>()?;
    let all = session.conn.list_all_domains(0)?;
    let domains = each(&session.lanes, &all, |domain| {
        let persistent = !transient.contains(&domain.uuid()?);
        read(domain, persistent).or_else(none_if_gone)
    })?;
    Ok(domains.into_iter().flatten().collect())
}

/// Without the secure flag: passwords in the XML are no business of ours. Name, UUID and id cost no call.
fn read(domain: &VirtDomain, persistent: bool) -> Result<Option<Domain>, Error> {
    Ok(Some(Domain {
        uuid: InstanceUuid(domain.uuid()?),
        name: domain.name()?,
        running: domain.id().is_some(),
        persistent,
        xml: domain.xml_desc(0)?,
    }))
}

fn start(domain: &VirtDomain) -> Result<(), Error> {
    if domain.is_active()? {
        return Ok(());
    }
    let started =
        domain.create().or_else(|err| if is_fresh_group_error(&err) { domain.create() } else { Err(err) });
    // Somebody else may have been quicker.
    started.or_else(|err| if is_wrong_state(&err) && domain.is_active()? { Ok(()) } else { Err(err) })
}

/// With everything that libvirt keeps beside the definition; a driver that lacks a kind has nothing of that kind.
fn undefine_all(domain: &VirtDomain) -> Result<(), Error> {
    let few = sys::VIR_DOMAIN_UNDEFINE_MANAGED_SAVE | sys::VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA;
    let all = few
        | sys::VIR_DOMAIN_UNDEFINE_NVRAM
        | sys::VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA
        | sys::VIR_DOMAIN_UNDEFINE_TPM;
    for flags in [all, few] {
        match domain.undefine_flags(flags) {
            Err(err) if is_unsupported_flag(&err) => {}
            answer => return answer,
        }
    }
    domain.undefine()
}
