//! The node devices of a case, read one by one as those of libvirt are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use mdevirt::host::sysfs::Sysfs;
use mdevirt::host::{HostError, HostEvent, NodeDevices};
use mdevirt::model::{HostScan, Mdev, MdevUuid, NewMdev, Parent, ParentAddr};
use mdevirt::xml::nodedev;
use tokio::sync::broadcast;

/// What a host lists, and never changes by itself; the simulator above it makes and removes devices.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) scan: HostScan,
}

impl Listing {
    /// All `*.xml` of a directory.
    pub(crate) fn of_files(dir: &Path) -> Self {
        let mut listing = Self::default();
        for path in crate::fixture::xml_files(dir) {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            listing.add(&name, &std::fs::read(&path).unwrap());
        }
        listing.finish()
    }

    /// These documents, named by their number.
    pub(crate) fn of_documents(documents: &[String]) -> Self {
        let mut listing = Self::default();
        for (number, xml) in documents.iter().enumerate() {
            listing.add(&number.to_string(), xml.as_bytes());
        }
        listing.finish()
    }

    /// Adds one device as libvirt prints it; what cannot be understood is named and left out. A device without a path is
    /// not in the kernel, so it is listed for its definition.
    pub(crate) fn add(&mut self, name: &str, xml: &[u8]) {
        let device = match nodedev::parse(xml) {
            Ok(device) => device,
            Err(err) => return self.scan.findings.push(err.finding(name)),
        };
        let active = String::from_utf8_lossy(xml).contains("<path>");
        match device.mdev(active, true) {
            Ok(mdev) => self.scan.mdevs.extend(mdev),
            Err(err) => self.scan.findings.push(err.finding(name)),
        }
        self.scan.parents.extend(device.parent());
        self.scan.findings.extend(device.findings);
    }

    /// Leaves out PCI functions that neither make slices nor have VFs that do, and puts the rest in order.
    pub(crate) fn finish(mut self) -> Self {
        let makes = |p: &Parent| p.framework.is_some();
        let cards: BTreeSet<ParentAddr> =
            self.scan.parents.iter().filter(|p| makes(p)).map(Parent::card).collect();
        self.scan.parents.retain(|p| makes(p) || cards.contains(&p.addr));
        self.scan = self.scan.sorted();
        self
    }

    /// Adds what the descriptions of the types say.
    pub(crate) fn described(mut self, sysfs: &Sysfs) -> Self {
        for parent in &mut self.scan.parents {
            sysfs.describe(parent).unwrap();
        }
        self
    }

    /// The same devices in the opposite order, and not sorted: libvirt promises none.
    pub(crate) fn backwards(mut self) -> Self {
        self.scan.parents.reverse();
        self.scan.mdevs.reverse();
        self
    }
}

#[async_trait]
impl NodeDevices for Listing {
    async fn scan(&self) -> Result<HostScan, HostError> {
        Ok(self.scan.clone())
    }

    async fn scan_card(&self, card: &ParentAddr) -> Result<Vec<Parent>, HostError> {
        Ok(self.scan.parents.iter().filter(|p| p.card() == *card).cloned().collect())
    }

    async fn find(&self, uuid: MdevUuid) -> Result<Vec<Mdev>, HostError> {
        Ok(self.scan.mdevs_with(uuid).cloned().collect())
    }

    async fn create(&self, _: &NewMdev) -> Result<(), HostError> {
        Err(HostError::NotSupported("a listing makes nothing".to_owned()))
    }

    async fn remove(&self, _: MdevUuid, _: &ParentAddr) -> Result<(), HostError> {
        Err(HostError::NotSupported("a listing removes nothing".to_owned()))
    }

    async fn scan_kernel(&self) -> Result<HostScan, HostError> {
        Err(HostError::NotSupported("a listing has no kernel".to_owned()))
    }

    async fn find_in_kernel(&self, _: MdevUuid) -> Result<Option<Mdev>, HostError> {
        Err(HostError::NotSupported("a listing has no kernel".to_owned()))
    }

    async fn create_in_kernel(&self, _: &NewMdev) -> Result<(), HostError> {
        Err(HostError::NotSupported("a listing has no kernel".to_owned()))
    }

    fn boot_id(&self) -> Result<Option<String>, HostError> {
        Ok(None)
    }

    fn events(&self) -> broadcast::Receiver<HostEvent> {
        broadcast::Sender::new(1).subscribe()
    }
}

/// `nodedev` of a case.
pub(crate) fn nodedev_dir(case: &str) -> PathBuf {
    crate::fixture::case(case).join("nodedev")
}
