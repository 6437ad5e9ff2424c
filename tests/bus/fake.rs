//! A service that answers with the sample, records what it was asked, and lets a test move its jobs.

use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use mdevirt::model::{
    DisplayWish, Fault, FaultKind, Finding, InstanceUuid, InventoryRecord, Job, JobId, MdevUuid, OpKind,
    SagaState,
};
use mdevirt::service::api::{
    AcceptRequest, Accepted, Change, ClaimRequest, DeviceView, HookCall, InstanceView, LiveCheckView,
    LockView, Operate, OperateWith, PlanView, PrepareRequest, ReconcileView, SpawnRequest, SpawnResult,
    StatusView, TraitCheck, TraitView, UseCases,
};
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::sample;

/// When a job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// By itself, at once.
    AtOnce,
    /// When the test says so.
    Held,
}

/// What the service has. A test may change it; it then says so with [`Fake::say`].
#[derive(Debug)]
pub struct World {
    pub devices: Vec<DeviceView>,
    pub inventory: Vec<InventoryRecord>,
    pub instances: Vec<InstanceView>,
    pub findings: Vec<Finding>,
    pub status: StatusView,
    pub jobs: Vec<Job>,
    /// Every call fails with it.
    pub fault: Option<Fault>,
    /// Every job ends like this, instead of well.
    pub end: Option<(SagaState, Value)>,
    /// What was asked, one line a call.
    pub asked: Vec<String>,
    operations: Vec<(String, JobId)>,
}

/// The service.
#[derive(Debug)]
pub struct Fake {
    pace: Pace,
    world: Mutex<World>,
    changes: broadcast::Sender<Change>,
    heard: broadcast::Sender<String>,
}

impl Fake {
    pub fn new(pace: Pace) -> Arc<Self> {
        Self::with_room_for(pace, 1024)
    }

    /// One whose listeners miss changes when more than `changes` wait.
    pub fn with_room_for(pace: Pace, changes: usize) -> Arc<Self> {
        let world = World {
            devices: sample::devices(),
            inventory: sample::inventory(),
            instances: sample::instances(),
            findings: sample::findings(),
            status: sample::status(),
            jobs: Vec::new(),
            fault: None,
            end: None,
            asked: Vec::new(),
            operations: Vec::new(),
        };
        let (changes, heard) = (broadcast::channel(changes).0, broadcast::channel(1024).0);
        Arc::new(Self { pace, world: Mutex::new(world), changes, heard })
    }

    /// What it will be asked from now on, as in [`World::asked`].
    pub fn listen(&self) -> broadcast::Receiver<String> {
        self.heard.subscribe()
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("no test panicked with the world in its hands")
    }

    /// Tells everybody who listens.
    pub fn say(&self, change: Change) {
        // Nobody listens before the daemon does.
        let _ = self.changes.send(change);
    }

    /// One step of a job is done.
    pub fn step(&self, id: JobId, name: &str) {
        let mut world = self.world();
        let job = world.jobs.iter_mut().find(|job| job.id == id).expect("the job");
        job.steps_done += 1;
        job.step = name.to_owned();
        drop(world);
        self.say(Change::JobChanged(id));
    }

    /// A job ends.
    pub fn end(&self, id: JobId, state: SagaState, result: Value) {
        let mut world = self.world();
        let job = world.jobs.iter_mut().find(|job| job.id == id).expect("the job");
        job.state = state;
        job.steps_done = job.steps_total;
        job.result = Some(result);
        drop(world);
        self.say(Change::JobRemoved { id, result: state.to_string() });
    }

    /// A job that nobody asked for over the bus.
    pub fn begin(&self, op: OpKind, instance: InstanceUuid) -> JobId {
        let id = {
            let mut world = self.world();
            let id: JobId =
                format!("00000000-0000-4000-8000-{:012}", world.jobs.len() + 1).parse().expect("an id");
            world.jobs.push(Job {
                id,
                op,
                instance,
                state: SagaState::Running,
                steps_done: 0,
                steps_total: 3,
                step: "create device".to_owned(),
                created_usec: 1_764_500_000_000_000,
                result: None,
            });
            id
        };
        self.say(Change::JobNew(id));
        id
    }

