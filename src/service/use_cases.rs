//! [`UseCases`] for the real service; every method is a line or two over the files beside this one.

use async_trait::async_trait;
use tokio::sync::broadcast;

use super::Service;
use super::api::{
    AcceptRequest, Accepted, Change, ClaimRequest, DeviceView, HookCall, InstanceView, LiveCheckView,
    LockView, MdevView, Operate, PlanView, PrepareRequest, ReconcileView, SpawnRequest, SpawnResult,
    StatusView, TraitCheck, TraitView, UseCases,
};
use super::observe::{Observation, Usage};
use super::views;
use crate::model::{
    Claim, DisplayWish, Fault, FaultKind, Finding, FindingKind, InventoryRecord, Job, JobId, MdevUuid,
    SagaRow, SagaState,
};
use crate::ops::{host_fault, script};

#[async_trait]
impl UseCases for Service {
    async fn spawn(&self, request: SpawnRequest) -> Result<Accepted, Fault> {
        self.book_spawn(request).await
    }

    async fn preview_spawn(&self, request: SpawnRequest) -> Result<SpawnResult, Fault> {
        self.preview(request).await
    }

    async fn operate(&self, request: Operate) -> Result<Accepted, Fault> {
        self.book_operation(request).await
    }

    async fn export_instance(&self, instance: &str) -> Result<String, Fault> {
        self.export(instance).await
    }

    async fn migrate_prepare(&self, request: PrepareRequest) -> Result<Accepted, Fault> {
        self.book_arrival(request).await
    }

    async fn live_check_source(&self, instance: &str) -> Result<String, Fault> {
        self.hand_out_live(instance).await
    }

    async fn live_check_target(&self, document: &str) -> Result<LiveCheckView, Fault> {
        self.preview_live(document).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Accepted, Fault> {
        self.book_claim(request).await
    }

    async fn render_domain(
        &self,
        instance: &str,
        domain_xml: &str,
        display: DisplayWish,
    ) -> Result<String, Fault> {
        let instance = self.instance(instance)?;
        let claims: Vec<Claim> = self.store.books().claims_of(instance.uuid).cloned().collect();
        self.write_hostdevs(domain_xml, Some(instance.uuid), &claims, display)
    }

    async fn request_for_domain(&self, domain: &str, flavor: Option<&str>) -> Result<Vec<MdevUuid>, Fault> {
        self.domain_request(domain, flavor).await
    }

    async fn hook(&self, call: HookCall) -> Result<String, Fault> {
        self.answer_hook(call).await
    }

    async fn devices(&self) -> Result<Vec<DeviceView>, Fault> {
        let seen = self.observe().await?;
        let usage = self.usage(&seen, &mut Vec::new()).await.ok();
        let settings = self.settings.now();
        Ok(views::devices(&seen, &seen.picture(&settings), usage.as_ref()))
    }

    async fn inventory(&self) -> Result<Vec<InventoryRecord>, Fault> {
        let seen = self.observe().await?;
        let settings = self.settings.now();
        Ok(views::inventory(&seen, &seen.picture(&settings), &self.host_name))
    }

    async fn instances(&self) -> Result<Vec<InstanceView>, Fault> {
        Ok(views::instance_views(&self.store.books()))
    }

    async fn jobs(&self) -> Result<Vec<Job>, Fault> {
        let mut out = Vec::new();
        for id in self.jobs.ids() {
            out.extend(self.store.saga(id)?.map(|row| self.job_of(row)));
        }
        out.sort_by_key(|job| (job.created_usec, job.id));
        Ok(out)
    }

    async fn job(&self, id: JobId) -> Result<Job, Fault> {
        match self.store.saga(id)? {
            Some(row) => Ok(self.job_of(row)),
            None => Err(Fault::new(FaultKind::NoSuchJob, format!("no job has the id {id}"))),
        }
    }

    async fn status(&self) -> Result<StatusView, Fault> {
        let books = self.store.books();
        let settings = self.settings.now();
        let mut view = StatusView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            libvirt_uri: self.libvirt_uri.clone(),
            connected: true,
            simulated: self.simulated,
            providers: 0,
            instances: books.instances().len(),
            claims: books.claims().len(),
            jobs_running: self.jobs.running(),
            jobs_stuck: self.store.stuck_sagas()?.len(),
            restore: self.restored(),
            foreign: Vec::new(),
            findings: settings.warnings.clone(),
        };
        match self.observe().await {
            Ok(seen) => self.add_host(&mut view, &seen).await,
            Err(fault) => {
                view.connected = false;
                view.findings.push(Finding::new(FindingKind::Unknown, "host", fault.message));
            }
        }
        views::each_once(&mut view.findings);
        Ok(view)
    }

