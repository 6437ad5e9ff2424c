//! Devices past libvirt, for the time in which libvirt waits for our answer to its hook: read from sysfs, and made by the one
//! write that the kernel has for it. This is the only place that makes an mdev without libvirt.

use std::io::ErrorKind;

use super::{LibvirtHost, blocking};
use crate::host::HostError;
use crate::host::sysfs::Sysfs;
use crate::model::{HostScan, Mdev, MdevUuid, NewMdev};

impl LibvirtHost {
    pub(super) async fn look_at_kernel(&self) -> Result<HostScan, HostError> {
        let sysfs = self.local_sysfs()?;
        blocking(move || sysfs.look()).await
    }

    pub(super) async fn existing(&self, uuid: MdevUuid) -> Result<Option<Mdev>, HostError> {
        let sysfs = self.local_sysfs()?;
        blocking(move || sysfs.existing(uuid)).await
    }

    pub(super) async fn make_in_kernel(&self, new: &NewMdev) -> Result<(), HostError> {
        let (sysfs, new) = (self.local_sysfs()?, new.clone());
        blocking(move || make(&sysfs, &new)).await
    }

    fn local_sysfs(&self) -> Result<Sysfs, HostError> {
        self.sysfs().ok_or_else(|| {
            HostError::NotSupported(
                "libvirt's host is another one than this, its kernel cannot be asked".to_owned(),
            )
        })
    }
}

fn make(sysfs: &Sysfs, new: &NewMdev) -> Result<(), HostError> {
    if is_made(sysfs, new)? {
        return Ok(());
    }
    let what = format!("mdev {} on {}", new.uuid, new.parent);
    let Some(file) = sysfs.create_file(&new.parent, &new.type_id)? else {
        return Err(HostError::NotFound(format!("parent {}", new.parent)));
    };
    let written = std::fs::write(sysfs.root().join(file), new.uuid.to_string());
    match written {
        Ok(()) => {}
        Err(err) if err.kind() == ErrorKind::AlreadyExists => {}
        Err(err) if err.kind() == ErrorKind::StorageFull => {
            return Err(HostError::NoRoom(format!("{} for {what}", new.type_id)));
        }
        Err(err) if err.kind() == ErrorKind::NotFound => {
            return Err(HostError::NotFound(format!("type {} on {}", new.type_id, new.parent)));
        }
        Err(err) => return Err(HostError::Refused(format!("create {what}: {err}"))),
    }
    match is_made(sysfs, new)? {
        true => Ok(()),
        false => {
            Err(HostError::OutcomeUnknown(format!("the creation of {what}, which the kernel does not show")))
        }
    }
}

/// Whether it exists as wanted; another device under that UUID is an error.
fn is_made(sysfs: &Sysfs, new: &NewMdev) -> Result<bool, HostError> {
    let Some(found) = sysfs.existing(new.uuid)? else { return Ok(false) };
    // The link to the type may come a moment after the device.
    if found.parent == new.parent && found.type_id.as_ref().is_none_or(|id| *id == new.type_id) {
        return Ok(true);
    }
    let its_type = found.type_id.map_or_else(|| "an unknown type".to_owned(), |id| id.to_string());
    Err(HostError::Refused(format!("mdev {} exists on {} as {its_type}", new.uuid, found.parent)))
}
