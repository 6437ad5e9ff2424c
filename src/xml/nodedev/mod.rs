//! Node devices: what one `<device>` of libvirt says, and what it is to the house.
//!
//! Names identify nothing here: the address of a PCI device comes from its capability, the UUID of a mediated device from
//! `<uuid>`, its parent from `<parent>`. Only libvirt before 7.3 leaves `<uuid>` out, then the name has to do.

mod mdev;
mod parse;
mod pci;
mod types;

use crate::model::{
    Finding, Framework, Mdev, MdevType, MdevUuid, NodeName, Parent, ParentAddr, PciAddress, TypeId,
};

use super::error::XmlError;

pub use parse::parse;
pub(super) use parse::read_new_mdev;

/// One node device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeDevice {
    /// libvirt's name of it.
    pub name: NodeName,
    /// Name of the device above it; `computer` at the top.
    pub parent_name: Option<NodeName>,
    /// The driver that is bound.
    pub driver: Option<String>,
    /// What it is.
    pub kind: NodeKind,
    /// Types and attributes that were left out, with the reason; the rest is good.
    pub findings: Vec<Finding>,
}

/// What a node device is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeKind {
    /// A PCI function.
    Pci(PciNode),
    /// A parent that is no PCI device (css, AP matrix, mtty), with its types.
    Parent(Vec<MdevType>),
    /// A mediated device.
    Mdev(MdevNode),
    /// Anything else.
    Other,
}

/// A PCI function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PciNode {
    /// Where it is.
    pub addr: PciAddress,
    /// PCI vendor.
    pub vendor_id: Option<u16>,
    /// PCI device.
    pub device_id: Option<u16>,
    /// Product text; bytes that were no text are U+FFFD in it.
    pub product: Option<String>,
    /// NUMA node; absent when the host does not know it.
    pub numa_node: Option<u32>,
    /// The IOMMU group.
    pub iommu_group: Option<IommuGroup>,
    /// The physical function, if this is a VF.
    pub physical_function: Option<PciAddress>,
    /// It is a physical function that can have VFs, whether or not it has some now.
    pub has_virtual_functions: bool,
    /// What it offers; `None` if it makes no mediated devices at all.
    pub types: Option<Vec<MdevType>>,
}

/// An IOMMU group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IommuGroup {
    /// Its number.
    pub number: u32,
    /// The PCI functions in it.
    pub members: Vec<PciAddress>,
}

/// A mediated device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MdevNode {
    /// Its UUID.
    pub uuid: MdevUuid,
    /// Its type; libvirt's test driver leaves it out in 10.1 to 10.3.
    pub type_id: Option<TypeId>,
    /// The parent by its address, if libvirt tells it.
    pub parent_addr: Option<ParentAddr>,
    /// IOMMU group number when active.
    pub iommu_group: Option<u32>,
    /// Attributes in the order in which they are written; a name may occur twice.
    pub attrs: Vec<(String, String)>,
}

impl NodeDevice {
    /// The device as a parent, or as a PCI function that may become one (a VF of a vendor's own framework, the
    /// physical function of VFs): then without framework and types, which sysfs has to tell.
    pub fn parent(&self) -> Option<Parent> {
        match &self.kind {
            NodeKind::Pci(pci) => Some(Parent {
                addr: ParentAddr::Pci(pci.addr),
                framework: pci.types.as_ref().map(|_| Framework::Mdev),
                physical_function: pci.physical_function,
                vendor_id: pci.vendor_id,
                device_id: pci.device_id,
                product: pci.product.clone(),
                numa_node: pci.numa_node,
                iommu_group: pci.iommu_group.as_ref().map(|g| g.number),
                driver: self.driver.clone(),
                types: pci.types.clone().unwrap_or_default(),
            }),
            NodeKind::Parent(types) => Some(Parent {
                addr: ParentAddr::Node(self.name.clone()),
                framework: Some(Framework::Mdev),
                physical_function: None,
                vendor_id: None,
                device_id: None,
                product: None,
                numa_node: None,
                iommu_group: None,
                driver: self.driver.clone(),
                types: types.clone(),
            }),
            NodeKind::Mdev(_) | NodeKind::Other => None,
        }
    }

    /// The device as a mediated device, `None` if it is none. Whether it is active and defined is not in the XML.
    ///
    /// # Errors
    /// It hangs below no parent and does not say which one it had.
    pub fn mdev(&self, active: bool, defined: bool) -> Result<Option<Mdev>, XmlError> {
        let NodeKind::Mdev(mdev) = &self.kind else { return Ok(None) };
        let above = self.parent_name.as_ref().filter(|name| name.as_str() != TOP);
        let parent = match above {
            Some(name) => name.as_str().parse().ok(),
            None => mdev.parent_addr.clone(),
        };
        let unknown = || {
            XmlError::malformed("/device/parent", format!("the parent of mdev {} is not known", mdev.uuid))
        };
        Ok(Some(Mdev {
            uuid: mdev.uuid,
            parent: parent.ok_or_else(unknown)?,
            type_id: mdev.type_id.clone(),
            active,
            defined,
            parent_missing: above.is_none(),
            iommu_group: mdev.iommu_group,
        }))
    }
}

/// The device above all others; a definition whose parent is gone hangs below it.
///
/// # Source
/// libvirt `node_device_driver.c`, `nodeDeviceUpdateMediatedDevice`.
const TOP: &str = "computer";
