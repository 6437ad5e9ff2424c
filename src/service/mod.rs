//! The use cases: what the daemon does for a caller, over hardware, books and sagas (rank 4).
//!
//! 1. Reads never change anything and never wait for an operation.
//! 2. Bookings are made one at a time ([`book`]); what follows runs as a saga ([`launch`]), many at once.
//! 3. Events only wake ([`follow`]); a restart takes every open saga up ([`recover`]).
//! 4. Devices that are gone are made again ([`restore`]).

mod admission;
pub mod api;
mod arrive;
mod basis;
mod book;
mod definitions;
mod expected;
mod follow;
mod hook;
mod hostdevs;
mod jobs;
mod knowledge;
mod launch;
mod lifecycle;
mod live;
mod migrate;
mod observe;
mod picture;
mod plain;
mod planning;
mod plug;
mod reconcile;
mod recover;
mod request;
mod resize;
mod restore;
mod settings;
mod traits;
mod use_cases;
mod views;

pub use settings::{Settings, SettingsCell};

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use tokio::sync::broadcast;

use self::api::Change;
use self::jobs::Jobs;
use self::observe::Observation;
use self::restore::Watch;
use crate::catalog::memory::Memory;
use crate::model::{Clock, Fault, Ids};
use crate::ops::{Host, host_fault};
use crate::saga::{Runner, Stop, Wake};
use crate::store::Store;
use crate::xml::render::Templates;

/// What the service is made of; the daemon's wiring fills it in.
#[derive(Debug)]
pub struct Parts {
    /// Hardware and domains.
    pub host: Host,
    /// The books.
    pub store: Arc<Store>,
    /// Runs sagas.
    pub runner: Runner,
    /// Rings when the host moved, for sagas that wait.
    pub wake: Arc<Wake>,
    /// Says to sagas that the daemon goes down.
    pub stop: Arc<Stop>,
    /// XML templates.
    pub templates: Templates,
    /// Configuration in force.
    pub settings: SettingsCell,
    /// New ids.
    pub ids: Arc<dyn Ids>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Name of this host, the first part of provider names.
    pub host_name: String,
    /// The libvirt URI in use.
    pub libvirt_uri: String,
    /// Whether the simulator is in use.
    pub simulated: bool,
    /// Devices that are gone are made again and guests that are to come are waited for by itself; only tests of single operations
    /// do without.
    pub by_itself: bool,
}

/// A handle on the running service; clones are the same service.
#[derive(Debug, Clone)]
pub struct Service(Arc<Inner>);

/// See [`Service`].
#[derive(Debug)]
pub struct Inner {
    parts: Parts,
    booking: tokio::sync::Mutex<()>,
    following: tokio::sync::Mutex<()>,
    jobs: Jobs,
    /// `None` until it is read.
    known: Mutex<Option<Arc<Memory>>>,
    changes: broadcast::Sender<Change>,
    devices: Watch,
}

/// Changes that a slow listener may be behind before it has to look at everything again.
const CHANGES_MAX: usize = 512;

impl Service {
    /// A service over its parts; nothing runs yet.
    pub fn new(parts: Parts) -> Self {
        let (changes, _) = broadcast::channel(CHANGES_MAX);
        let (booking, following) = Default::default();
        let (jobs, known, devices) = Default::default();
        Self(Arc::new(Inner { parts, booking, following, jobs, known, changes, devices }))
    }

    /// Takes no new operation from now on, and lets sagas stop after the step at work.
    pub fn go_down(&self) {
        self.parts.stop.stop();
    }

    fn goes_down(&self) -> bool {
        self.parts.stop.is_stopped()
    }

    /// How many jobs are under way.
    pub fn jobs_running(&self) -> usize {
        self.jobs.running()
    }

    /// Nobody listening is fine.
    fn tell(&self, change: Change) {
        let _ = self.changes.send(change);
    }

    /// Looks at hardware and books.
    async fn observe(&self) -> Result<Observation, Fault> {
        self.observe_on(&self.host).await
    }

    async fn observe_on(&self, host: &Host) -> Result<Observation, Fault> {
        let (before, memory) = (self.store.books(), self.memory()?);
        let scan = host.nodes.scan().await;
        let scan = scan.map_err(|e| host_fault("look at the node devices", &e))?;
        Ok(Observation::new(&before, scan, &self.store.books(), memory))
    }
}

impl Deref for Service {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Deref for Inner {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.parts
    }
}
