//! A parent device and the virtual devices seen on it: the host as one scan found it.

use serde::{Deserialize, Serialize};

use super::address::{ParentAddr, PciAddress};
use super::id::MdevUuid;
use super::mdev_type::{DeviceApi, Framework, MdevType, TypeId};

/// A node device that can be sliced, or the physical function that such VFs belong to (then without types).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// Where it is.
    pub addr: ParentAddr,
    /// How it makes slices; `None` for a physical function whose VFs are the parents.
    pub framework: Option<Framework>,
    /// The physical function of a VF.
    pub physical_function: Option<PciAddress>,
    /// PCI vendor, `None` for css, AP and virtual parents.
    pub vendor_id: Option<u16>,
    /// PCI device.
    pub device_id: Option<u16>,
    /// Product text of the PCI database, if libvirt gives one.
    pub product: Option<String>,
    /// NUMA node.
    pub numa_node: Option<u32>,
    /// IOMMU group number; members of one group can only go to one VM when passed whole.
    pub iommu_group: Option<u32>,
    /// The driver that is bound.
    pub driver: Option<String>,
    /// The types it offers, in the order of their ids.
    pub types: Vec<MdevType>,
}

/// NVIDIA's PCI vendor id.
pub const VENDOR_NVIDIA: u16 = 0x10de;

impl Parent {
    /// The card this parent is a part of: a VF's physical function, else the parent itself.
    pub fn card(&self) -> ParentAddr {
        self.physical_function.map_or_else(|| self.addr.clone(), ParentAddr::Pci)
    }

    /// The type with this id.
    pub fn mdev_type(&self, id: &TypeId) -> Option<&MdevType> {
        self.types.iter().find(|t| t.id == *id)
    }

    /// Whether one card holds slices of one framebuffer size only, as NVIDIA's does in its default mode.
    ///
    /// # Source
    /// NVIDIA vGPU user guide, "Homogeneous and heterogeneous vGPUs".
    pub fn one_size_per_card(&self) -> bool {
        self.vendor_id == Some(VENDOR_NVIDIA)
    }
}

/// A mediated device as a scan saw it, active or only defined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mdev {
    /// Its UUID; with `parent` the key.
    pub uuid: MdevUuid,
    /// Its parent as libvirt names it; a definition whose parent is gone has the parent of `parent_addr`.
    pub parent: ParentAddr,
    /// Its type; some libvirt versions leave it out.
    pub type_id: Option<TypeId>,
    /// It exists in the kernel.
    pub active: bool,
    /// It has a persistent definition (mdevctl's).
    pub defined: bool,
    /// The parent is not there (libvirt then lists the definition below `computer`).
    pub parent_missing: bool,
    /// IOMMU group number when active.
    pub iommu_group: Option<u32>,
}

/// A virtual device that a domain's XML names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewMdev {
    /// The UUID it shall have.
    pub uuid: MdevUuid,
    /// The parent to make it on.
    pub parent: ParentAddr,
    /// The id of its type on that parent.
    pub type_id: TypeId,
    /// What the slice is to the guest.
    pub device_api: DeviceApi,
}

/// One pass over the host. Only complete passes exist: a failed read is an error, never an empty list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostScan {
    /// Parents in address order.
    pub parents: Vec<Parent>,
    /// Mediated devices in the order of (uuid, parent).
    pub mdevs: Vec<Mdev>,
    /// What could not be understood, one line each; the rest of the scan is good.
    pub findings: Vec<Finding>,
}

impl HostScan {
    /// The parent at this address.
    pub fn parent(&self, addr: &ParentAddr) -> Option<&Parent> {
        self.parents.iter().find(|p| p.addr == *addr)
    }

    /// The card of the parent at this address; a parent that is gone stands for itself.
    pub fn card_of(&self, addr: &ParentAddr) -> ParentAddr {
        self.parent(addr).map_or_else(|| addr.clone(), Parent::card)
    }

    /// The NUMA node of a parent, that of its physical function if a VF names none; `None` when neither is known.
    pub fn numa_node_of(&self, parent: &Parent) -> Option<u32> {
        let function = || self.parent(&ParentAddr::Pci(parent.physical_function?));
        parent.numa_node.or_else(|| function()?.numa_node)
    }

    /// All devices with this UUID, usually none or one.
    pub fn mdevs_with(&self, uuid: MdevUuid) -> impl Iterator<Item = &Mdev> {
        self.mdevs.iter().filter(move |m| m.uuid == uuid)
    }

    /// Puts parents and devices into their order, and drops doubles.
    pub fn sorted(mut self) -> Self {
        self.parents.sort_by(|a, b| a.addr.cmp(&b.addr));
        self.parents.dedup_by(|a, b| a.addr == b.addr);
        self.mdevs.sort_by(|a, b| (a.uuid, &a.parent).cmp(&(b.uuid, &b.parent)));
        self.mdevs.dedup_by(|a, b| (a.uuid, &a.parent) == (b.uuid, &b.parent));
        self
    }
}

/// Something an operator should see in `status`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Finding {
    /// What kind of finding it is.
    pub kind: FindingKind,
    /// The device, file or key it is about; control characters are escaped.
    pub about: String,
    /// What was found and what to do.
    pub text: String,
}

/// Kinds of [`Finding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// Bytes that could not be understood; the item was left out.
    MalformedInput,
    /// Input over a size, depth or count limit; the item was left out.
    LimitExceeded,
    /// A part of the configuration that has no effect on this host.
    ConfigWarning,
    /// A definition whose parent is not there.
    ParentMissing,
    /// Two parties claim the same thing.
    Conflict,
    /// A read that failed: its subject is unknown, not free.
    Unknown,
    /// A device that an instance holds is gone; whether and when it is made again.
    DeviceMissing,
}

impl Finding {
    /// A finding with `about` made safe to print.
    pub fn new(kind: FindingKind, about: impl AsRef<str>, text: impl Into<String>) -> Self {
        let about: String = about.as_ref().chars().take(200).collect();
        Self { kind, about: about.escape_debug().to_string(), text: text.into() }
    }
}
