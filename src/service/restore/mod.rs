//! Devices that are gone: noticed, made again, waited for, given up.
//!
//! ```text
//!   events of the host, ends of operations, the next deadline --> a look --> Vanished, or nothing is gone
//!                                                                    `-----> plan::restore --> a saga | wait | given up
//! ```
//! 1. A claim is `Missing` once a look and a second question about its UUID both found no device; never by an event alone.
//! 2. An instance with an operation under way is left to it; the end of the operation has it looked at.
//! 3. One saga for each instance; one that fails takes no other along, and its other devices are tried without the failed one.
//! 4. A device that could not be made is tried again only where its part of the host has changed.
//! 5. Nothing is polled.

mod boot;
mod watch;

pub(super) use watch::Watch;

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::Service;
use super::api::{Accepted, Change, RestoreView, UseCases};
use super::book::digest_of;
use super::observe::Observation;
use crate::model::{
    Claim, ClaimEvent, ClaimId, ClaimState, Fault, FaultKind, Finding, FindingKind, HostScan, InstanceUuid,
    OpKind, SagaRow, StepEvent,
};
use crate::ops::Params;
use crate::plan::restore::{Verdict, is_there, judge};
use crate::saga::Ending;
use crate::store::{self, Begin, Books, Recheck, StoreError};

/// How long the start of the daemon waits for the restores of its first look; they go on after it.
const FIRST_LOOK: Duration = Duration::from_secs(60);

impl Service {
    /// Compares the books with what was seen, `before` being the books before that look. When to look again if nothing
    /// happens; `None`: not at all.
    pub(super) async fn look_after_devices(&self, before: &Books, seen: &Observation) -> Option<Instant> {
        if !self.devices.state().accounted {
            if let Some(id) = self.new_boot()
                && !self.account_for_boot(&id, before, &seen.scan).await
            {
                return None;
            }
            self.devices.state().accounted = true;
            if self.by_itself {
                self.start_guests().await;
            }
            self.catch_up(None).await;
        }
        if !self.by_itself {
            return None;
        }
        let gone = self.confirmed(gone_since(before, &self.store.books(), &seen.scan)).await;
        for (instance, claims) in by_instance(gone) {
            self.write(instance, claims.iter().map(vanished).collect());
        }
        let due = self.restore_all(&seen.scan).await;
        self.start_guests().await;
        due
    }

    /// Whether domains may be compared with the books: not before a boot is in them.
    pub(super) fn is_accounted(&self) -> bool {
        let mut state = self.devices.state();
        state.accounted = state.accounted || self.new_boot().is_none();
        state.accounted
    }

    /// What one look left out may be there all the same, and what cannot be read is not gone.
    async fn confirmed(&self, gone: Vec<Claim>) -> Vec<Claim> {
        let mut sure = Vec::new();
        for claim in gone {
            match self.host.nodes.find(claim.uuid).await {
                Ok(found) if found.iter().any(|m| m.active && m.parent == claim.parent) => {}
                Ok(_) => sure.push(claim),
                Err(err) => tracing::debug!(uuid = %claim.uuid, "look for a device that may be gone: {err}"),
            }
        }
        sure
    }

    /// Judges all claims without a device and does what is possible now.
    async fn restore_all(&self, scan: &HostScan) -> Option<Instant> {
        let gone: Vec<Claim> = self.store.books().claims().filter(|c| c.is_gone()).cloned().collect();
        let (now, deadline, was) = (Instant::now(), self.restore_deadline(), self.restored());
        self.devices.state().note(&gone, now);
        let verdicts = self.verdicts(&gone, scan, now);
        let due = {
            let state = self.devices.state();
            let waits = |c: &&Claim| matches!(verdicts.get(&c.id), Some(Verdict::Wait(_)));
            gone.iter().filter(waits).filter_map(|c| state.due(c.id, deadline)).min()
        };
        for (instance, claims) in by_instance(gone) {
            self.write(instance, claims.iter().filter_map(|c| settled(c, verdicts.get(&c.id)?)).collect());
            // A guest that runs has what is there.
            if claims.iter().any(|c| verdicts.get(&c.id) == Some(&Verdict::Keep)) {
                self.catch_up(Some(instance)).await;
            }
            let create = |c: &&Claim| verdicts.get(&c.id) == Some(&Verdict::Create);
            let create: Vec<Claim> = claims.iter().filter(create).cloned().collect();
            if !create.is_empty() {
                self.restore_some(instance, &create, scan).await;
            }
        }
        if self.restored() != was {
            self.tell(Change::Status);
        }
        due
    }

