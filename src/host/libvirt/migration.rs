//! A running guest on its way to another host.
//!
//! 1. The libvirt daemons carry it between themselves (peer to peer), so that it goes on if ours dies.
//! 2. The call lasts as long as the guest is on its way. It has a connection and a thread of its own: the shared connection takes
//!    few calls at once, and a thread of the runtime would hold up the end of the daemon.
//! 3. Post-copy is not asked for: VFIO devices cannot go that way.
//!
//! # Source
//! libvirt `virDomainMigrateToURI3` and its flags; QEMU `docs/devel/migration/vfio.rst` for post-copy.

use tokio::sync::oneshot;
use virt::connect::Connect;
use virt::domain::{
    Domain as VirtDomain, DomainPausedReason, DomainShutoffReason, DomainStateReason, MigrateParameters,
};
use virt::enumutil::Enum;
use virt::error::Error;
use virt_sys as sys;

use super::domain::{lookup, subject};
use super::error::{Doing, clean, host_error, is_of_source_only, is_peer_lost, is_wrong_state};
use super::link::Session;
use super::{LibvirtHost, ffi, guest};
use crate::host::{HostError, Passage, Sent, Whereabouts};
use crate::model::{InstanceUuid, MdevUuid, Version, Versions};
use crate::xml::domain::with_other_uuids;

/// The other host's domain is persistent at the end, this one's is gone; the memory is sent while the guest works.
const FLAGS: u32 = sys::VIR_MIGRATE_LIVE
    | sys::VIR_MIGRATE_PEER2PEER
    | sys::VIR_MIGRATE_PERSIST_DEST
    | sys::VIR_MIGRATE_UNDEFINE_SOURCE;

impl LibvirtHost {
    pub(super) async fn send(&self, uuid: InstanceUuid, passage: &Passage) -> Result<(), HostError> {
        let (uri, passage) = (self.uri.clone(), passage.clone());
        let doing = Doing::change("migrate", subject(uuid));
        let (sender, answer) = oneshot::channel();
        let work = move || {
            // Nobody listens any more if the daemon ends.
            let _ = sender.send(send(&uri, uuid, &passage));
        };
        let started = std::thread::Builder::new().name("libvirt-migrate".to_owned()).spawn(work);
        started.map_err(|err| HostError::Refused(format!("start a thread: {err}")))?;
        match answer.await {
            Ok(outcome) => outcome,
            Err(_) => Err(doing.answer_lost("the thread ended")),
        }
    }

    pub(super) async fn break_off(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        let abort = move |session: &Session| match lookup(session, uuid)? {
            Some(domain) if domain.is_active()? => {
                // It may be over, or past the point where it can be broken off.
                ffi::abort_job(&domain).or_else(|err| if is_wrong_state(&err) { Ok(()) } else { Err(err) })
            }
            Some(_) | None => Ok(()),
        };
        self.link.call(Doing::change("abort the migration of", subject(uuid)), abort).await
    }

    pub(super) async fn look_where(&self, uuid: InstanceUuid) -> Result<Whereabouts, HostError> {
        let look = move |session: &Session| match lookup(session, uuid)? {
            Some(domain) => whereabouts(&domain),
            None => Ok(Whereabouts::Absent),
        };
        self.link.call(Doing::read(subject(uuid)), look).await
    }

    pub(super) async fn read_versions(&self) -> Result<Versions, HostError> {
        let sysfs = self.sysfs();
        let read = |session: &Session| Ok((session.conn.lib_version()?, session.conn.hyp_version()?));
        let (libvirt, qemu) = self.link.call(Doing::read("the versions of libvirt and QEMU"), read).await?;
        let kernel = sysfs.map(|sysfs| sysfs.kernel_release()).transpose()?.flatten();
        Ok(Versions {
            libvirt: Version::of_number(libvirt),
            qemu: Version::of_number(qemu),
            kernel: kernel.and_then(|release| release.parse().ok()),
        })
    }
}

