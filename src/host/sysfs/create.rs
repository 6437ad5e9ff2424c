//! The one write to sysfs: a mediated device made by the kernel alone.
//!
//! Devices are made through libvirt. But while libvirt waits for its own qemu hook it answers nobody, and a guest whose device
//! is missing at that moment would not start. So the device is made here as mdevctl would make it, and defined later.
//!
//! 1. The path is that of a parent that the kernel has, and of a checked type id. One write, of a UUID.
//! 2. What the write answers is not the outcome: the device is looked up before anything is said.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};

use super::{ActiveMdev, Sysfs, is_kernel_name_of};
use crate::host::HostError;
use crate::model::{MdevUuid, NewMdev, TypeId};

impl Sysfs {
    /// Makes a device. One that exists with the same UUID, parent and type is left as it is.
    ///
    /// # Errors
    /// `Refused` if the UUID belongs to another device; `NotFound`, `NoRoom`, `Unreadable` or `Refused` if it was not made;
    /// `OutcomeUnknown` if the kernel took the write and does not show the device.
    ///
    /// # Source
    /// Linux `Documentation/driver-api/vfio-mediated-device.rst`: a UUID written to `create` of a type makes a device.
    pub fn create(&self, new: &NewMdev) -> Result<(), HostError> {
        if self.has(new)? {
            return Ok(());
        }
        let path = self.place(new)?;
        let written = write_once(&self.root.join(path), new.uuid);
        self.judge(new, written)
    }

    /// Whether the device is there as wanted.
    fn has(&self, new: &NewMdev) -> Result<bool, HostError> {
        self.active_mdev(new.uuid)?
            .map_or(Ok(false), |found| if is_it(&found, new) { Ok(true) } else { Err(taken(&found, new)) })
    }

    /// The file to write to, if there is room; what mdevctl looks at first, too.
    fn place(&self, new: &NewMdev) -> Result<String, HostError> {
        let (parent, type_id) = (&new.parent, &new.type_id);
        let no_parent = || HostError::NotFound(format!("parent {parent}"));
        let (directory, _) = self.types_of(parent)?.ok_or_else(no_parent)?;
        if !self.names_in(&directory)?.iter().any(|id| id == type_id.as_str()) {
            return Err(HostError::Refused(format!("parent {parent} does not support mdev type {type_id}")));
        }
        if self.available(&directory, type_id)? == 0 {
            return Err(HostError::NoRoom(format!("no available instances of {type_id} on {parent}")));
        }
        Ok(format!("{directory}/{type_id}/create"))
    }

    fn judge(&self, new: &NewMdev, written: io::Result<()>) -> Result<(), HostError> {
        match (written, self.has(new)) {
            (_, Ok(true)) => Ok(()),
            (Err(_), Err(taken @ HostError::Refused(_))) => Err(taken),
            (Err(err), Ok(false) | Err(_)) => Err(refusal(new, &err)),
            (Ok(()), Ok(false) | Err(_)) => {
                let what = subject(new);
                Err(HostError::OutcomeUnknown(format!(
                    "the attempt to create {what}, which the kernel does not show"
                )))
            }
        }
    }
}

fn write_once(path: &std::path::Path, uuid: MdevUuid) -> io::Result<()> {
    let text = uuid.to_string();
    let written = OpenOptions::new().write(true).open(path)?.write(text.as_bytes())?;
    if written == text.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
}

fn is_it(found: &ActiveMdev, new: &NewMdev) -> bool {
    is_kernel_name_of(&found.parent, &new.parent) && found.type_id.as_ref() == Some(&new.type_id)
}

fn taken(found: &ActiveMdev, new: &NewMdev) -> HostError {
    let type_id = found.type_id.as_ref().map_or("of unknown type", TypeId::as_str);
    let (uuid, parent) = (new.uuid, &found.parent);
    HostError::Refused(format!(
        "mdev {uuid} is active on {parent} ({type_id}); take another UUID or remove it"
    ))
}