    async fn reconcile(&self, dry_run: bool) -> Result<Vec<ReconcileView>, Fault> {
        self.reconcile_host(dry_run).await
    }

    async fn reload(&self) -> Result<Vec<Finding>, Fault> {
        let fresh = self.settings.reload()?;
        tracing::info!(types = fresh.config.enabled.len(), "configuration reloaded");
        self.tell(Change::Inventory);
        self.tell(Change::Status);
        let mut findings = fresh.warnings.clone();
        if let Ok(seen) = self.observe().await {
            let picture = seen.picture(&fresh);
            self.learn(&seen, &fresh, &picture)?;
            findings.extend(picture.findings());
        }
        Ok(findings)
    }

    async fn config_text(&self) -> Result<String, Fault> {
        Ok(crate::config::to_toml(&self.settings.now().config))
    }

    async fn traits(&self) -> Result<Vec<TraitView>, Fault> {
        self.list_traits().await
    }

    async fn trait_lock(&self) -> Result<LockView, Fault> {
        self.write_lock().await
    }

    async fn trait_check(&self) -> Result<TraitCheck, Fault> {
        self.check_traits().await
    }

    async fn trait_accept(&self, request: AcceptRequest) -> Result<Vec<TraitView>, Fault> {
        self.accept(request).await
    }

    async fn trait_export(&self) -> Result<String, Fault> {
        self.export_traits().await
    }

    async fn plan(&self, config: Option<String>) -> Result<PlanView, Fault> {
        self.compare(config.as_deref()).await
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }
}

impl Service {
    async fn usage(&self, seen: &Observation, findings: &mut Vec<Finding>) -> Result<Usage, Fault> {
        let domains =
            self.host.hypervisor.domains().await.map_err(|e| host_fault("look at the domains", &e))?;
        Ok(Usage::of(&domains, &seen.device_facts(), findings))
    }

    async fn add_host(&self, view: &mut StatusView, seen: &Observation) {
        let settings = self.settings.now();
        let picture = seen.picture(&settings);
        view.providers = picture.capacity.iter().filter(|c| c.total > 0).count();
        view.findings.extend(seen.scan.findings.iter().cloned());
        view.findings.extend(picture.findings());
        view.findings.extend(self.restore_findings(seen));
        let usage = match self.usage(seen, &mut view.findings).await {
            Ok(usage) => {
                view.findings.extend(usage.conflicts(seen));
                Some(usage)
            }
            Err(fault) => {
                view.findings.push(Finding::new(FindingKind::Unknown, "domains", fault.message));
                None
            }
        };
        let all = seen.scan.mdevs.iter().map(|m| views::mdev_view(m, seen, usage.as_ref()));
        view.foreign = all.filter(|m: &MdevView| m.foreign).collect();
        view.findings.extend(views::set_aside(&seen.scan));
        view.findings.extend(views::doubled(&seen.scan));
    }

    fn job_of(&self, row: SagaRow) -> Job {
        let progress = self.jobs.progress(row.id);
        let steps =
            || script(&self.host, &row).map_or(0, |s| u32::try_from(s.steps.len()).unwrap_or(u32::MAX));
        let (steps_done, steps_total, step) = match progress {
            Some(p) => (p.steps_done, p.steps_total, p.step),
            None if row.state == SagaState::Done => (steps(), steps(), String::new()),
            None => (0, steps(), String::new()),
        };
        Job {
            id: row.id,
            op: row.op,
            instance: row.instance,
            state: row.state,
            steps_done,
            steps_total,
            step,
            created_usec: row.created_usec,
            result: row.result,
        }
    }
}
