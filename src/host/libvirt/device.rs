//! Making and removing one mediated device.
//!
//! 1. What libvirt answers is not the outcome: it may return nothing though the device was made, and its list follows the
//!    kernel later. Both are looked up before anything is said.
//! 2. mdevctl is given the UUID alone for start, autostart and undefine, so these are used only while one parent has it.
//! 3. Waits end with an event or the deadline, and never poll.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use virt::error::Error;
use virt::nodedev::NodeDevice as VirtNode;

use super::error::{Doing, is_gone, is_wrong_state};
use super::link::Session;
use super::next::{Next, next};
use super::nodedev::Listing;
use super::{LibvirtHost, blocking};
use super::{ffi, nodedev};
use crate::host::HostError;
use crate::model::{Mdev, MdevUuid, NewMdev, ParentAddr};

/// How long libvirt's list may stay behind the kernel: a udev event takes it a second, on a busy host more.
const SETTLE_LIMIT: Duration = Duration::from_secs(30);

fn named(uuid: MdevUuid, parent: &ParentAddr) -> String {
    format!("mdev {uuid} on {parent}")
}

impl LibvirtHost {
    /// All devices with this UUID: libvirt's, and what it left out.
    pub(super) async fn find_all(&self, uuid: MdevUuid) -> Result<Vec<Mdev>, HostError> {
        let listed = self.listed(uuid).await?;
        self.completed(uuid, listed).await
    }

    async fn listed(&self, uuid: MdevUuid) -> Result<Vec<Mdev>, HostError> {
        let look = move |session: &Session| nodedev::mdevs(session, uuid);
        let Listing { scan, broken, orphans, .. } =
            self.link.call(Doing::read(format!("mdev {uuid}")), look).await?;
        // What could not be understood may be what is looked for. An orphan is known by its file, without one by nothing.
        let orphans = orphans.into_iter().map(|(_, finding)| finding).filter(|_| self.witness.is_none());
        match broken.into_iter().chain(orphans).next() {
            Some(finding) => Err(HostError::Unreadable { what: finding.about, why: finding.text }),
            None => Ok(scan.mdevs),
        }
    }

    async fn completed(&self, uuid: MdevUuid, mut mdevs: Vec<Mdev>) -> Result<Vec<Mdev>, HostError> {
        if let Some(witness) = self.witness.clone() {
            mdevs = blocking(move || witness.complete_one(uuid, &mut mdevs).map(|()| mdevs)).await?;
        }
        mdevs.sort_by(|a, b| a.parent.cmp(&b.parent));
        Ok(mdevs)
    }

    pub(super) async fn make(&self, new: &NewMdev) -> Result<(), HostError> {
        let what = named(new.uuid, &new.parent);
        let xml = self.templates.nodedev(new).map_err(|err| HostError::InvalidXml(err.to_string()))?;
        let found = self.find_all(new.uuid).await?;
        let next = next(&found, new)?;
        let tried = match next {
            Next::Nothing => return Ok(()),
            Next::Define => Ok(()),
            Next::Start => self.start_defined(new.uuid, &new.parent).await,
            Next::Make | Next::MakeDefined => {
                let xml = xml.clone();
                let make = move |session: &Session| session.conn.create_node_device_xml(&xml, 0).map(|_| ());
                self.link.call(Doing::define("create", what.as_str()), make).await
            }
        };
        if let Err(err) = tried {
            self.unless_made(new, err).await?;
        }
        if matches!(next, Next::Make | Next::Define) {
            let alone = found.iter().all(|mdev| mdev.parent == new.parent);
            self.define(new, xml, alone).await?;
        }
        self.settled(&what, new.uuid, &new.parent, |mdev| {
            mdev.is_some_and(|mdev| mdev.active && mdev.defined)
        })
        .await
    }

    /// The failure, unless the device is there all the same.
    async fn unless_made(&self, new: &NewMdev, err: HostError) -> Result<(), HostError> {
        if matches!(err, HostError::Unreachable(_) | HostError::OutcomeUnknown(_)) {
            return Err(err);
        }
        let made = self.find_all(new.uuid).await?.iter().any(|mdev| {
            mdev.active && mdev.parent == new.parent && mdev.type_id.as_ref() == Some(&new.type_id)
        });
        if made { Ok(()) } else { Err(err) }
    }

    async fn start_defined(&self, uuid: MdevUuid, parent: &ParentAddr) -> Result<(), HostError> {
        // The kernel does not have it: libvirt, which says that it is active, has not heard yet that it went.
        self.on_listed("start", uuid, parent, |device, _| unless_behind(ffi::start(device))).await
    }