/// # Source
/// Linux `drivers/vfio/mdev/mdev_core.c`, `mdev_device_create`: EUSERS where the kernel counts the room itself, ENODEV while
/// the parent goes; drivers answer ENOSPC.
fn refusal(new: &NewMdev, err: &io::Error) -> HostError {
    const ENODEV: i32 = 19;
    const EUSERS: i32 = 87;
    let what = subject(new);
    match (err.kind(), err.raw_os_error()) {
        (ErrorKind::StorageFull, _) | (_, Some(EUSERS)) => HostError::NoRoom(format!("{what}: {err}")),
        (ErrorKind::NotFound, _) | (_, Some(ENODEV)) => HostError::NotFound(format!("the parent of {what}")),
        _ => HostError::Refused(format!("cannot create {what}: {err}")),
    }
}

fn subject(new: &NewMdev) -> String {
    format!("mdev {} on {}", new.uuid, new.parent)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::model::DeviceApi;

    const UUID: &str = "1fc01460-67d7-4303-a5ea-69a57b994f50";

    fn new() -> NewMdev {
        NewMdev {
            uuid: UUID.parse().unwrap(),
            parent: "0000:3b:00.0".parse().unwrap(),
            type_id: "nvidia-231".parse().unwrap(),
            device_api: DeviceApi::VfioPci,
        }
    }

    /// A kernel in which the device came while `create` was written to, as this type on this parent.
    fn after(parent: &str, type_id: &str) -> (tempfile::TempDir, Sysfs) {
        let root = tempfile::tempdir().unwrap();
        let devices = root.path().join("sys/bus/mdev/devices");
        let device = root.path().join("sys/devices").join(parent).join(UUID);
        fs::create_dir_all(&devices).unwrap();
        fs::create_dir_all(&device).unwrap();
        symlink(format!("../mdev_supported_types/{type_id}"), device.join("mdev_type")).unwrap();
        symlink(format!("../../../devices/{parent}/{UUID}"), devices.join(UUID)).unwrap();
        let sysfs = Sysfs::new(root.path());
        (root, sysfs)
    }

    fn errno(number: i32) -> io::Result<()> {
        Err(io::Error::from_raw_os_error(number))
    }

    #[test]
    fn what_is_there_afterwards_is_the_outcome() {
        let (_root, same) = after("0000:3b:00.0", "nvidia-231");
        assert_eq!(same.judge(&new(), Ok(())), Ok(()));
        assert_eq!(same.judge(&new(), errno(17)), Ok(()), "somebody made the same one");
        for (parent, type_id) in [("0000:86:00.0", "nvidia-231"), ("0000:3b:00.0", "nvidia-232")] {
            let (_root, other) = after(parent, type_id);
            let refused = other.judge(&new(), errno(17)).unwrap_err();
            assert!(matches!(&refused, HostError::Refused(text) if text.contains(UUID)), "{refused}");
            assert!(matches!(other.judge(&new(), Ok(())), Err(HostError::OutcomeUnknown(_))));
        }
    }

    #[test]
    fn errors_of_the_kernel_have_their_kind() {
        let none = Sysfs::new("/nonexistent");
        let kind = |number| none.judge(&new(), errno(number)).unwrap_err();
        for full in [28, 87] {
            assert!(matches!(kind(full), HostError::NoRoom(text) if text.contains("0000:3b:00.0")));
        }
        for gone in [2, 19] {
            assert!(matches!(kind(gone), HostError::NotFound(text) if text.contains("0000:3b:00.0")));
        }
        for other in [1, 5, 13, 16, 17, 22, 30] {
            assert!(matches!(kind(other), HostError::Refused(text) if text.contains(UUID)), "{other}");
        }
        assert!(matches!(none.judge(&new(), Ok(())), Err(HostError::OutcomeUnknown(_))));
    }
}
