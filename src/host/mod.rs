//! The host as two traits: [`NodeDevices`] (hardware) and [`Hypervisor`] (domains). Rank 1; the rooms below are rank 2.
//!
//! 1. A read either is complete or is an error: an empty list means "none", never "could not look".
//! 2. Nothing here decides; it reports what is and does what it is told, once.
//! 3. Only `libvirt/` knows the virt crates, only `sysfs` knows kernel paths, only this room starts programs.

#[cfg(feature = "libvirt")]
pub mod libvirt;
pub mod mdevctl_d;
mod passage;
pub mod sim;
pub mod sysfs;

pub use passage::{Passage, Sent, Whereabouts};

use std::fmt::Debug;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use crate::model::{HostScan, InstanceUuid, Mdev, MdevUuid, NewMdev, Parent, ParentAddr, Versions};

/// Why the host did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// libvirt cannot be reached; nothing was done.
    #[error("libvirt cannot be reached: {0}")]
    Unreachable(String),
    /// The call was made and its answer was lost; whether it took effect has to be looked up.
    #[error("the outcome of {0} is not known")]
    OutcomeUnknown(String),
    /// The named thing is not there.
    #[error("{0} is not there")]
    NotFound(String),
    /// The device is open or a domain uses it.
    #[error("{0} is in use")]
    InUse(String),
    /// The parent has no room for the type at this moment.
    #[error("no room: {0}")]
    NoRoom(String),
    /// libvirt does not accept the XML.
    #[error("libvirt refuses the XML: {0}")]
    InvalidXml(String),
    /// A read failed or its answer could not be understood: unknown, not free.
    #[error("cannot read {what}: {why}")]
    Unreadable {
        /// What was to be read.
        what: String,
        /// The reason.
        why: String,
    },
    /// The host cannot do it at all.
    #[error("not supported: {0}")]
    NotSupported(String),
    /// libvirt, mdevctl or the kernel refused.
    #[error("the host refuses: {0}")]
    Refused(String),
}

/// Something moved on the host. Events only wake; whoever wakes looks at everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostEvent {
    /// A node device came, went or changed.
    NodeDevices,
    /// A domain was defined, undefined, started or stopped.
    Domain(InstanceUuid),
    /// The connection to libvirt is there (again).
    Connected,
    /// The connection to libvirt is lost.
    Disconnected,
}

/// Parents and mediated devices.
#[async_trait]
pub trait NodeDevices: Send + Sync + Debug {
    /// Looks at all parents (and physical functions of VFs) and all mediated devices, active and only defined.
    async fn scan(&self) -> Result<HostScan, HostError>;

    /// Looks again at every function of one card ([`Parent::card`]); empty if the card is not there.
    async fn scan_card(&self, card: &ParentAddr) -> Result<Vec<Parent>, HostError>;

    /// All devices with this UUID, usually none or one.
    async fn find(&self, uuid: MdevUuid) -> Result<Vec<Mdev>, HostError>;

    /// Makes a device active and defines it persistently, with autostart. Doing it again is no error: what exists
    /// with the same UUID, parent and type is left as it is. Another device under that UUID is `Refused`.
    async fn create(&self, new: &NewMdev) -> Result<(), HostError>;

    /// Stops the device and removes its definition, under this parent only. One that is not there is no error; one
    /// that is open is `InUse` and stays.
    async fn remove(&self, uuid: MdevUuid, parent: &ParentAddr) -> Result<(), HostError>;

    /// As `scan`, without a question to libvirt: parents with their types and what is free, and devices that exist.
    /// Definitions are not seen (`defined` is false), nor findings that only libvirt makes.
    async fn scan_kernel(&self) -> Result<HostScan, HostError>;

    /// As `find`, without a question to libvirt: the device with this UUID that exists in the kernel.
    async fn find_in_kernel(&self, uuid: MdevUuid) -> Result<Option<Mdev>, HostError>;

    /// Makes a device active by the kernel alone: it is not defined, and gone after a reboot. One that exists with the same
    /// UUID, parent and type is left as it is; another under that UUID is `Refused`.
    async fn create_in_kernel(&self, new: &NewMdev) -> Result<(), HostError>;

    /// Changes from now on.
    fn events(&self) -> broadcast::Receiver<HostEvent>;

    /// What tells one boot of the host from another; `None` where nothing tells it.
    fn boot_id(&self) -> Result<Option<String>, HostError>;

    /// Version of the driver that is bound to a parent; `None` where nothing tells it.
    fn driver_version(&self, _parent: &ParentAddr) -> Result<Option<String>, HostError> {
        Ok(None)
    }
}

