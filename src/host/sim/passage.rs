//! Guests between the simulated hosts of one process: each host has an address, by which another one sends it a guest.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::SimHost;
use super::domains::mdevs_in;
use crate::host::{HostError, Passage};
use crate::model::{InstanceUuid, Version, Versions};
use crate::xml::domain::with_other_uuids;

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
        let defined = known.defined.as_ref().unwrap_or(&live);
        there.receive(uuid, renamed(&live)?, renamed(defined)?).await?;
        let _turn = self.domain_turn.lock().await;
        self.base_domains.stop(uuid).await?;
        self.base_domains.undefine(uuid).await?;
        self.record(uuid, |domain| {
            (domain.live, domain.defined, domain.saved, domain.autostart) = (None, None, None, false);
        })
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
