//! A house in which the daemon can die.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::watch;

use super::world::{STEPS, World, script};
use crate::model::{ClaimState, JobId, OpKind, SagaRow, SagaState};
use crate::saga::{Action, Ending, FailPoints, Interrupted, Observer, Progress, Runner, Stop, Wake};
use crate::store::tests::fixture::{self, claim, device, instance, job_id};
use crate::store::{Begin, Store};

/// Keeps what a job showed.
#[derive(Debug)]
pub(super) struct Recorder {
    all: watch::Sender<Vec<Progress>>,
    /// Rings whenever the job waits: a host that always moves.
    pub(super) bell: Option<Arc<Wake>>,
}

impl Observer for Recorder {
    fn progress(&self, progress: Progress) {
        if let Some(bell) = self.bell.as_ref().filter(|_| progress.step.contains("waiting")) {
            bell.ring();
        }
        self.all.send_modify(|all| all.push(progress));
    }
}

impl Recorder {
    pub(super) fn new() -> Self {
        Self { all: watch::Sender::new(Vec::new()), bell: None }
    }

    pub(super) fn all(&self) -> Vec<Progress> {
        self.all.borrow().clone()
    }

    pub(super) async fn until_waiting(&self) {
        let waits = |all: &Vec<Progress>| all.iter().any(|p| p.step.contains("waiting"));
        self.all.subscribe().wait_for(waits).await.unwrap();
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
            seen: Recorder::new(),
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
