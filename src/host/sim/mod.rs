//! The simulator: a run mode of the real daemon (`--sim FILE`) and the host of most tests.
//!
//! Discovery and domains are libvirt's own, through its in-process test driver on `test:///FILE`; that driver can
//! neither make nor remove a mediated device, so those are kept here, under the vendors' rules.
//!
//! ```text
//!   callers --> SimHost --faults: may this call go ahead?
//!                  |-- base nodes (LibvirtHost on test:///FILE, or FileHost): parents and types, read anew each time
//!                  |-- base domains (the same): XML is checked, domains run
//!                  `-- state: devices and domains of the host --> --sim-state FILE
//! ```
//! | file | owns |
//! |---|---|
//! | `nodes`, `domains` | the two traits |
//! | `kernel` | the calls that ask no libvirt |
//! | `passage` | guests that go to another simulated host |
//! | `guest` | memory that is saved, devices that come and go while a domain runs |
//! | `rules`, `types` | what a card still offers; facts that libvirt's XML lacks (`types.tsv`) |
//! | `state`, `boot` | what outlives a daemon; the start from it |
//! | `script`, `faults`, `change` | `--sim-script`: calls that fail, and a host that changes under way |
//! | `file_host` | a plain reader of the same file for builds and tests without libvirt |
//!
//! 1. A device is checked and entered under one lock, which is never held across an await: of two that want the last
//!    place of a card one gets it (`one_of_two_gets_the_last_place`).
//! 2. Every effect is in the state file before its call returns (`a_restart_changes_nothing`).
//! 3. A device that a running domain holds is never removed (`a_device_of_a_running_domain_stays`), and one running
//!    domain at most holds it (`a_device_runs_in_one_domain`).
//! 4. Domain calls go one after the other, so that the state and the test driver agree.
//! 5. A fault leaves nothing behind but what its kind says (`faults`).
//!
//! The tests named are those of `tests/host_contract`.

mod boot;
mod change;
mod domains;
mod faults;
mod file_host;
mod guest;
mod kernel;
mod nodes;
mod passage;
mod rules;
mod scenario;
mod script;
mod state;
mod types;

pub use faults::Faults;
pub use file_host::FileHost;
pub use script::{After, Call, Change, ChangeRule, FailKind, FailRule, ForeignMdev, Script};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::{broadcast, watch};

use self::faults::{CallSite, Verdict};
use self::passage::{Platform, Transit};
use self::state::State;
use super::{HostError, HostEvent, Hypervisor, NodeDevices};
use crate::model::{Mdev, ParentAddr};

/// Events a slow listener may be behind; they only wake, so a lost one costs nothing.
const EVENT_BACKLOG: usize = 256;

/// How the simulator runs, besides its scenario.
#[derive(Debug, Default)]
pub struct SimOptions {
    /// `--sim-state`: where the host is kept across restarts; `None`: in memory only.
    pub state_file: Option<PathBuf>,
    /// `--sim-script`, read.
    pub script: Script,
}

/// A simulated host. Its two traits are those of a real one.
#[derive(Debug)]
pub struct SimHost {
    base_nodes: Arc<dyn NodeDevices>,
    base_domains: Arc<dyn Hypervisor>,
    /// Devices of the scenario file, there when its numbers were read.
    file_devices: Vec<Mdev>,
    /// Every parent of the file with its card; the test driver's devices never change.
    cards: BTreeMap<ParentAddr, ParentAddr>,
    state: Mutex<State>,
    faults: Faults,
    connected: AtomicBool,
    domain_turn: tokio::sync::Mutex<()>,
    address: OnceLock<String>,
    platform: Mutex<Platform>,
    transit: watch::Sender<Transit>,
    events: broadcast::Sender<HostEvent>,
}

impl SimHost {
    /// The rules of failure in force; a test adds to them.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Forgets all faults and, if libvirt was away, brings it back.
    pub fn heal(&self) {
        self.faults.clear();
        self.set_connected(true);
    }

    /// Runs one call of a trait under the fault rules.
    async fn call<T>(
        &self,
        site: CallSite,
        work: impl Future<Output = Result<T, HostError>> + Send,
    ) -> Result<T, HostError> {
        let answer = match self.faults.begin(&site) {
            Verdict::Go if site.call.is_of_kernel() => work.await,
            Verdict::Go => {
                self.set_connected(true);
                work.await
            }
            Verdict::LoseAnswer(error) => work.await.and(Err(error)),
            Verdict::Fail(error) => Err(error),
            Verdict::Away { error, last } => {
                self.set_connected(false);
                self.set_connected(last);
                Err(error)
            }
        };
        for change in self.faults.due(&site) {
            self.change_or_log(change).await;
        }
        answer
    }

    async fn change_or_log(&self, change: Change) {
        let text = format!("{change:?}");
        if let Err(error) = self.change(change).await {
            tracing::warn!(change = text, %error, "a change of the fault script is not possible");
        }
    }

    fn set_connected(&self, connected: bool) {
        if self.connected.swap(connected, Ordering::SeqCst) != connected {
            self.notify(if connected { HostEvent::Connected } else { HostEvent::Disconnected });
        }
    }

    /// Nobody listening is no failure.
    fn notify(&self, event: HostEvent) {
        let _ = self.events.send(event);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