fn send(uri: &str, uuid: InstanceUuid, passage: &Passage) -> Result<(), HostError> {
    let doing = Doing::change("migrate", subject(uuid));
    let conn = Connect::open(Some(uri)).map_err(|err| HostError::Unreachable(clean(err.message())))?;
    let failed = |err: Error| host_error(&err, conn.is_alive().unwrap_or(false), &doing);
    let domain = conn.lookup_domain_by_uuid(uuid.0).map_err(failed)?;
    let parameters = MigrateParameters {
        dest_xml: Some(renamed(&live(&domain).map_err(failed)?, &passage.devices)?),
        persist_xml: Some(renamed(&guest::definition(&domain).map_err(failed)?, &passage.devices)?),
        bandwidth: passage.bandwidth_mib.map(u64::from),
        ..MigrateParameters::default()
    };
    let kept = passage.downtime_ms.map(|ms| allow_downtime(&domain, ms)).transpose().map_err(failed)?;
    let sent = domain.migrate_to_uri3(Some(&passage.uri), parameters, FLAGS);
    if let (Err(_), Some(before)) = (&sent, kept)
        && let Err(err) = domain.migrate_set_max_downtime(before, 0)
    {
        tracing::warn!(%uuid, before, "put the longest downtime back: {}", clean(err.message()));
    }
    sent.map_err(|err| match conn.is_alive() {
        Ok(true) if is_peer_lost(&err) => {
            let why = format!("libvirt lost its connection to {}", passage.uri);
            HostError::Refused(why)
        }
        _ => failed(err),
    })
}

/// As the other host is to take it, with its secrets.
fn live(domain: &VirtDomain) -> Result<String, Error> {
    domain.xml_desc(sys::VIR_DOMAIN_XML_MIGRATABLE | sys::VIR_DOMAIN_XML_SECURE)
}

fn renamed(xml: &str, devices: &[(MdevUuid, MdevUuid)]) -> Result<String, HostError> {
    with_other_uuids(xml, devices).map_err(|err| HostError::InvalidXml(err.to_string()))
}

/// Sets the longest downtime of the guest; what it was before, in ms.
fn allow_downtime(domain: &VirtDomain, ms: u32) -> Result<u64, Error> {
    let before = ffi::max_downtime(domain)?;
    domain.migrate_set_max_downtime(u64::from(ms), 0)?;
    Ok(before)
}

fn whereabouts(domain: &VirtDomain) -> Result<Whereabouts, Error> {
    let (_, reason) = domain.state()?;
    // A state that this program does not know is no state to act on.
    let Enum::Known(reason) = reason else { return Ok(Whereabouts::Held) };
    if let DomainStateReason::Shutoff(why) = reason {
        return Ok(Whereabouts::Off { moved: why.known() == Some(DomainShutoffReason::Migrated) });
    }
    if let Some(sent) = under_way(domain)? {
        return Ok(Whereabouts::UnderWay(sent));
    }
    let DomainStateReason::Paused(why) = reason else { return Ok(Whereabouts::Here) };
    let held = matches!(why.known(), Some(DomainPausedReason::Migration | DomainPausedReason::StartingUp));
    Ok(if held { Whereabouts::Held } else { Whereabouts::Here })
}

/// What the job that libvirt is at with the guest has sent; `None` without one.
fn under_way(domain: &VirtDomain) -> Result<Option<Sent>, Error> {
    let job = match domain.job_info() {
        Ok(job) => job,
        // It ended in between.
        Err(err) if is_wrong_state(&err) => return Ok(None),
        Err(err) if is_of_source_only(&err) => return Ok(Some(Sent::default())),
        Err(err) => return Err(err),
    };
    let active = [sys::VIR_DOMAIN_JOB_BOUNDED, sys::VIR_DOMAIN_JOB_UNBOUNDED];
    let is_active = u32::try_from(job.r#type).is_ok_and(|kind| active.contains(&kind));
    let sent = Sent { bytes: job.data_processed.unwrap_or(0), left: job.data_remaining.unwrap_or(0) };
    Ok(is_active.then_some(sent))
}
