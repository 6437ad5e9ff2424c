//! What the host does by itself: libvirt comes and goes, a guest shuts down, somebody runs `virsh start`.
//!
//! An event only wakes; then the books of every instance without an operation of its own are compared with its domain,
//! and once more when an operation has ended. What becomes of devices is `restore`'s.

use std::collections::BTreeSet;

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};

use super::Service;
use super::api::Change;
use crate::host::HostEvent;
use crate::model::{Claim, ClaimEvent, ClaimRole, ClaimState, InstanceUuid};
use crate::ops::{Found, Marks};
use crate::store::{self, StoreError};

impl Service {
    /// Follows the host until the daemon stops.
    pub async fn follow(self) {
        self.await_all_guests();
        let (domains, hardware) = (self.host.nodes.events(), self.host.nodes.events());
        // A slow look at the hardware must not hold up what domains do.
        tokio::join!(self.follow_domains(domains), self.follow_hardware(hardware));
    }

    /// Looks at what the types of the host mean and at the devices of the books, at first and whenever node devices changed.
    async fn follow_hardware(&self, mut events: Receiver<HostEvent>) {
        let mut due = self.look_at_hardware().await;
        self.devices.first_is_over();
        loop {
            tokio::select! {
                event = events.recv() => match event {
                    Ok(HostEvent::NodeDevices | HostEvent::Connected) | Err(RecvError::Lagged(_)) => {}
                    Ok(HostEvent::Domain(_) | HostEvent::Disconnected) => continue,
                    Err(RecvError::Closed) => return,
                },
                () = self.devices.nudged() => {}
                () = until(due) => {}
            }
            // One look serves all events that came so far.
            events = events.resubscribe();
            due = self.look_at_hardware().await;
        }
    }

    async fn look_at_hardware(&self) -> Option<Instant> {
        let before = self.store.books();
        let seen = self.look_and_learn().await?;
        self.look_after_devices(&before, &seen).await
    }

    async fn follow_domains(&self, mut events: Receiver<HostEvent>) {
        self.look_at_all_domains().await;
        loop {
            match events.recv().await {
                Ok(event) => self.on_event(event).await,
                // Missed events are made up for by looking at everything.
                Err(RecvError::Lagged(_)) => self.catch_up(None).await,
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// After a time in which nobody saw what domains did.
    async fn look_at_all_domains(&self) {
        self.catch_up(None).await;
        self.leave_all_stopped().await;
        self.write_all_wanted().await;
    }

    async fn on_event(&self, event: HostEvent) {
        self.wake.ring();
        match event {
            HostEvent::NodeDevices => self.tell(Change::Inventory),
            HostEvent::Domain(uuid) => {
                self.catch_up(Some(uuid)).await;
                self.write_wanted(uuid).await;
            }
            HostEvent::Connected => {
                tracing::info!("connected to libvirt");
                self.tell(Change::Status);
                self.look_at_all_domains().await;
                self.tell(Change::Inventory);
            }
            HostEvent::Disconnected => {
                tracing::warn!("the connection to libvirt is lost");
                self.tell(Change::Status);
            }
        }
    }

    /// Brings the claims of one instance, or of all, in line with their domains.
    pub(super) async fn catch_up(&self, only: Option<InstanceUuid>) {
        // One at a time: what an earlier look saw must not be written after what a later one saw.
        let _one_at_a_time = self.following.lock().await;
        if !self.is_accounted() {
            return;
        }
        let books = self.store.books();
        let instances: BTreeSet<InstanceUuid> =
            books.claims().map(|c| c.instance).filter(|i| only.is_none_or(|o| o == *i)).collect();
        for instance in instances {
            while self.look_at_domain(instance).await {}
            if self.rests(instance) {
                self.leave_later(instance);
            }
        }
    }

    /// Compares one instance with its domain; whether it has to be done again, for its books changed meanwhile: what was seen
    /// before a change of the books says nothing about what came after it.
    async fn look_at_domain(&self, instance: InstanceUuid) -> bool {
        let books = self.store.books();
        let devices = books.claims_of(instance).map(|c| c.uuid).collect();
        let running = match self.host.find_domain(&Marks { uuid: instance, devices, bare: None }).await {
            Ok(Found::Ours(domain)) => domain.running,
            Ok(Found::Absent | Found::Other(_)) => false,
            // Unknown is neither running nor stopped: the next event or connection looks again.
            Err(err) => {
                tracing::debug!(%instance, "look for its domain: {err}");
                return false;
            }
        };
        let event = if running { ClaimEvent::Started } else { ClaimEvent::Stopped };
        // The guest has only its own side of a move; on the source of a migration that is the one it is to leave.
        let leaves = books.move_of(instance).is_some_and(|m| m.kind.leaves());
        let side = if leaves { ClaimRole::Outgoing } else { ClaimRole::Primary };
        let moved = |c: &&Claim| c.role == side && moves(c.state, running);
        let of = |c: &Claim| store::Change::Claim { claim: c.id, event };
        let changes: Vec<store::Change> = books.claims_of(instance).filter(moved).map(of).collect();
        if changes.is_empty() {
            return false;
        }
        match self.store.observe_since(books, instance, changes) {
            Ok(true) => {
                tracing::info!(%instance, running, "its domain changed by itself");
                self.tell(Change::Claim(instance));
                if running {
                    self.describe(instance).await;
                }
                false
            }
            Ok(false) => true,
            // An operation is at work on it, and keeps its books itself; at its end is another look.
            Err(StoreError::Busy { .. }) => false,
            Err(err) => {
                tracing::error!(%instance, "write the books: {err}");
                false
            }
        }
    }
}

/// Whether the books differ from a domain that runs or does not.
fn moves(state: ClaimState, running: bool) -> bool {
    match state {
        ClaimState::Ready | ClaimState::Parked => running,
        ClaimState::InUse => !running,
        // A guest may run without its device.
        ClaimState::Missing | ClaimState::Lost | ClaimState::Reserved | ClaimState::Releasing => false,
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
