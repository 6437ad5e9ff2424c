//! A running guest from one host to another: what each of the two hosts checks and books. libvirt carries the guest, and whoever
//! moves the instance carries the documents.
//!
//! 1. The target is checked, booked and made before anything happens to the guest.
//! 2. The source gives nothing back before libvirt says that the guest runs on the target.

use std::time::Duration;

use serde::Deserialize;
use tokio::time::timeout;

use super::Service;
use super::api::{Accepted, Change, LiveCheckView, LiveLanding, LiveOptions, OperateWith};
use super::book::{Chosen, Look};
use super::lifecycle::Subject;
use crate::host::{Passage, Whereabouts};
use crate::model::{
    Baggage, Claim, ClaimRole, Fault, FaultKind, InstanceUuid, JobId, MdevUuid, Move, MoveKind, MovePhase,
    OpKind, SagaRow, SagaState,
};
use crate::ops::{Params, host_fault};
use crate::plan::handover::{Handover, Traveller};
use crate::plan::live::{LiveSide, check_drivers, check_uri, check_versions};

/// How often it is looked how much of a guest was sent; libvirt has no event for that.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The document of `LivePrepare`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pairs {
    /// The target.
    host: String,
    pairs: Vec<Pair>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    source: MdevUuid,
    target: MdevUuid,
}

impl Service {
    /// [`super::api::UseCases::live_check_source`].
    pub(super) async fn hand_out_live(&self, text: &str) -> Result<String, Fault> {
        let subject = self.subject(OpKind::LiveCommit, text).await?;
        self.goes_running(&subject).await?;
        let side = self.live_side(&subject.claims).await?;
        check_versions(&self.host_name, &side.versions)?;
        let document = self.handover(&subject.instance, &subject.claims, None).await?.with_live(side);
        serde_json::to_string_pretty(&document).map_err(|e| Fault::new(FaultKind::Internal, e.to_string()))
    }

    /// Refuses for a guest that cannot be sent.
    async fn goes_running(&self, subject: &Subject) -> Result<(), Fault> {
        let name = &subject.instance.name;
        let refuse = |kind, why: &str| {
            Err(Fault::new(kind, format!("migrate instance {name:?} while it runs: {why}")))
        };
        if let Some(moving) = &subject.moving {
            return refuse(
                FaultKind::InstanceBusy,
                &format!("it is under way ({} {})", moving.kind, moving.phase),
            );
        }
        if let Some(gone) = subject.claims.iter().find(|c| c.is_gone()) {
            return refuse(
                FaultKind::HostRefused,
                &format!("its device {} is {}; restore it first", gone.uuid, gone.state),
            );
        }
        match self.whereabouts(subject.instance.uuid).await? {
            Whereabouts::Here => Ok(()),
            Whereabouts::Absent | Whereabouts::Off { .. } => {
                refuse(FaultKind::InvalidRequest, "it does not run; migrate it without --live")
            }
            Whereabouts::UnderWay(_) | Whereabouts::Held => {
                refuse(FaultKind::InstanceBusy, "libvirt is at a migration or another long job with it")
            }
        }
    }

    pub(super) async fn whereabouts(&self, instance: InstanceUuid) -> Result<Whereabouts, Fault> {
        let found = self.host.hypervisor.whereabouts(instance).await;
        found.map_err(|e| host_fault(&format!("look where the guest of {instance} is"), &e))
    }

    async fn live_side(&self, claims: &[Claim]) -> Result<LiveSide, Fault> {
        let versions = self.host.hypervisor.versions().await;
        let versions = versions.map_err(|e| host_fault("read the versions of libvirt and QEMU", &e))?;
        let driver = |claim: &Claim| {
            let version = self.host.nodes.driver_version(&claim.parent);
            version.map_err(|e| host_fault(&format!("read the driver's version of {}", claim.parent), &e))
        };
        Ok(LiveSide { versions, drivers: claims.iter().map(driver).collect::<Result<_, _>>()? })
    }

    /// [`super::api::UseCases::live_check_target`].
    pub(super) async fn preview_live(&self, text: &str) -> Result<LiveCheckView, Fault> {
        let document = Handover::parse(text)?;
        self.same_lock(&document.name, &document.host, document.lock.as_ref())?;
        self.check_domain(&document).await?;
        let chosen = self.land(&document, Look::Only).await?;
        let side = self.check_live(&document, &chosen).await?;
        let landing = |(there, here): (&Traveller, &Claim)| LiveLanding {
            source: there.uuid,
            parent: here.parent.clone(),
            mdev_type: here.mdev_type.clone(),
            type_name: here.type_name.clone(),
        };
        Ok(LiveCheckView {
            host: self.host_name.clone(),
            versions: side.versions,
            devices: document.devices.iter().zip(&chosen.claims).map(landing).collect(),
        })
    }

    /// Target: whether what runs both hosts is fit for it.
    pub(super) async fn check_live(&self, document: &Handover, chosen: &Chosen) -> Result<LiveSide, Fault> {
        let theirs = document.live.as_ref().ok_or_else(|| {
            let text = format!(
                "migrate {:?}: its document was not made for a migration while it runs",
                document.name
            );
            Fault::new(FaultKind::InvalidRequest, text)
        })?;
        check_versions(&document.host, &theirs.versions)?;
        let ours = self.live_side(&chosen.claims).await?;
        check_versions(&self.host_name, &ours.versions)?;
        for (there, here) in theirs.drivers.iter().zip(&ours.drivers) {
            check_drivers((&document.host, there.as_deref()), (&self.host_name, here.as_deref()))?;
        }
        Ok(ours)
    }