    fn accept(&self, op: OpKind, operation_id: Option<String>, result: Value) -> Result<Accepted, Fault> {
        if let Some(operation) = &operation_id
            && let Some((_, job)) = self.world().operations.iter().find(|(known, _)| known == operation)
        {
            return Ok(Accepted { job: *job, fresh: false });
        }
        let job = self.begin(op, sample::INSTANCE.parse().expect("a uuid"));
        if let Some(operation) = operation_id {
            self.world().operations.push((operation, job));
        }
        if self.pace == Pace::AtOnce {
            self.step(job, "start domain");
            let (state, result) = self.world().end.clone().unwrap_or((SagaState::Done, result));
            self.end(job, state, result);
        }
        Ok(Accepted { job, fresh: true })
    }

    fn ask(&self, line: String) -> Result<(), Fault> {
        let mut world = self.world();
        world.asked.push(line.clone());
        // Most tests do not listen.
        let _ = self.heard.send(line);
        world.fault.clone().map_or(Ok(()), Err)
    }

    fn result(job: Option<JobId>) -> SpawnResult {
        SpawnResult {
            job,
            instance: sample::INSTANCE.parse().expect("a uuid"),
            devices: vec![sample::claim()],
            domain_xml: "<domain type='kvm'><name>web-01</name></domain>\n".to_owned(),
        }
    }
}

#[async_trait]
impl UseCases for Fake {
    async fn spawn(&self, request: SpawnRequest) -> Result<Accepted, Fault> {
        self.ask(format!("spawn {}", serde_json::to_string(&request).expect("json")))?;
        self.accept(OpKind::Spawn, request.operation_id, json!(Self::result(None)))
    }

    async fn preview_spawn(&self, request: SpawnRequest) -> Result<SpawnResult, Fault> {
        self.ask(format!("preview {}", serde_json::to_string(&request).expect("json")))?;
        Ok(Self::result(None))
    }

    async fn operate(&self, request: Operate) -> Result<Accepted, Fault> {
        let Operate { op, instance, operation_id, with } = request;
        let besides = if with == OperateWith::default() { String::new() } else { format!(" {with:?}") };
        self.ask(format!("{op} {instance:?} {operation_id:?}{besides}"))?;
        self.accept(op, operation_id, json!({}))
    }

    async fn export_instance(&self, instance: &str) -> Result<String, Fault> {
        self.ask(format!("export {instance:?}"))?;
        Ok("{}".to_owned())
    }

    async fn migrate_prepare(&self, request: PrepareRequest) -> Result<Accepted, Fault> {
        let PrepareRequest { document, flavor, allow_type_change, evacuate, live, operation_id } = request;
        if live {
            self.ask(format!("live-prepare {document:?} {operation_id:?}"))?;
            return self.accept(OpKind::LivePrepare, operation_id, json!({ "document": sample::pairs() }));
        }
        self.ask(format!(
            "migrate-prepare {document:?} {flavor:?} {allow_type_change} {evacuate} {operation_id:?}"
        ))?;
        self.accept(OpKind::MigratePrepare, operation_id, json!({}))
    }

    async fn live_check_source(&self, instance: &str) -> Result<String, Fault> {
        self.ask(format!("live-check-source {instance:?}"))?;
        Ok("{}".to_owned())
    }