    /// libvirt takes no wish for autostart from the XML, so that is a call of its own; one that a second definition of the
    /// UUID would make ambiguous.
    async fn define(&self, new: &NewMdev, xml: String, alone: bool) -> Result<(), HostError> {
        let what = named(new.uuid, &new.parent);
        let define = move |session: &Session| ffi::define(&session.conn, &xml).map(|_| ());
        self.link.call(Doing::define("define", what.as_str()), define).await?;
        if !alone {
            return Ok(());
        }
        // libvirt takes it for transient as long as its list is older than the definition.
        let autostart = |device: &VirtNode, _: &Mdev| unless_behind(ffi::autostart(device));
        match self.on_listed("autostart", new.uuid, &new.parent, autostart).await {
            Err(err @ (HostError::Unreachable(_) | HostError::OutcomeUnknown(_))) => Err(err),
            // The daemon makes its devices again after a boot; autostart serves those who use libvirt without it.
            Err(err) => {
                tracing::warn!("{err}");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Changes a device through libvirt's object of it, once that is listed and `change` takes it as it is. libvirt's list
    /// may be rewritten from what mdevctl said before the device came, when many come at once; the next event mends it.
    async fn on_listed<F>(
        &self,
        verb: &'static str,
        uuid: MdevUuid,
        parent: &ParentAddr,
        change: F,
    ) -> Result<(), HostError>
    where
        F: Fn(&VirtNode, &Mdev) -> Result<bool, Error> + Clone + Send + 'static,
    {
        let what = named(uuid, parent);
        let mut changes = self.link.wakes().node_devices();
        let deadline = Instant::now() + SETTLE_LIMIT;
        loop {
            changes.mark_unchanged();
            let (key, change) = (parent.clone(), change.clone());
            let calls = move |session: &Session| match nodedev::object(session, uuid, &key)? {
                Some((device, listed)) => change(&device, &listed),
                None => Ok(false),
            };
            if self.link.call(Doing::change(verb, what.as_str()), calls).await? {
                return Ok(());
            }
            if !matches!(timeout_at(deadline, changes.changed()).await, Ok(Ok(()))) {
                return Err(not_listed(&what));
            }
        }
    }

    pub(super) async fn unmake(&self, uuid: MdevUuid, parent: &ParentAddr) -> Result<(), HostError> {
        let what = named(uuid, parent);
        let found = self.find_all(uuid).await?;
        let Some(here) = found.iter().find(|mdev| mdev.parent == *parent) else { return Ok(()) };
        if here.active {
            self.destroy(uuid, parent).await?;
        }
        if here.defined {
            self.undefine(uuid, parent, &found).await?;
        }
        self.settled(&what, uuid, parent, |mdev| mdev.is_none()).await
    }

    /// libvirt looks whether the device's VFIO group is open before it removes it, and says so.
    ///
    /// # Source
    /// libvirt `node_device_driver.c`, `nodeDeviceDestroy`.
    async fn destroy(&self, uuid: MdevUuid, parent: &ParentAddr) -> Result<(), HostError> {
        let destroy = |device: &VirtNode, listed: &Mdev| match listed.active {
            true => {
                device.destroy().map(|()| true).or_else(|err| if is_gone(&err) { Ok(true) } else { Err(err) })
            }
            false => Ok(false),
        };
        match self.on_listed("remove", uuid, parent, destroy).await {
            Ok(()) => Ok(()),
            Err(err @ (HostError::Unreachable(_) | HostError::OutcomeUnknown(_))) => Err(err),
            Err(err) => {
                let found = self.find_all(uuid).await?;
                if found.iter().any(|mdev| mdev.active && mdev.parent == *parent) { Err(err) } else { Ok(()) }
            }
        }
    }

    async fn undefine(&self, uuid: MdevUuid, parent: &ParentAddr, found: &[Mdev]) -> Result<(), HostError> {
        let what = named(uuid, parent);
        let key = parent.clone();
        let undefine = move |session: &Session| match nodedev::object(session, uuid, &key)? {
            Some((device, listed)) if listed.defined => ffi::undefine(&device).map(|()| true),
            Some(_) | None => Ok(false),
        };
        let files = match self.witness.clone() {
            // Also those that are malformed, which libvirt does not list.
            Some(witness) => blocking(move || Ok(witness.definitions.of(uuid)?.len())).await?,
            None => found.iter().filter(|mdev| mdev.defined).count(),
        };
        if files <= 1 && self.link.call(Doing::change("undefine", what.as_str()), undefine).await? {
            return Ok(());
        }
        let Some(witness) = self.witness.clone() else {
            let why = "another parent defines the same UUID; remove its definition there";
            return Err(HostError::Refused(format!("cannot undefine {what}: {why}")));
        };
        let key = parent.clone();
        blocking(move || witness.definitions.remove(uuid, &key)).await
    }

    /// Waits until libvirt's list and, on a local connection, the kernel and mdevctl's files show the device as wanted.
    async fn settled(
        &self,
        what: &str,
        uuid: MdevUuid,
        parent: &ParentAddr,
        wanted: impl Fn(Option<&Mdev>) -> bool,
    ) -> Result<(), HostError> {
        let mut changes = self.link.wakes().node_devices();
        let deadline = Instant::now() + SETTLE_LIMIT;
        loop {
            changes.mark_unchanged();
            let listed = self.listed(uuid).await?;
            let all = self.completed(uuid, listed.clone()).await?;
            let shows = |mdevs: &[Mdev]| wanted(mdevs.iter().find(|mdev| mdev.parent == *parent));
            if shows(&listed) && shows(&all) {
                return Ok(());
            }
            if !matches!(timeout_at(deadline, changes.changed()).await, Ok(Ok(()))) {
                if self.witness.is_some() && shows(&all) {
                    tracing::warn!(device = what, "libvirt's list does not follow the kernel");
                    return Ok(());
                }
                return Err(HostError::OutcomeUnknown(format!(
                    "the change of {what}, which libvirt's list does not show"
                )));
            }
        }
    }
}

/// Whether it was done; what does not fit libvirt's list waits until that follows the kernel.
fn unless_behind(outcome: Result<(), Error>) -> Result<bool, Error> {
    match outcome {
        Ok(()) => Ok(true),
        Err(err) if is_wrong_state(&err) => Ok(false),
        Err(err) => Err(err),
    }
}

fn not_listed(what: &str) -> HostError {
    let why = "it is on this host, but libvirt's list does not have it so; repair what mdevctl cannot read, then restart \
               libvirtd";
    HostError::Unreadable { what: what.to_owned(), why: why.to_owned() }
}