/// A domain as libvirt has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    /// Its UUID.
    pub uuid: InstanceUuid,
    /// Its name, exactly as libvirt has it.
    pub name: String,
    /// It runs (or is paused).
    pub running: bool,
    /// It is defined persistently.
    pub persistent: bool,
    /// The live XML if it runs, else the defined one.
    pub xml: String,
}

/// Domains.
#[async_trait]
pub trait Hypervisor: Send + Sync + Debug {
    /// All domains, running or not.
    async fn domains(&self) -> Result<Vec<Domain>, HostError>;

    /// One domain, `None` if there is none.
    async fn domain(&self, uuid: InstanceUuid) -> Result<Option<Domain>, HostError>;

    /// The UUID of a domain that has this UUID, else of one that has this name; `None` if there is none.
    async fn find_domain(&self, uuid: InstanceUuid, name: &str) -> Result<Option<InstanceUuid>, HostError> {
        let all = self.domains().await?;
        let found = all.iter().find(|d| d.uuid == uuid).or_else(|| all.iter().find(|d| d.name == name));
        Ok(found.map(|d| d.uuid))
    }

    /// Defines a domain, or replaces the definition of the same UUID and name.
    async fn define(&self, xml: &str) -> Result<(), HostError>;

    /// Removes the definition (with its NVRAM and managed save). One that is not there is no error.
    async fn undefine(&self, uuid: InstanceUuid) -> Result<(), HostError>;

    /// Starts a defined domain. One that runs is no error.
    async fn start(&self, uuid: InstanceUuid) -> Result<(), HostError>;

    /// Whether libvirt starts the domain when the host boots.
    async fn autostarts(&self, uuid: InstanceUuid) -> Result<bool, HostError>;

    /// Ends a running domain at once (libvirt's destroy). One that does not run is no error.
    async fn stop(&self, uuid: InstanceUuid) -> Result<(), HostError>;

    /// The definition that the domain starts with next, with its secrets, so that it can be defined again; `None` if there is
    /// no persistent domain.
    async fn definition(&self, uuid: InstanceUuid) -> Result<Option<String>, HostError>;

    /// Writes the guest's memory to libvirt's own image and switches it off; `start` goes on from it. One that does not run is
    /// no error. `NotSupported` if a device of it cannot be saved.
    async fn save(&self, uuid: InstanceUuid) -> Result<(), HostError>;

    /// Whether such an image is there.
    async fn is_saved(&self, uuid: InstanceUuid) -> Result<bool, HostError>;

    /// Writes our element of the domain's metadata, given without its namespace, in what it runs with and in its definition.
    async fn describe(&self, uuid: InstanceUuid, element: &str) -> Result<(), HostError>;

    /// Sends a running guest to another host, and returns when it runs there and its domain is gone here. Whatever the failure,
    /// the guest goes on here, unless [`Hypervisor::whereabouts`] says otherwise.
    async fn migrate(&self, uuid: InstanceUuid, _passage: &Passage) -> Result<(), HostError> {
        Err(HostError::NotSupported(format!("sending domain {uuid} to another host")))
    }

    /// Breaks the sending off; the guest stays. One that is not being sent is no error.
    async fn abort_migration(&self, _uuid: InstanceUuid) -> Result<(), HostError> {
        Ok(())
    }

    /// Where a guest is that goes or went.
    async fn whereabouts(&self, uuid: InstanceUuid) -> Result<Whereabouts, HostError> {
        Ok(Whereabouts::at_rest(self.domain(uuid).await?.as_ref()))
    }

    /// What runs the guests of this host.
    async fn versions(&self) -> Result<Versions, HostError> {
        Err(HostError::NotSupported("reading the versions of libvirt and QEMU".to_owned()))
    }

    /// Puts a host device, as `<hostdev>`, into the domain. Where it is already, nothing is done.
    async fn attach(&self, uuid: InstanceUuid, hostdev: &HostdevXml, into: Config) -> Result<(), HostError>;

    /// Takes it out, and waits until a running guest has let go of it: `InUse` if it does not. Where it is not, nothing is
    /// done.
    async fn detach(&self, uuid: InstanceUuid, hostdev: &HostdevXml, from: Config) -> Result<(), HostError>;
}

/// A `<hostdev>` and the device it names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostdevXml {
    /// The device.
    pub uuid: MdevUuid,
    /// The element.
    pub xml: String,
}

/// Which of a domain's two configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Config {
    /// What it runs with; nothing is done for a domain that does not run.
    Live,
    /// What it starts with next.
    Definition,
}
