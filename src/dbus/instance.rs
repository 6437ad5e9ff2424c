//! `org.mdevirt1.Instance`: a VM that holds devices.

use std::sync::{Mutex, PoisonError};

use super::json::{self, Record, clean};
use crate::service::api::InstanceView;

/// One instance on the bus.
#[derive(Debug)]
pub struct InstanceObject {
    seen: Mutex<InstanceView>,
}

impl InstanceObject {
    pub(super) fn new(view: InstanceView) -> Self {
        Self { seen: Mutex::new(view) }
    }

    pub(super) fn set(&self, view: InstanceView) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = view;
    }

    fn get<T>(&self, pick: impl FnOnce(&InstanceView) -> T) -> T {
        pick(&self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Properties.
#[zbus::interface(
    name = "org.mdevirt1.Instance",
    introspection_docs = false,
    proxy(default_service = "org.mdevirt1", async_name = "InstanceProxy")
)]
impl InstanceObject {
    /// UUID of the domain, also the end of the path.
    #[zbus(property(emits_changed_signal = "const"))]
    fn uuid(&self) -> String {
        self.get(|view| view.uuid.to_string())
    }

    /// Its name.
    #[zbus(property)]
    fn name(&self) -> String {
        self.get(|view| clean(&view.name))
    }

    /// What it holds; keys as in `instance list --json`.
    #[zbus(property)]
    fn claims(&self) -> zbus::fdo::Result<Vec<Record>> {
        self.get(|view| json::to_records(&view.claims))
            .map_err(|err| zbus::fdo::Error::Failed(err.to_string()))
    }
}
