//! Events of libvirt on their way to whoever listens.
//!
//! 1. The event loop is a thread of its own, as libvirt's default implementation wants it, and sleeps in poll without a
//!    timeout while nothing happens: no timer is set here. libvirtd, as it is shipped, pings every client that has an event
//!    loop once in 5 s, and the library answers; `keepalive_interval = -1` in libvirtd's configuration ends that.
//! 2. An event only wakes. libvirt sends an update for every device at every refresh of its own, so node-device events are
//!    folded: the first is passed on at once, then at most one in [`FOLD`].

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::sync::{Notify, broadcast, watch};
use uuid::Uuid;
use virt::error::Error;

use super::ffi;
use crate::host::HostEvent;
use crate::model::InstanceUuid;

/// Updates that come within this time of each other are one event.
const FOLD: Duration = Duration::from_millis(100);
/// Events that a slow listener may lag behind; one that lost some looks at everything anyway.
const BACKLOG: usize = 256;

/// Where callbacks leave word. One for the life of the host, shared by all its connections.
#[derive(Debug)]
pub(super) struct Wakes {
    events: broadcast::Sender<HostEvent>,
    /// Counts node-device events, unfolded.
    node_devices: watch::Sender<u64>,
    /// Counts host devices that a running guest let go of, or refused to.
    let_go: watch::Sender<u64>,
    lost: Notify,
}

impl Wakes {
    pub(super) fn new() -> Arc<Self> {
        let (events, _) = broadcast::channel(BACKLOG);
        Arc::new(Self {
            events,
            node_devices: watch::Sender::new(0),
            let_go: watch::Sender::new(0),
            lost: Notify::new(),
        })
    }

    /// Folded changes, for everybody.
    pub(super) fn events(&self) -> broadcast::Receiver<HostEvent> {
        self.events.subscribe()
    }

    /// Every change of a node device, for the waits inside this room.
    pub(super) fn node_devices(&self) -> watch::Receiver<u64> {
        self.node_devices.subscribe()
    }

    /// Every host device that left a running guest, for the waits inside this room.
    pub(super) fn devices_let_go(&self) -> watch::Receiver<u64> {
        self.let_go.subscribe()
    }

    /// Waits until somebody saw the connection break.
    pub(super) async fn lost(&self) {
        self.lost.notified().await;
    }

    /// Tells everybody; nobody listening is no error.
    pub(super) fn tell(&self, event: HostEvent) {
        let _ = self.events.send(event);
    }

    pub(super) fn connection_lost(&self) {
        self.lost.notify_one();
    }

    pub(super) fn node_devices_changed(&self) {
        self.node_devices.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(super) fn device_let_go(&self) {
        self.let_go.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(super) fn domain_changed(&self, uuid: Uuid) {
        self.tell(HostEvent::Domain(InstanceUuid(uuid)));
    }

    /// Passes node-device changes on, folded, for as long as it is polled.
    pub(super) async fn fold(self: Arc<Self>) {
        let mut changes = self.node_devices();
        while changes.changed().await.is_ok() {
            self.tell(HostEvent::NodeDevices);
            tokio::time::sleep(FOLD).await;
        }
    }
}

/// Starts libvirt's event loop, once for the process. Has to come before the first connection is opened.
///
/// # Errors
/// libvirt or the system could not start it; the reason.
pub(super) fn start_loop() -> Result<(), String> {
    static STARTED: LazyLock<Result<(), String>> = LazyLock::new(|| {
        if !ffi::initialise() {
            return Err("libvirt's library cannot be initialised".to_owned());
        }
        // Else libvirt prints every error to stderr.
        virt::error::clear_error_callback();
        virt::event::event_register_default_impl().map_err(|err| err.to_string())?;
        let thread = std::thread::Builder::new().name("libvirt-events".to_owned());
        thread.spawn(run_loop).map(|_| ()).map_err(|err| err.to_string())
    });
    STARTED.clone()
}

fn run_loop() {
    let stopped: Error = loop {
        if let Err(err) = virt::event::event_run_default_impl() {
            break err;
        }
    };
    tracing::error!(error = %stopped, "libvirt's event loop ended; events are lost until the next start");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_storm_of_updates_is_few_events_and_the_last_is_never_lost() {
        let wakes = Wakes::new();
        let mut heard = wakes.events();
        let folding = tokio::spawn(Arc::clone(&wakes).fold());
        tokio::task::yield_now().await;
        for _ in 0..1000 {
            wakes.node_devices_changed();
        }
        assert_eq!(heard.recv().await.unwrap(), HostEvent::NodeDevices);
        wakes.node_devices_changed();
        assert_eq!(heard.recv().await.unwrap(), HostEvent::NodeDevices);
        tokio::time::sleep(FOLD * 3).await;
        assert!(heard.try_recv().is_err());
        folding.abort();
    }
}
