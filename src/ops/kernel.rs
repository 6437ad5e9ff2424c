//! The host as it is while libvirt waits for an answer of ours: devices are seen and made by the kernel alone.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::broadcast;

use super::Host;
use crate::host::{HostError, HostEvent, NodeDevices};
use crate::model::{HostScan, Mdev, MdevUuid, NewMdev, Parent, ParentAddr};

/// See the head of the file.
#[derive(Debug)]
struct InKernel(Arc<dyn NodeDevices>);

impl Host {
    /// The same host without a question to libvirt. Removal is left as it is: nobody waits for that.
    pub fn in_kernel(&self) -> Self {
        Self { nodes: Arc::new(InKernel(Arc::clone(&self.nodes))), ..self.clone() }
    }
}

#[async_trait]
impl NodeDevices for InKernel {
    async fn scan(&self) -> Result<HostScan, HostError> {
        self.0.scan_kernel().await
    }

    async fn scan_card(&self, card: &ParentAddr) -> Result<Vec<Parent>, HostError> {
        let mut parents = self.0.scan_kernel().await?.parents;
        parents.retain(|parent| parent.card() == *card);
        Ok(parents)
    }

    async fn find(&self, uuid: MdevUuid) -> Result<Vec<Mdev>, HostError> {
        Ok(self.0.find_in_kernel(uuid).await?.into_iter().collect())
    }

    async fn create(&self, new: &NewMdev) -> Result<(), HostError> {
        self.0.create_in_kernel(new).await
    }

    async fn remove(&self, uuid: MdevUuid, parent: &ParentAddr) -> Result<(), HostError> {
        self.0.remove(uuid, parent).await
    }

    fn events(&self) -> broadcast::Receiver<HostEvent> {
        self.0.events()
    }

    fn boot_id(&self) -> Result<Option<String>, HostError> {
        self.0.boot_id()
    }

    fn driver_version(&self, parent: &ParentAddr) -> Result<Option<String>, HostError> {
        self.0.driver_version(parent)
    }

    async fn scan_kernel(&self) -> Result<HostScan, HostError> {
        self.0.scan_kernel().await
    }

    async fn find_in_kernel(&self, uuid: MdevUuid) -> Result<Option<Mdev>, HostError> {
        self.0.find_in_kernel(uuid).await
    }

    async fn create_in_kernel(&self, new: &NewMdev) -> Result<(), HostError> {
        self.0.create_in_kernel(new).await
    }
}