    fn restore_deadline(&self) -> Duration {
        Duration::from_secs(u64::from(self.settings.now().config.restore_deadline_sec))
    }

    /// The plan, and what was learned by trying.
    fn verdicts(&self, gone: &[Claim], scan: &HostScan, now: Instant) -> BTreeMap<ClaimId, Verdict> {
        let (state, deadline) = (self.devices.state(), self.restore_deadline());
        let overdue = |claim: &Claim| state.due(claim.id, deadline).is_some_and(|due| due <= now);
        let mut verdicts = judge(gone, scan, overdue);
        for claim in gone {
            if let (Some(Verdict::Create), Some(why)) = (verdicts.get(&claim.id), state.hopeless(claim, scan))
            {
                verdicts.insert(claim.id, Verdict::Lost(why.to_owned()));
            }
        }
        verdicts
    }

    /// Writes what was seen of an instance, unless an operation is at work on it.
    fn write(&self, instance: InstanceUuid, changes: Vec<store::Change>) {
        if changes.is_empty() {
            return;
        }
        match self.store.observe(changes) {
            Ok(()) => {
                self.tell(Change::Claim(instance));
                self.tell(Change::Inventory);
            }
            Err(StoreError::Busy { .. }) => drop(self.devices.state().skipped.insert(instance)),
            Err(err) => tracing::error!(%instance, "write what became of its devices: {err}"),
        }
    }

    async fn restore_some(&self, instance: InstanceUuid, claims: &[Claim], scan: &HostScan) {
        let ids: Vec<ClaimId> = claims.iter().map(|c| c.id).collect();
        match self.begin_restore(instance, &ids, false).await {
            Ok(_) => {}
            // It is looked at again when its operation has ended, or by the next daemon.
            Err(fault) if matches!(fault.kind, FaultKind::InstanceBusy | FaultKind::RestorePending) => {
                self.devices.state().skipped.insert(instance);
            }
            Err(fault) if fault.kind == FaultKind::ShuttingDown => {}
            Err(fault) => {
                tracing::error!(%instance, "restore its devices: {fault}");
                let mut state = self.devices.state();
                claims.iter().for_each(|c| state.failed(c, scan, &fault.message));
            }
        }
    }

    /// Begins to make devices of these claims again; `in_kernel` while libvirt waits for it.
    ///
    /// # Errors
    /// Those of any operation on the instance.
    pub(super) async fn begin_restore(
        &self,
        instance: InstanceUuid,
        claims: &[ClaimId],
        in_kernel: bool,
    ) -> Result<Accepted, Fault> {
        let op = OpKind::Restore;
        let subject = self.subject(op, &instance.to_string()).await?;
        let devices: Vec<_> =
            subject.plans.iter().filter(|plan| claims.contains(&plan.claim.id)).cloned().collect();
        let there = devices.iter().map(|plan| &plan.claim).filter(|c| !c.is_gone());
        let changes = there.map(vanished).collect();
        let params = Params { in_kernel, ..subject.params_of(devices) };
        let saga = self.new_saga(op, &params, None, digest_of(&[op.as_str(), &instance.to_string()]));
        let job = saga.id;
        let recheck: Recheck = Box::new(move |books| subject.recheck(op, books));
        self.devices.state().jobs.insert(job);
        let begun = self.launch(saga, |begin| Begin { recheck: Some(recheck), changes, ..begin });
        if begun.is_err() {
            self.devices.state().jobs.remove(&job);
        }
        begun
    }

    /// An operation has ended. What was left to it is looked at, and what it could not make is remembered.
    pub(super) async fn after_operation(&self, row: &SagaRow, ending: &Ending) {
        if let (OpKind::LivePrepare, Ending::Done(_)) = (row.op, ending) {
            self.await_guest(row.instance);
        }
        if let (OpKind::Restore, Ending::Failed(fault) | Ending::Stuck(fault)) = (row.op, ending) {
            self.remember_failure(row, fault).await;
        }
        let missing = self.store.books().claims_of(row.instance).any(|c| c.state == ClaimState::Missing);
        let mut state = self.devices.state();
        let mine = state.jobs.remove(&row.id);
        if state.skipped.remove(&row.instance) || mine || missing || row.op == OpKind::Restore {
            self.devices.nudge.notify_one();
        }
    }

