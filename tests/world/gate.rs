//! A host that is slow to answer: its next look at the hardware, or at one domain, is held back after it was taken.

use std::sync::Arc;

use async_trait::async_trait;
use mdevirt::host::sim::SimHost;
use mdevirt::host::{
    Config, Domain, HostError, HostEvent, HostdevXml, Hypervisor, NodeDevices, Passage, Whereabouts,
};
use mdevirt::model::{HostScan, InstanceUuid, Mdev, MdevUuid, NewMdev, Parent, ParentAddr, Versions};
use tokio::sync::{broadcast, watch};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The next answer is held.
    Set,
    /// One is being held.
    Holding,
}

/// Holds one answer.
#[derive(Debug)]
pub struct Bar(watch::Sender<State>);

impl Default for Bar {
    fn default() -> Self {
        Self(watch::Sender::new(State::Open))
    }
}

impl Bar {
    /// Holds the next answer back.
    pub fn set(&self) {
        self.0.send_replace(State::Set);
    }

    /// Returns once an answer is held.
    pub async fn holds(&self) {
        self.0.subscribe().wait_for(|state| *state == State::Holding).await.unwrap();
    }

    /// Lets it through, as it was.
    pub fn open(&self) {
        self.0.send_replace(State::Open);
    }

    async fn pass(&self) {
        let mine = self.0.send_if_modified(|state| {
            let set = *state == State::Set;
            *state = if set { State::Holding } else { *state };
            set
        });
        if mine {
            self.0.subscribe().wait_for(|state| *state == State::Open).await.unwrap();
        }
    }
}

/// Holds all that goes through libvirt, as libvirt does for a domain while it waits for its hook.
#[derive(Debug)]
pub struct Lock {
    locked: watch::Sender<bool>,
    waiting: watch::Sender<usize>,
}

impl Default for Lock {
    fn default() -> Self {
        Self { locked: watch::Sender::new(false), waiting: watch::Sender::new(0) }
    }
}

impl Lock {
    pub fn lock(&self) {
        self.locked.send_replace(true);
    }

    pub fn unlock(&self) {
        self.locked.send_replace(false);
    }

    /// Returns once as many calls wait.
    pub async fn waiting_for(&self, calls: usize) {
        self.waiting.subscribe().wait_for(|waiting| *waiting >= calls).await.unwrap();
    }

    async fn pass(&self) {
        self.waiting.send_modify(|waiting| *waiting += 1);
        self.locked.subscribe().wait_for(|locked| !locked).await.unwrap();
        self.waiting.send_modify(|waiting| *waiting -= 1);
    }
}

/// See the head of the file.
#[derive(Debug)]
pub struct Gate {
    sim: Arc<SimHost>,
    /// All calls but those to the kernel.
    pub libvirt: Lock,
    /// Looks at all the hardware.
    pub scan: Bar,
    /// Looks at one domain.
    pub domain: Bar,
}

impl Gate {
    pub fn new(sim: Arc<SimHost>) -> Arc<Self> {
        Arc::new(Self { sim, libvirt: Lock::default(), scan: Bar::default(), domain: Bar::default() })
    }
}

#[async_trait]
impl NodeDevices for Gate {
    async fn scan(&self) -> Result<HostScan, HostError> {
        self.libvirt.pass().await;
        let seen = self.sim.scan().await;
        self.scan.pass().await;
        seen
    }

    async fn scan_card(&self, card: &ParentAddr) -> Result<Vec<Parent>, HostError> {
        self.libvirt.pass().await;
        self.sim.scan_card(card).await
    }

    async fn find(&self, uuid: MdevUuid) -> Result<Vec<Mdev>, HostError> {
        self.libvirt.pass().await;
        self.sim.find(uuid).await
    }

    async fn create(&self, new: &NewMdev) -> Result<(), HostError> {
        self.libvirt.pass().await;
        self.sim.create(new).await
    }

