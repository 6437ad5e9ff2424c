//! A host of files (they outlive a crash), an operation on it, and a house in which the daemon can die.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::model::{ClaimEvent, ClaimState, Fault, FaultKind, JobId, OpKind, SagaRow, SagaState};
use crate::saga::{
    Action, Ending, FailPoints, Interrupted, Observer, Part, Progress, Runner, Script, Seen, Step, StepError,
    Stop, Wake,
};
use crate::store::tests::fixture::{self, claim, device, instance, instance_uuid, job_id};
use crate::store::{Begin, Change, Store};

/// The steps of the operation, and the one after which there is no return.
pub(super) const STEPS: [&str; 5] = ["create_device.0", "create_device.1", "define", "start", "publish"];
pub(super) const POINT: usize = 3;

/// Effects are files.
#[derive(Debug)]
pub(super) struct World {
    dir: PathBuf,
    /// The host cannot be reached.
    pub(super) away: AtomicBool,
    /// Overrides what a look says, once.
    pub(super) next_seen: Mutex<HashMap<String, Seen>>,
    /// Every call, in order.
    pub(super) log: Mutex<Vec<String>>,
}

impl World {
    pub(super) fn new(dir: &Path) -> Self {
        std::fs::create_dir_all(dir).unwrap();
        Self {
            dir: dir.to_owned(),
            away: AtomicBool::new(false),
            next_seen: Mutex::default(),
            log: Mutex::default(),
        }
    }

    pub(super) fn effects(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.dir).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_by_key(|name| STEPS.iter().position(|step| step == name));
        names
    }

    pub(super) fn put(&self, key: &str, owner: &str) {
        std::fs::write(self.dir.join(key), owner).unwrap();
    }

    pub(super) fn count(&self, call: &str) -> usize {
        self.log.lock().unwrap().iter().filter(|line| *line == call).count()
    }

    fn call(&self, what: &str, key: &str) -> Result<(), StepError> {
        self.log.lock().unwrap().push(format!("{what} {key}"));
        if self.away.load(Ordering::Relaxed) {
            return Err(StepError::Unknown("the host is away".into()));
        }
        Ok(())
    }

    fn owner(&self, key: &str) -> Option<String> {
        std::fs::read_to_string(self.dir.join(key)).ok()
    }
}

#[derive(Debug)]
pub(super) struct FakeStep {
    pub(super) world: Arc<World>,
    pub(super) name: &'static str,
    pub(super) part: Option<Part>,
    pub(super) done: Vec<Change>,
    pub(super) undone: Vec<Change>,
}

impl FakeStep {
    fn key(&self) -> String {
        self.part.map_or_else(|| self.name.to_owned(), |part| format!("{}.{}", self.name, part.index))
    }
}

#[async_trait]
impl Step for FakeStep {
    fn name(&self) -> &'static str {
        self.name
    }

    fn part(&self) -> Option<Part> {
        self.part
    }

    async fn seen(&self) -> Result<Seen, StepError> {
        let key = self.key();
        self.world.call("seen", &key)?;
        if let Some(seen) = self.world.next_seen.lock().unwrap().remove(&key) {
            return Ok(seen);
        }
        Ok(match self.world.owner(&key).as_deref() {
            None => Seen::Absent,
            Some("ours") => Seen::Done(json!(key)),
            Some(other) => Seen::Foreign(format!("{key} belongs to {other}")),
        })
    }

    async fn run(&self) -> Result<Value, StepError> {
        let key = self.key();
        self.world.call("run", &key)?;
        match self.world.owner(&key).as_deref() {
            None | Some("ours") => {
                self.world.put(&key, "ours");
                Ok(json!(key))
            }
            Some(_) => Err(Fault::new(FaultKind::HostRefused, format!("{key} is taken")).into()),
        }
    }

    async fn undo(&self, out: Option<&Value>) -> Result<(), StepError> {
        let key = self.key();
        self.world.call("undo", &key)?;
        assert_eq!(out, Some(&json!(key)), "an undo is given what the step returned");
        assert_ne!(self.world.owner(&key).as_deref(), Some("others"), "{key} is not ours");
        let _ = std::fs::remove_file(self.world.dir.join(&key));
        Ok(())
    }

    fn done_changes(&self, out: &Value) -> Vec<Change> {
        assert_eq!(out, &json!(self.key()));
        self.done.clone()
    }

    fn undone_changes(&self) -> Vec<Change> {
        self.undone.clone()
    }
}

fn claim_moves(n: u32, event: ClaimEvent) -> Change {
    Change::Claim { claim: claim(1, n).id, event }
}