    async fn live_check_target(&self, document: &str) -> Result<LiveCheckView, Fault> {
        self.ask(format!("live-check-target {document:?}"))?;
        Ok(sample::live_check())
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Accepted, Fault> {
        self.ask(format!("claim {}", serde_json::to_string(&request).expect("json")))?;
        self.accept(OpKind::Claim, request.operation_id, json!({ "devices": [sample::claim()] }))
    }

    async fn request_for_domain(&self, domain: &str, flavor: Option<&str>) -> Result<Vec<MdevUuid>, Fault> {
        self.ask(format!("request {domain:?} {flavor:?}"))?;
        Ok(vec![sample::claim().uuid])
    }

    async fn hook(&self, call: HookCall) -> Result<String, Fault> {
        let HookCall { name, operation, sub_operation, extra, domain_xml } = call;
        if domain_xml.contains("<!-- hang -->") {
            std::future::pending::<()>().await;
        }
        // A daemon that takes its time, within any budget that a test gives it.
        if domain_xml.contains("<!-- slow -->") {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
        self.ask(format!("hook {name:?} {operation} {sub_operation} {extra} {domain_xml:?}"))?;
        Ok(domain_xml.replace("before", "after"))
    }

    async fn render_domain(
        &self,
        instance: &str,
        domain_xml: &str,
        display: DisplayWish,
    ) -> Result<String, Fault> {
        self.ask(format!("render {instance:?} {} {display:?}", domain_xml.len()))?;
        Ok(format!("<!-- rendered -->{domain_xml}"))
    }

    async fn devices(&self) -> Result<Vec<DeviceView>, Fault> {
        self.ask("devices".to_owned())?;
        Ok(self.world().devices.clone())
    }

    async fn inventory(&self) -> Result<Vec<InventoryRecord>, Fault> {
        self.ask("inventory".to_owned())?;
        Ok(self.world().inventory.clone())
    }

    async fn instances(&self) -> Result<Vec<InstanceView>, Fault> {
        self.ask("instances".to_owned())?;
        Ok(self.world().instances.clone())
    }

    async fn jobs(&self) -> Result<Vec<Job>, Fault> {
        self.ask("jobs".to_owned())?;
        Ok(self.world().jobs.clone())
    }

    async fn job(&self, id: JobId) -> Result<Job, Fault> {
        let job = self.world().jobs.iter().find(|job| job.id == id).cloned();
        job.ok_or_else(|| Fault::new(FaultKind::NoSuchJob, format!("there is no job {id}")))
    }

    async fn status(&self) -> Result<StatusView, Fault> {
        self.ask("status".to_owned())?;
        Ok(self.world().status.clone())
    }

    async fn reconcile(&self, dry_run: bool) -> Result<Vec<ReconcileView>, Fault> {
        self.ask(format!("reconcile {dry_run}"))?;
        Ok(sample::differences(dry_run))
    }

    async fn reload(&self) -> Result<Vec<Finding>, Fault> {
        self.ask("reload".to_owned())?;
        Ok(self.world().findings.clone())
    }

    async fn config_text(&self) -> Result<String, Fault> {
        self.ask("config".to_owned())?;
        Ok(sample::CONFIG.to_owned())
    }

    async fn traits(&self) -> Result<Vec<TraitView>, Fault> {
        self.ask("traits".to_owned())?;
        Ok(sample::traits())
    }

    async fn trait_lock(&self) -> Result<LockView, Fault> {
        self.ask("trait lock".to_owned())?;
        Ok(sample::lock())
    }

    async fn trait_check(&self) -> Result<TraitCheck, Fault> {
        self.ask("trait check".to_owned())?;
        Ok(sample::trait_check())
    }

    async fn trait_accept(&self, request: AcceptRequest) -> Result<Vec<TraitView>, Fault> {
        self.ask(format!("accept {}", serde_json::to_string(&request).expect("json")))?;
        Ok(sample::traits())
    }

    async fn trait_export(&self) -> Result<String, Fault> {
        self.ask("trait export".to_owned())?;
        Ok("{\"version\": 1}\n".to_owned())
    }

    async fn plan(&self, config: Option<String>) -> Result<PlanView, Fault> {
        self.ask(format!("plan {config:?}"))?;
        Ok(sample::plan())
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }
}
