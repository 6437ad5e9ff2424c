//! The host past libvirt: what the kernel shows and makes while libvirt waits for its hook and must not be asked.

use super::{LibvirtHost, blocking};
use crate::host::HostError;
use crate::host::sysfs::Sysfs;
use crate::model::{HostScan, Mdev, MdevUuid, NewMdev};

impl LibvirtHost {
    pub(super) async fn scan_past_libvirt(&self) -> Result<HostScan, HostError> {
        let sysfs = self.kernel()?;
        blocking(move || sysfs.scan()).await
    }

    pub(super) async fn find_past_libvirt(&self, uuid: MdevUuid) -> Result<Option<Mdev>, HostError> {
        let sysfs = self.kernel()?;
        blocking(move || sysfs.mdev(uuid)).await
    }

    pub(super) async fn make_past_libvirt(&self, new: &NewMdev) -> Result<(), HostError> {
        let (sysfs, new) = (self.kernel()?, new.clone());
        blocking(move || sysfs.create(&new)).await
    }

    fn kernel(&self) -> Result<Sysfs, HostError> {
        let why = "the kernel's mediated devices without libvirt: libvirt is on another host, or /sys is not mounted";
        self.sysfs().filter(Sysfs::is_mounted).ok_or_else(|| HostError::NotSupported(why.to_owned()))
    }
}