/// Two devices, a domain with them, a word about it.
pub(super) fn script(world: &Arc<World>) -> Script {
    let step = |name, part, done, undone| -> Box<dyn Step> {
        Box::new(FakeStep { world: Arc::clone(world), name, part, done, undone })
    };
    let create = |n: u32| {
        let part = Some(Part { index: n, of: 2 });
        let undone = vec![claim_moves(n, ClaimEvent::Uncreated)];
        step("create_device", part, vec![claim_moves(n, ClaimEvent::Created)], undone)
    };
    let started = vec![claim_moves(0, ClaimEvent::Started), claim_moves(1, ClaimEvent::Started)];
    let steps = vec![
        create(0),
        create(1),
        step("define", None, vec![], vec![]),
        step("start", None, started, vec![]),
        step("publish", None, vec![], vec![]),
    ];
    let mut script = Script::new(OpKind::Spawn, 1, steps);
    script.point_of_no_return = Some(POINT);
    script.on_failed = [0, 1].into_iter().flat_map(release).collect();
    script.on_failed.push(Change::InstanceGone(instance_uuid(1)));
    script.result = Box::new(|outs| json!({ "made": outs }));
    script
}

pub(super) fn release(n: u32) -> [Change; 3] {
    let device = device(n);
    [
        claim_moves(n, ClaimEvent::Release),
        Change::ClaimGone(claim(1, n).id),
        Change::DeviceForgotten { uuid: device.uuid, parent: device.parent },
    ]
}

/// Keeps what a job showed.
#[derive(Debug)]
pub(super) struct Recorder(watch::Sender<Vec<Progress>>);

impl Observer for Recorder {
    fn progress(&self, progress: Progress) {
        self.0.send_modify(|all| all.push(progress));
    }
}

impl Recorder {
    pub(super) fn all(&self) -> Vec<Progress> {
        self.0.borrow().clone()
    }

    pub(super) async fn until_waiting(&self) {
        let waits = |all: &Vec<Progress>| all.iter().any(|p| p.step.contains("waiting"));
        self.0.subscribe().wait_for(waits).await.unwrap();
    }
}

/// A daemon's state directory, its store while it lives, and the host.
pub(super) struct House {
    dir: tempfile::TempDir,
    store: Option<Arc<Store>>,
    pub(super) world: Arc<World>,
    pub(super) points: Arc<FailPoints>,
    pub(super) wake: Arc<Wake>,
    pub(super) stop: Arc<Stop>,
    pub(super) seen: Recorder,
}

impl House {
    /// A house with an operation that has just begun.
    pub(super) fn begun() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let house = Self::at(dir);
        house.store().begin(begin()).unwrap();
        house
    }

    pub(super) fn at(dir: tempfile::TempDir) -> Self {
        let world = Arc::new(World::new(&dir.path().join("world")));
        let store = Some(Arc::new(fixture::open(dir.path())));
        Self {
            dir,
            store,
            world,
            points: Arc::default(),
            wake: Arc::default(),
            stop: Arc::default(),
            seen: Recorder(watch::Sender::new(Vec::new())),
        }
    }

    pub(super) fn store(&self) -> &Arc<Store> {
        self.store.as_ref().unwrap()
    }

    pub(super) fn runner(&self) -> Runner {
        Runner::new(
            Arc::clone(self.store()),
            Arc::clone(&self.wake),
            Arc::clone(&self.stop),
            Arc::clone(&self.points),
        )
    }

    pub(super) fn saga(&self) -> SagaRow {
        self.store().saga(job()).unwrap().unwrap()
    }

    pub(super) async fn run(&self) -> Result<Ending, Interrupted> {
        self.runner().run(job(), &script(&self.world), &self.seen).await
    }

    pub(super) async fn resume(&self) -> Result<Ending, Interrupted> {
        self.runner().resume(&self.saga(), &script(&self.world), &self.seen).await
    }

    /// Runs (or resumes) up to a point and dies there. False if it ended before.
    pub(super) async fn die_at(&mut self, point: &str, resume: bool) -> bool {
        self.points.arm(point, Action::Pause, None);
        let work = async { if resume { self.resume().await } else { self.run().await } };
        let died = tokio::select! {
            end = work => { end.unwrap(); false }
            () = self.points.reached(point) => true,
        };
        self.restart();
        died
    }

    /// The daemon is gone without a word, and comes back without fail points.
    pub(super) fn restart(&mut self) {
        self.store = None;
        self.store = Some(Arc::new(fixture::open(self.dir.path())));
        self.points = Arc::default();
    }

    pub(super) fn assert_complete(&self) {
        assert_eq!(self.world.effects(), STEPS.map(str::to_owned));
        assert_eq!(self.saga().state, SagaState::Done);
        assert_eq!(self.saga().result, Some(json!({ "made": STEPS })));
        let books = self.store().books();
        assert!(books.claims().all(|c| c.state == ClaimState::InUse));
        assert_eq!((books.instances().len(), books.claims().len(), books.own_devices().len()), (1, 2, 2));
    }

    pub(super) fn assert_untouched(&self) {
        assert_eq!(self.world.effects(), Vec::<String>::new());
        assert_eq!(self.saga().state, SagaState::Failed);
        assert_eq!(*self.store().books(), crate::store::Books::default());
    }
}

pub(super) fn job() -> JobId {
    job_id(1)
}

pub(super) fn begin() -> Begin {
    Begin {
        instance: Some(instance(1)),
        devices: vec![device(0), device(1)],
        claims: vec![claim(1, 0), claim(1, 1)],
        ..Begin::new(fixture::saga(OpKind::Spawn, 1, 1), STEPS[0])
    }
}
