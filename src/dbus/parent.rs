//! `org.mdevirt1.Parent`: a device that can be sliced, or the physical function of such devices.

use std::sync::{Mutex, PoisonError};

use super::json::{self, Record, clean};
use crate::model::Framework;
use crate::service::api::DeviceView;

/// One parent on the bus.
#[derive(Debug)]
pub struct ParentObject {
    seen: Mutex<DeviceView>,
}

impl ParentObject {
    pub(super) fn new(view: DeviceView) -> Self {
        Self { seen: Mutex::new(view) }
    }

    pub(super) fn set(&self, view: DeviceView) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = view;
    }

    fn get<T>(&self, pick: impl FnOnce(&DeviceView) -> T) -> T {
        pick(&self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Properties. A text that is not known is empty, a number that is not known is -1.
#[zbus::interface(
    name = "org.mdevirt1.Parent",
    introspection_docs = false,
    proxy(default_service = "org.mdevirt1", async_name = "ParentProxy")
)]
impl ParentObject {
    /// PCI address or node name.
    #[zbus(property(emits_changed_signal = "const"))]
    fn address(&self) -> String {
        self.get(|view| view.address.to_string())
    }

    /// Product text, else the driver, else the node name.
    #[zbus(property)]
    fn name(&self) -> String {
        self.get(|view| clean(&view.name))
    }

    /// `mdev`, `vendor-vfio`, or empty for a physical function whose VFs are the parents.
    #[zbus(property)]
    fn framework(&self) -> String {
        self.get(|view| match view.framework {
            Some(Framework::Mdev) => "mdev".to_owned(),
            Some(Framework::VendorVfio) => "vendor-vfio".to_owned(),
            None => String::new(),
        })
    }

    /// Of a VF.
    #[zbus(property)]
    fn physical_function(&self) -> String {
        self.get(|view| view.physical_function.map(|addr| addr.to_string()).unwrap_or_default())
    }

    /// As `0x10de`.
    #[zbus(property)]
    fn vendor_id(&self) -> String {
        self.get(|view| clean(view.vendor_id.as_deref().unwrap_or_default()))
    }

    /// As `0x25b6`.
    #[zbus(property)]
    fn device_id(&self) -> String {
        self.get(|view| clean(view.device_id.as_deref().unwrap_or_default()))
    }

    /// NUMA node.
    #[zbus(property)]
    fn numa_node(&self) -> i64 {
        self.get(|view| view.numa_node.map_or(-1, i64::from))
    }

    /// IOMMU group.
    #[zbus(property)]
    fn iommu_group(&self) -> i64 {
        self.get(|view| view.iommu_group.map_or(-1, i64::from))
    }

    /// `ok`, or why it has no inventory.
    #[zbus(property)]
    fn status(&self) -> String {
        self.get(|view| clean(&view.status))
    }

    /// What it offers; keys as in `device list --json`.
    #[zbus(property)]
    fn types(&self) -> zbus::fdo::Result<Vec<Record>> {
        self.get(|view| json::to_records(&view.types))
            .map_err(|err| zbus::fdo::Error::Failed(err.to_string()))
    }

    /// The devices on it.
    #[zbus(property)]
    fn devices(&self) -> zbus::fdo::Result<Vec<Record>> {
        self.get(|view| json::to_records(&view.mdevs))
            .map_err(|err| zbus::fdo::Error::Failed(err.to_string()))
    }
}
