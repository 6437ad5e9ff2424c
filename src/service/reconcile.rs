//! Books, hardware and domains compared, and what is safe done about the differences.
//!
//! Each act looks again at what it rests on: a device is removed only while nothing can be booked, and a claim's device is
//! made by a saga like any other.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::timeout;

use super::Service;
use super::api::{ReconcileView, UseCases};
use super::observe::Observation;
use crate::config::OnRelease;
use crate::host::Domain;
use crate::model::claim::device_name;
use crate::model::{ClaimId, Fault, FaultKind, InstanceUuid, JobId, MdevUuid, Move, ParentAddr, SagaState};
use crate::ops::host_fault;
use crate::plan::reconcile::{Action, Compared, Difference, DomainDevices, differences};
use crate::store::Change;
use crate::xml::domain::DomainDoc;

/// How long the answer waits for a restore; the job goes on after it.
const WAIT: Duration = Duration::from_secs(60);

impl Service {
    /// [`UseCases::reconcile`]: a plan first, then the safe acts of it.
    pub(super) async fn reconcile_host(&self, dry_run: bool) -> Result<Vec<ReconcileView>, Fault> {
        let found = self.compare_host().await?;
        let mut done = BTreeMap::new();
        if !dry_run {
            self.restore_found(&found, &mut done).await;
            for (at, difference) in found.iter().enumerate() {
                if let (Action::Remove | Action::Forget, Some(uuid), Some(parent)) =
                    (difference.action, difference.uuid, &difference.parent)
                {
                    done.insert(at, self.remove_orphan(uuid, parent, difference.action).await);
                }
            }
        }
        Ok(found.into_iter().enumerate().map(|(at, one)| view(one, done.remove(&at))).collect())
    }

    /// A domain list that cannot be read is an error: without it nothing is known to be unused.
    async fn compare_host(&self) -> Result<Vec<Difference>, Fault> {
        // Operations that begin after this change what they touch before they end, and each act looks again.
        let busy: BTreeSet<InstanceUuid> =
            self.store.open_sagas()?.into_iter().map(|row| row.instance).collect();
        let seen: Observation = self.observe().await?;
        let domains = self.host.hypervisor.domains().await;
        let domains = domains.map_err(|e| host_fault("look at the domains", &e))?;
        let domains: Vec<DomainDevices> = domains.iter().map(devices_of).collect();
        let moves: Vec<Move> = self.store.books().moves().cloned().collect();
        Ok(differences(Compared {
            scan: &seen.scan,
            instances: &seen.instances,
            claims: &seen.claims,
            own: &seen.own,
            moves: &moves,
            domains: &domains,
            busy: &busy,
            keep_idle: self.settings.now().config.on_release == OnRelease::Keep,
        }))
    }

    /// One restore for each instance; the answer is each device's own.
    async fn restore_found(&self, found: &[Difference], done: &mut BTreeMap<usize, Result<(), Fault>>) {
        let mut by_instance: BTreeMap<InstanceUuid, Vec<(usize, ClaimId)>> = BTreeMap::new();
        for (at, one) in found.iter().enumerate() {
            if let (Action::Make | Action::Start, Some(claim), Some(instance)) =
                (one.action, one.claim, one.instance)
            {
                by_instance.entry(instance).or_default().push((at, claim));
            }
        }
        for (instance, claims) in by_instance {
            let ids: Vec<ClaimId> = claims.iter().map(|(_, claim)| *claim).collect();
            let outcome = match self.begin_restore(instance, &ids, false).await {
                Ok(accepted) => self.wait_for(accepted.job).await,
                Err(fault) => Err(fault),
            };
            done.extend(claims.iter().map(|(at, _)| (*at, outcome.clone())));
        }
    }

    async fn wait_for(&self, id: JobId) -> Result<(), Fault> {
        let mut changes = self.changes();
        let ended = async {
            loop {
                let job = self.job(id).await?;
                match job.state {
                    SagaState::Running | SagaState::Unwinding => drop(changes.recv().await),
                    SagaState::Done => return Ok(()),
                    SagaState::Failed | SagaState::Stuck => {
                        let fault = job.result.and_then(|result| serde_json::from_value(result).ok());
                        let text =
                            || Fault::new(FaultKind::Internal, format!("job {id} ended as {}", job.state));
                        return Err(fault.unwrap_or_else(text));
                    }
                }
            }
        };
        timeout(WAIT, ended).await.unwrap_or_else(|_| {
            let text = format!("job {id} goes on; look at `mdevirtctl job show {id}`");
            Err(Fault::new(FaultKind::Timeout, text))
        })
    }

    /// No booking can take the device meanwhile; the host itself refuses one that is open.
    async fn remove_orphan(&self, uuid: MdevUuid, parent: &ParentAddr, act: Action) -> Result<(), Fault> {
        let _one_at_a_time = self.booking.lock().await;
        let books = self.store.books();
        if books.own_device(uuid, parent).is_none() || books.holder(uuid, parent).is_some() {
            let text = format!("device {uuid} on {parent} was taken meanwhile; it is left alone");
            return Err(Fault::new(FaultKind::DeviceInUse, text));
        }
        if act == Action::Remove {
            let what = format!("remove {uuid} from {parent}");
            self.host.nodes.remove(uuid, parent).await.map_err(|e| host_fault(&what, &e))?;
        }
        self.store.observe(vec![Change::DeviceForgotten { uuid, parent: parent.clone() }])?;
        tracing::info!(%uuid, %parent, "removed a device of ours that no instance held");
        self.tell(super::api::Change::Inventory);
        Ok(())
    }
}

fn devices_of(domain: &Domain) -> DomainDevices {
    let devices = DomainDoc::parse(&domain.xml).ok().map(|doc| doc.mdevs().collect());
    DomainDevices { uuid: domain.uuid, name: domain.name.clone(), devices }
}

fn view(found: Difference, outcome: Option<Result<(), Fault>>) -> ReconcileView {
    let Difference { kind, uuid, parent, instance, action, text, .. } = found;
    let device = match (uuid, &parent) {
        (Some(uuid), Some(parent)) => Some(device_name(uuid, parent)),
        (uuid, _) => uuid.map(|uuid| uuid.to_string()),
    };
    let (done, text) = match outcome {
        Some(Ok(())) => (true, text),
        Some(Err(fault)) => (false, fault.message),
        None => (false, text),
    };
    ReconcileView { kind, device, uuid, parent, instance, action, done, text }
}