    /// Source: the guest goes, or what is left of one that went is given back. Target: it is here.
    pub(super) async fn plan_live_commit(
        &self,
        subject: &Subject,
        with: &OperateWith,
    ) -> Result<Params, Fault> {
        match subject.moving.as_ref().map(|m| m.kind) {
            Some(MoveKind::LiveIn) => self.plan_welcome(subject).await,
            Some(MoveKind::LiveOut) => Ok(Params { leaves: true, ..everything_out(subject) }),
            _ => self.plan_send(subject, with).await,
        }
    }

    async fn plan_send(&self, subject: &Subject, with: &OperateWith) -> Result<Params, Fault> {
        let LiveOptions { document, uri, bandwidth_mib, downtime_ms } = &with.live;
        let required = |key: &str, value: &Option<String>| {
            let missing = || Fault::new(FaultKind::InvalidRequest, format!("option {key} is missing"));
            value.clone().ok_or_else(missing)
        };
        let Pairs { host, pairs } =
            serde_json::from_str(&required("document", document)?).map_err(|err| {
                let text = format!("the document of the target: not one that LivePrepare gives: {err}");
                Fault::new(FaultKind::InvalidRequest, text)
            })?;
        let devices: Vec<(MdevUuid, MdevUuid)> =
            pairs.iter().map(|pair| (pair.source, pair.target)).collect();
        all_paired(subject, &devices)?;
        self.goes_running(subject).await?;
        let peer = with.peer.clone().or(Some(host));
        let moving = Move {
            instance: subject.instance.uuid,
            kind: MoveKind::LiveOut,
            phase: MovePhase::Prepared,
            baggage: Baggage { running: true, peer, ..Baggage::default() },
        };
        let uri = required("uri", uri)?;
        if !self.simulated {
            check_uri(&uri)?;
        }
        let passage = Passage { uri, devices, bandwidth_mib: *bandwidth_mib, downtime_ms: *downtime_ms };
        Ok(Params { moving: Some(moving), passage: Some(passage), leaves: true, ..subject.params() })
    }

    /// Source: a sending that is under way is broken off; its own operation ends with that.
    pub(super) async fn break_off(&self, text: &str) -> Result<Option<Accepted>, Fault> {
        let instance = self.instance(text)?;
        let Some(job) = self.store.live_saga(instance.uuid)? else { return Ok(None) };
        let is_sending = |row: &SagaRow| row.op == OpKind::LiveCommit && row.state == SagaState::Running;
        if !self.store.saga(job)?.is_some_and(|row| is_sending(&row)) {
            return Ok(None);
        }
        let what = format!("break off the migration of {:?}", instance.name);
        self.host.hypervisor.abort_migration(instance.uuid).await.map_err(|e| host_fault(&what, &e))?;
        Ok(Some(Accepted { job, fresh: false }))
    }

    /// Shows in the job how much of the guest was sent, for as long as it is polled.
    pub(super) async fn show_sending(&self, job: JobId, instance: InstanceUuid) {
        loop {
            tokio::time::sleep(LOOK_AGAIN).await;
            let look = timeout(LOOK_AGAIN * 10, self.host.hypervisor.whereabouts(instance)).await;
            let (Ok(Ok(Whereabouts::UnderWay(sent))), Some(mut progress)) = (look, self.jobs.progress(job))
            else {
                continue;
            };
            progress.step = format!(
                "move_guest: {} %, {} MiB sent, {} MiB left",
                sent.percent(),
                sent.bytes >> 20,
                sent.left >> 20
            );
            self.jobs.note(progress);
            self.tell(Change::JobChanged(job));
        }
    }
}

/// What a sending that got stuck has left.
fn everything_out(subject: &Subject) -> Params {
    Params {
        keep_devices: subject.keeps,
        moving: subject.moving.clone(),
        ..subject.params_of(subject.of(ClaimRole::Outgoing))
    }
}

/// Each device of the guest becomes one on the target, and nothing else does.
fn all_paired(subject: &Subject, devices: &[(MdevUuid, MdevUuid)]) -> Result<(), Fault> {
    let missing =
        subject.claims.iter().find(|c| devices.iter().filter(|(from, _)| *from == c.uuid).count() != 1);
    if let Some(claim) = missing {
        let text =
            format!("the document of the target does not say what device {} becomes there", claim.uuid);
        return Err(Fault::new(FaultKind::InvalidRequest, text));
    }
    let twice = devices.iter().find(|(_, to)| devices.iter().filter(|(_, other)| other == to).count() > 1);
    if twice.is_some() || devices.len() != subject.claims.len() {
        let text = format!(
            "the document of the target names {} devices for the {} that {:?} has",
            devices.len(),
            subject.claims.len(),
            subject.instance.name
        );
        return Err(Fault::new(FaultKind::InvalidRequest, text));
    }
    Ok(())
}
