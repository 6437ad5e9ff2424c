//! What is remembered of devices that are gone, for this daemon's life.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::model::{Claim, ClaimId, HostScan, InstanceUuid, JobId};

/// How often a device is tried on a host that looks the same: once more than once, since a cause may just have ended.
const TRIES: u32 = 2;

/// See the head of the file.
#[derive(Debug, Default)]
pub(in crate::service) struct Watch {
    state: Mutex<State>,
    /// Rings for one more look at everything.
    pub(super) nudge: Notify,
    /// The first look is over, well or not.
    pub(super) looked: watch::Sender<bool>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// What happened while no daemon was there is in the books.
    pub(super) accounted: bool,
    /// When a claim was first seen without its device.
    pub(super) since: BTreeMap<ClaimId, Instant>,
    /// Claims that went missing since all devices were last there.
    pub(super) round: BTreeSet<ClaimId>,
    /// Restores under way.
    pub(super) jobs: BTreeSet<JobId>,
    /// Instances that were passed over for an operation under way.
    pub(super) skipped: BTreeSet<InstanceUuid>,
    tried: BTreeMap<ClaimId, Tried>,
}

/// Tries to make a device that came to nothing.
#[derive(Debug)]
struct Tried {
    /// What the host was like there.
    sight: String,
    times: u32,
    why: String,
}

impl Watch {
    /// The first look is over.
    pub(in crate::service) fn first_is_over(&self) {
        self.looked.send_replace(true);
    }

    /// Returns when one more look is wanted.
    pub(in crate::service) async fn nudged(&self) {
        self.nudge.notified().await;
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes over which claims are without their devices now.
    pub(super) fn note(&mut self, gone: &[Claim], now: Instant) {
        if self.since.is_empty() && !gone.is_empty() {
            self.round.clear();
        }
        let ids: BTreeSet<ClaimId> = gone.iter().map(|c| c.id).collect();
        self.since.retain(|id, _| ids.contains(id));
        self.tried.retain(|id, _| ids.contains(id));
        for id in ids {
            self.since.entry(id).or_insert(now);
            self.round.insert(id);
        }
    }

    /// When a claim's time is over.
    pub(super) fn due(&self, claim: ClaimId, deadline: Duration) -> Option<Instant> {
        self.since.get(&claim)?.checked_add(deadline)
    }

    /// A device could not be made.
    pub(super) fn failed(&mut self, claim: &Claim, scan: &HostScan, why: &str) {
        let sight = sight(claim, scan);
        let tried = self.tried.entry(claim.id).or_insert(Tried {
            sight: String::new(),
            times: 0,
            why: String::new(),
        });
        tried.times = if tried.sight == sight { tried.times.saturating_add(1) } else { 1 };
        (tried.sight, tried.why) = (sight, why.to_owned());
    }

    /// Why another try is of no use as long as the host stays like this.
    pub(super) fn hopeless(&self, claim: &Claim, scan: &HostScan) -> Option<&str> {
        let tried = self.tried.get(&claim.id)?;
        (tried.times >= TRIES && tried.sight == sight(claim, scan)).then_some(tried.why.as_str())
    }
}

/// All of the host that the making of this device hangs on.
fn sight(claim: &Claim, scan: &HostScan) -> String {
    let same: Vec<_> = scan.mdevs_with(claim.uuid).collect();
    format!("{:?} {same:?}", scan.parent(&claim.parent))
}
