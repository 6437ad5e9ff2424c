//! Domains: what a `<domain>` names ([`DomainDoc`]), what is wrong with it ([`check()`]), which host devices it gets
//! ([`hostdev_plan`]) and how they are written into it ([`with_devices`]).
//!
//! 1. A domain is looked at as a whole: one ramfb, one vfio-ap, display only with graphics, whoever wrote the devices.
//! 2. A device is found by its UUID or address, never by its alias: libvirt drops aliases.
//! 3. Names and metadata of the user are data; they are neither read for meaning nor rewritten, but for our own element
//!    ([`Vgpu`]).

mod check;
mod edit;
mod hostdev;
mod metadata;
mod numa;
mod parse;
mod plan;
mod write;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use crate::model::{DeviceApi, InstanceUuid, MdevUuid, PciAddress};

pub use check::{DeviceFacts, Remark, Severity, check, refuse};
pub use metadata::{METADATA, Vgpu, vgpu_element, with_vgpu, with_vgpu_element};
pub use plan::hostdev_plan;
pub use write::{Wanted, with_devices, with_other_uuids, without_hostdevs, write_hostdevs};

pub(super) use hostdev::fragment;
use metadata::MetadataSpan;

/// What a domain's XML says about things that matter here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainDoc {
    /// Its UUID, if it is given.
    pub uuid: Option<InstanceUuid>,
    /// Its name, character for character.
    pub name: String,
    /// Whether it has a `<graphics>` device, which `display='on'` needs.
    pub has_graphics: bool,
    /// Host NUMA nodes that its memory is pinned to (`<numatune>`); `None` if it is not, or if numad chooses.
    pub memory_nodes: Option<BTreeSet<u32>>,
    /// Its mediated and PCI host devices, in their order.
    pub hostdevs: Vec<DomainHostdev>,
    /// What its metadata says that it wants.
    pub vgpu: Option<Vgpu>,
    layout: Layout,
}

/// A `<hostdev>` as a domain has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainHostdev {
    /// Which device of the host.
    pub source: HostdevSource,
    /// `managed`.
    pub managed: Managed,
    /// `display`, if it is given.
    pub display: Option<bool>,
    /// `ramfb`, if it is given.
    pub ramfb: Option<bool>,
    /// The alias, if there is one. libvirt may drop it.
    pub alias: Option<String>,
    /// The whole element, in bytes of the document.
    span: Range<usize>,
    /// The tag that says which device it is.
    address: Range<usize>,
}

/// What a `<hostdev>` hands to the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostdevSource {
    /// A mediated device.
    Mdev {
        /// Which.
        uuid: MdevUuid,
        /// `model`; libvirt does not accept a device without it.
        model: Option<DeviceApi>,
    },
    /// A PCI function, whole or a configured VF.
    Pci(PciAddress),
}

/// Who binds the device to vfio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Managed {
    /// The attribute is not there, which means no.
    Absent,
    /// `managed=''`, which some libvirt versions take for no and others refuse.
    Empty,
    /// It stays as it is.
    No,
    /// libvirt takes it from its driver.
    Yes,
}

/// Where things are, in bytes of the document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Layout {
    name: Range<usize>,
    metadata: Option<MetadataSpan>,
    devices: Option<DevicesSpan>,
    /// The end tag of the domain.
    domain_end: usize,
}

/// The first `<devices>` of the domain.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DevicesSpan {
    /// The start tag, or the whole element if it is `<devices/>`.
    start: Range<usize>,
    /// Where the end tag begins; `None` for `<devices/>`.
    end: Option<usize>,
    /// Where the last child begins.
    last_child: Option<usize>,
}

impl DomainDoc {
    /// The host device with this UUID.
    pub fn mdev(&self, uuid: MdevUuid) -> Option<&DomainHostdev> {
        self.hostdevs.iter().find(|h| h.mdev_uuid() == Some(uuid))
    }

    /// UUIDs of its mediated devices, in their order.
    pub fn mdevs(&self) -> impl Iterator<Item = MdevUuid> {
        self.hostdevs.iter().filter_map(DomainHostdev::mdev_uuid)
    }

    /// The element of the host device with this UUID, as it stands in the document that this was read from.
    pub fn element<'a>(&self, xml: &'a str, uuid: MdevUuid) -> Option<&'a str> {
        xml.get(self.mdev(uuid)?.span.clone())
    }
}

impl DomainHostdev {
    /// The UUID, if it is a mediated device.
    pub fn mdev_uuid(&self) -> Option<MdevUuid> {
        match self.source {
            HostdevSource::Mdev { uuid, .. } => Some(uuid),
            HostdevSource::Pci(_) => None,
        }
    }

    /// `model`, if it is a mediated device that has one.
    pub fn model(&self) -> Option<DeviceApi> {
        match self.source {
            HostdevSource::Mdev { model, .. } => model,
            HostdevSource::Pci(_) => None,
        }
    }
}

impl HostdevSource {
    /// Whether both name one device of the host.
    pub fn is_same_device(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Mdev { uuid: a, .. }, Self::Mdev { uuid: b, .. }) => a == b,
            (Self::Pci(a), Self::Pci(b)) => a == b,
            (Self::Mdev { .. }, Self::Pci(_)) | (Self::Pci(_), Self::Mdev { .. }) => false,
        }
    }
}

impl fmt::Display for HostdevSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mdev { uuid, .. } => write!(f, "mdev {uuid}"),
            Self::Pci(addr) => write!(f, "PCI device {addr}"),
        }
    }
}
