//! Guests between the simulated hosts of one process: each host has an address, by which another one sends it a guest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::SimHost;
use super::domains::mdevs_in;
use crate::host::{HostError, Passage};
use crate::model::{InstanceUuid, Version, Versions};
use crate::xml::domain::with_other_uuids;

/// Guests that are on their way, for as long as a test holds them there.
#[derive(Debug, Default)]
pub(super) struct Transit {
    held: bool,
    under_way: BTreeSet<InstanceUuid>,
}

/// What a simulated host says of itself.
#[derive(Debug)]
pub(super) struct Platform {
    pub(super) versions: Versions,
    pub(super) driver: Option<String>,
}

impl Default for Platform {
    fn default() -> Self {
        let versions =
            Versions { libvirt: Version(11, 3, 0), qemu: Version(10, 0, 0), kernel: Some(Version(6, 12, 0)) };
        Self { versions, driver: None }
    }
}

static HOSTS: Mutex<BTreeMap<String, Weak<SimHost>>> = Mutex::new(BTreeMap::new());

impl SimHost {
    /// What other simulated hosts of this process reach it by, `sim:1`.
    pub fn address(self: &Arc<Self>) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let address = self.address.get_or_init(|| format!("sim:{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        let mut hosts = HOSTS.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.retain(|_, host| host.strong_count() > 0);
        hosts.insert(address.clone(), Arc::downgrade(self));
        address.clone()
    }

    pub(super) async fn send_to(&self, uuid: InstanceUuid, passage: &Passage) -> Result<(), HostError> {
        let known = self.state().table().domain(uuid).cloned();
        let known = known.ok_or_else(|| HostError::NotFound(format!("domain {uuid}")))?;
        let Some(live) = known.live else {
            return Err(HostError::Refused(format!("domain {uuid} is not running")));
        };
        let there =
            HOSTS.lock().unwrap_or_else(PoisonError::into_inner).get(&passage.uri).and_then(Weak::upgrade);
        let refused = || HostError::Refused(format!("unable to connect to server at {:?}", passage.uri));
        let there = there.ok_or_else(refused)?;
        let renamed = |xml: &str| {
            with_other_uuids(xml, &passage.devices).map_err(|err| HostError::InvalidXml(err.to_string()))
        };
        self.pass(uuid).await?;
        let defined = known.defined.as_ref().unwrap_or(&live);
        there.receive(uuid, renamed(&live)?, renamed(defined)?).await?;
        let _turn = self.domain_turn.lock().await;
        self.base_domains.stop(uuid).await?;
        self.base_domains.undefine(uuid).await?;
        self.record(uuid, |domain| {
            (domain.live, domain.defined, domain.saved, domain.autostart) = (None, None, None, false);
        })
    }

    /// Holds guests on their way from here, or lets them go on.
    pub fn hold_guests(&self, held: bool) {
        self.transit.send_modify(|transit| transit.held = held);
    }

    /// Returns once a guest is held on its way.
    pub async fn guest_held(&self) {
        // It cannot fail: the sender is `self`.
        let _ = self.transit.subscribe().wait_for(|transit| !transit.under_way.is_empty()).await;
    }

    /// Waits while guests are held; an error if this one is called back.
    async fn pass(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        if !self.transit.borrow().held {
            return Ok(());
        }
        self.transit.send_modify(|transit| {
            transit.under_way.insert(uuid);
        });
        let mut moves = self.transit.subscribe();
        let goes_on = |transit: &Transit| !transit.held || !transit.under_way.contains(&uuid);
        let called_back = moves.wait_for(goes_on).await.is_ok_and(|transit| transit.held);
        self.call_back(uuid);
        if called_back {
            return Err(HostError::Refused(
                "operation aborted: migration out: canceled by client".to_owned(),
            ));
        }
        Ok(())
    }

    pub(super) fn call_back(&self, uuid: InstanceUuid) {
        self.transit.send_modify(|transit| {
            transit.under_way.remove(&uuid);
        });
    }

    pub(super) fn is_under_way(&self, uuid: InstanceUuid) -> bool {
        self.transit.borrow().under_way.contains(&uuid)
    }

    /// The guest comes running, with the devices that are here for it.
    async fn receive(&self, uuid: InstanceUuid, live: String, defined: String) -> Result<(), HostError> {
        self.define_and_record(&defined).await?;
        if let Err(error) = self.start_with_devices(uuid).await {
            self.base_domains.undefine(uuid).await?;
            self.record(uuid, |domain| domain.defined = None)?;
            return Err(error);
        }
        let holds = mdevs_in(&live)?;
        self.record(uuid, |domain| (domain.live, domain.holds) = (Some(live), holds))
    }

    pub(super) fn platform(&self) -> std::sync::MutexGuard<'_, Platform> {
        self.platform.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
