//! What the properties of the manager show.

use std::sync::{Mutex, PoisonError};

use super::json::clean;
use crate::service::api::StatusView;

/// What the properties show; the mirror keeps it up to date, so that reading a property asks nobody.
#[derive(Debug, Default)]
pub(super) struct Health(Mutex<(String, bool)>);

impl Health {
    /// Takes over what the service says now.
    pub(super) fn set(&self, status: &StatusView) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            (clean(&status.libvirt_uri), status.connected);
    }

    pub(super) fn get(&self) -> (String, bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