    async fn remember_failure(&self, row: &SagaRow, fault: &Fault) {
        let events = self.store.events(row.id).unwrap_or_default();
        let failed = events.iter().rev().find(|line| line.event == StepEvent::Failed);
        let Ok(params) = serde_json::from_value::<Params>(row.params.clone()) else { return };
        // One step for each device; where no step says it failed, all did.
        let is_it = |at: usize| failed.is_none_or(|line| usize::try_from(line.step).is_ok_and(|n| n == at));
        if let Ok(scan) = self.host.nodes.scan().await {
            let mut state = self.devices.state();
            let of = params.devices.iter().enumerate().filter(|(at, _)| is_it(*at));
            of.for_each(|(_, plan)| state.failed(&plan.claim, &scan, &fault.message));
        }
    }

    /// Returns once the first look at the host is over and the restores that it began have ended, or have taken long.
    pub async fn first_look(&self) {
        let mut changes = self.changes();
        let mut looked = self.devices.looked.subscribe();
        let ended = async {
            // The sender lives as long as the service.
            let _ = looked.wait_for(|looked| *looked).await;
            while !self.devices.state().jobs.is_empty() {
                let _ = changes.recv().await;
            }
        };
        if timeout(FIRST_LOOK, ended).await.is_err() {
            tracing::warn!("the first look at the host and its restores take long; they go on");
        }
    }

    /// How far the devices are that were gone; `None` if none was in this daemon's life.
    pub fn restored(&self) -> Option<RestoreView> {
        let books = self.store.books();
        let round = self.devices.state().round.clone();
        let states: Vec<ClaimState> = round.iter().filter_map(|id| Some(books.claim(*id)?.state)).collect();
        let count = |state| states.iter().filter(|s| **s == state).count();
        let (missing, lost) = (count(ClaimState::Missing), count(ClaimState::Lost));
        let total = states.len();
        (total > 0).then(|| RestoreView { total, restored: total - missing - lost, missing, lost })
    }

    /// One finding for each claim without a device: what it waits for, or why it is lost.
    pub(super) fn restore_findings(&self, seen: &Observation) -> Vec<Finding> {
        let gone: Vec<Claim> = seen.claims.iter().filter(|c| c.is_gone()).cloned().collect();
        let verdicts = self.verdicts(&gone, &seen.scan, Instant::now());
        let finding = |claim: &Claim| {
            let why = match verdicts.get(&claim.id)? {
                Verdict::Keep => "it is there again".to_owned(),
                Verdict::Create => "it is being made again".to_owned(),
                Verdict::Wait(why) | Verdict::Lost(why) | Verdict::Foreign(why) => why.clone(),
            };
            let (name, state) = (seen.instance_name(claim.instance), claim.state);
            let text = format!("the {} of instance {name:?} is {state}: {why}", claim.type_name);
            Some(Finding::new(FindingKind::DeviceMissing, claim.uuid.to_string(), text))
        };
        gone.iter().filter_map(finding).collect()
    }
}

/// Whether the books say that the device exists.
fn is_held(state: ClaimState) -> bool {
    matches!(state, ClaimState::Ready | ClaimState::InUse | ClaimState::Parked)
}

/// Claims whose device is not there, as they stand now; one that moved since the look is left to the next one.
fn gone_since(before: &Books, now: &Books, scan: &HostScan) -> Vec<Claim> {
    let same = |c: &Claim| before.claim(c.id).is_some_and(|old| old.state == c.state);
    now.claims().filter(|c| is_held(c.state) && same(c) && !is_there(c, scan)).cloned().collect()
}

fn vanished(claim: &Claim) -> store::Change {
    store::Change::Claim { claim: claim.id, event: ClaimEvent::Vanished }
}

/// What the books say of a claim that needs no operation.
fn settled(claim: &Claim, verdict: &Verdict) -> Option<store::Change> {
    let event = match verdict {
        Verdict::Keep => ClaimEvent::Created,
        Verdict::Lost(_) | Verdict::Foreign(_) if claim.state == ClaimState::Missing => ClaimEvent::GivenUp,
        Verdict::Lost(_) | Verdict::Foreign(_) | Verdict::Create | Verdict::Wait(_) => return None,
    };
    Some(store::Change::Claim { claim: claim.id, event })
}

fn by_instance(claims: Vec<Claim>) -> BTreeMap<InstanceUuid, Vec<Claim>> {
    let mut all: BTreeMap<InstanceUuid, Vec<Claim>> = BTreeMap::new();
    for claim in claims {
        all.entry(claim.instance).or_default().push(claim);
    }
    all
}
