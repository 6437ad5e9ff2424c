//! The host behind libvirt: the only user of the virt crates (rank 2).
//!
//! 1. Parents, types, availability, devices and domains are read and changed through libvirt; sysfs adds what it does not give
//!    ([`Sysfs`]) and, on a local connection, bears witness where libvirt's list can lag or leave something out.
//! 2. A call's failure is told by kind (`error`), and a lost answer to a change is `OutcomeUnknown`, never a failure.
//! 3. Identity comes from a node device's XML, never from its name.
//! 4. libvirtd may go and come back at any time; nothing here has to be made again for that (`link`).
//!
//! | file | owns |
//! |---|---|
//! | `link` | the connection, and running a call on it |
//! | `events` | the event thread, and what becomes of events |
//! | `ffi` | raw calls |
//! | `error` | libvirt's codes and texts |
//! | `parallel` | calls in flight |
//! | `nodedev` | discovery |
//! | `device` | making and removing a mediated device |
//! | `domain` | domains |

mod domain;
mod error;
mod events;
mod ffi;
mod link;
mod parallel;

use std::sync::Arc;

use tokio::sync::broadcast;

use super::{HostEvent, sysfs::Sysfs};
use link::Link;

/// A host behind libvirt.
#[derive(Debug)]
pub struct LibvirtHost {
    link: Link,
    sysfs: Sysfs,
}

impl LibvirtHost {
    /// Begins to connect to `uri`; must be called on a tokio runtime. libvirtd need not be there yet.
    pub fn new(uri: impl Into<String>, sysfs: Sysfs) -> Arc<Self> {
        Arc::new(Self { link: Link::new(uri.into()), sysfs })
    }

    /// Whether the connection to libvirt stands.
    pub fn is_connected(&self) -> bool {
        self.link.is_up()
    }

    /// Changes from now on.
    pub fn events(&self) -> broadcast::Receiver<HostEvent> {
        self.link.wakes().events()
    }
}