    async fn remove(&self, uuid: MdevUuid, parent: &ParentAddr) -> Result<(), HostError> {
        self.libvirt.pass().await;
        self.sim.remove(uuid, parent).await
    }

    fn events(&self) -> broadcast::Receiver<HostEvent> {
        self.sim.events()
    }

    fn boot_id(&self) -> Result<Option<String>, HostError> {
        self.sim.boot_id()
    }

    fn driver_version(&self, parent: &ParentAddr) -> Result<Option<String>, HostError> {
        self.sim.driver_version(parent)
    }

    async fn scan_kernel(&self) -> Result<HostScan, HostError> {
        self.sim.scan_kernel().await
    }

    async fn find_in_kernel(&self, uuid: MdevUuid) -> Result<Option<Mdev>, HostError> {
        self.sim.find_in_kernel(uuid).await
    }

    async fn create_in_kernel(&self, new: &NewMdev) -> Result<(), HostError> {
        self.sim.create_in_kernel(new).await
    }
}

#[async_trait]
impl Hypervisor for Gate {
    async fn domains(&self) -> Result<Vec<Domain>, HostError> {
        self.libvirt.pass().await;
        self.sim.domains().await
    }

    async fn domain(&self, uuid: InstanceUuid) -> Result<Option<Domain>, HostError> {
        self.libvirt.pass().await;
        let seen = self.sim.domain(uuid).await;
        self.domain.pass().await;
        seen
    }

    async fn define(&self, xml: &str) -> Result<(), HostError> {
        self.libvirt.pass().await;
        self.sim.define(xml).await
    }

    async fn undefine(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        self.libvirt.pass().await;
        self.sim.undefine(uuid).await
    }

    async fn start(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        self.libvirt.pass().await;
        self.sim.start(uuid).await
    }

    async fn autostarts(&self, uuid: InstanceUuid) -> Result<bool, HostError> {
        self.libvirt.pass().await;
        self.sim.autostarts(uuid).await
    }

    async fn stop(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        self.libvirt.pass().await;
        self.sim.stop(uuid).await
    }

    async fn definition(&self, uuid: InstanceUuid) -> Result<Option<String>, HostError> {
        self.libvirt.pass().await;
        self.sim.definition(uuid).await
    }

    async fn save(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        self.libvirt.pass().await;
        self.sim.save(uuid).await
    }

    async fn is_saved(&self, uuid: InstanceUuid) -> Result<bool, HostError> {
        self.libvirt.pass().await;
        self.sim.is_saved(uuid).await
    }

    async fn describe(&self, uuid: InstanceUuid, element: &str) -> Result<(), HostError> {
        self.libvirt.pass().await;
        self.sim.describe(uuid, element).await
    }

    async fn migrate(&self, uuid: InstanceUuid, passage: &Passage) -> Result<(), HostError> {
        self.libvirt.pass().await;
        self.sim.migrate(uuid, passage).await
    }

    async fn abort_migration(&self, uuid: InstanceUuid) -> Result<(), HostError> {
        self.libvirt.pass().await;
        self.sim.abort_migration(uuid).await
    }

    async fn whereabouts(&self, uuid: InstanceUuid) -> Result<Whereabouts, HostError> {
        self.libvirt.pass().await;
        self.sim.whereabouts(uuid).await
    }

    async fn versions(&self) -> Result<Versions, HostError> {
        self.libvirt.pass().await;
        self.sim.versions().await
    }

    async fn attach(&self, uuid: InstanceUuid, hostdev: &HostdevXml, into: Config) -> Result<(), HostError> {
        self.libvirt.pass().await;
        self.sim.attach(uuid, hostdev, into).await
    }

    async fn detach(&self, uuid: InstanceUuid, hostdev: &HostdevXml, from: Config) -> Result<(), HostError> {
        self.libvirt.pass().await;
        self.sim.detach(uuid, hostdev, from).await
    }
}
