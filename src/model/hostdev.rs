//! The `<hostdev>` of a domain that carries a virtual device.

use serde::{Deserialize, Serialize};

use super::id::MdevUuid;
use super::mdev_type::DeviceApi;

/// A mediated device as it is written into a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hostdev {
    /// The device.
    pub uuid: MdevUuid,
    /// `model`, from the parent's device API.
    pub model: DeviceApi,
    /// `display='on'`: the guest's console shows this device; vfio-pci only.
    pub display: bool,
    /// `ramfb='on'`: a boot framebuffer until the guest's driver is up; at most one per domain.
    pub ramfb: bool,
}

/// What the caller wants of the console on the first device of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DisplayWish {
    /// `display='off'`, no ramfb. Also what an unstated wish means.
    #[default]
    Off,
    /// `display='on'` and `ramfb='on'` on the first vfio-pci device, off on the others.
    On,
}
