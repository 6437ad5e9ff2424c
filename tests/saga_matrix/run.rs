//! One run of an operation: a host, a daemon that can die anywhere, and the judgement at the end.
//!
//! The daemon lives in a runtime of its own and dies with it: every task is dropped where it waits, as a process that
//! is killed stops between two system calls. The clock is paused, so that bounded waits cost nothing and a run that
//! would hang ends at once.

use std::collections::BTreeSet;
use std::time::Duration;

use mdevirt::model::{Job, JobId, OpKind, SagaState};
use mdevirt::saga::{Action, FailPoints, Script};
use mdevirt::service::api::UseCases;
use tokio::runtime::{Builder, Runtime};
use uuid::Uuid;

use crate::case::{Case, Given};
use crate::world::picture::Picture;
use crate::world::{World, next, scenario};

/// Of the paused clock: longer than any bounded wait of the product.
const HANG: Duration = Duration::from_secs(3600);

/// What an undisturbed run of a case does.
#[derive(Debug)]
pub struct Course {
    pub case: Case,
    pub points: Vec<String>,
    /// `spawn.make_device.0`, one per step.
    pub steps: Vec<String>,
    /// Step after which there is no way back.
    pub point_of_no_return: Option<usize>,
    /// The summary at the end.
    after: Vec<String>,
}

impl Course {
    pub fn of(case: Case) -> Self {
        let run = Run::of(case, "undisturbed", |_| ());
        let script = run.script();
        let steps = (0..script.steps.len()).map(|n| format!("{}.{}", script.op, script.key(n))).collect();
        let (points, point_of_no_return) = (script.points(), script.point_of_no_return);
        let (job, end) = run.at_rest();
        assert_eq!((job.state, end.odds(&BTreeSet::new())), (SagaState::Done, vec![]), "{case:?}");
        Self { case, points, steps, point_of_no_return, after: end.summary() }
    }

    /// Points on the way forward.
    pub fn forward(&self) -> Vec<String> {
        self.points.iter().filter(|point| !point.ends_with("_undo")).cloned().collect()
    }

    pub fn undo(&self) -> Vec<String> {
        self.points.iter().filter(|point| point.ends_with("_undo")).cloned().collect()
    }

    /// The step that a point belongs to.
    pub fn step_of(&self, point: &str) -> usize {
        self.steps.iter().position(|step| point.starts_with(&format!("{step}."))).unwrap()
    }

    /// It writes the books and calls nobody.
    pub fn is_record(step: &str) -> bool {
        step.contains(".record")
    }

    /// The last step that can be undone, or is the point of no return.
    pub fn last_undone(&self) -> usize {
        self.point_of_no_return.unwrap_or(self.steps.len().saturating_sub(1))
    }

    pub fn is_past_return(&self, step: usize) -> bool {
        self.point_of_no_return.is_some_and(|point| step > point)
    }
}

/// See the head of the file.
pub struct Run {
    case: Case,
    what: String,
    world: Option<World>,
    life: Option<Runtime>,
    pub before: Picture,
    pub job: JobId,
    /// UUIDs of what is not ours.
    pub others: BTreeSet<Uuid>,
}

impl Run {
    /// Begins the operation on a host made for it.
    pub fn of(case: Case, what: &str, arm: impl FnOnce(&FailPoints)) -> Self {
        let life = life();
        let (world, before, job) = life.block_on(async {
            let world = fresh(case).await;
            let before = picture(&world).await;
            arm(&world.points);
            let job = case.begin(&world).await.unwrap().job;
            (world, before, job)
        });
        let what = format!("{case:?}: {what}");
        Self { case, what, world: Some(world), life: Some(life), before, job, others: BTreeSet::new() }
    }

    /// Begins it and lets it go on up to this point.
    pub fn up_to(case: Case, what: &str, point: &str, arm: impl FnOnce(&FailPoints)) -> Self {
        let run = Self::of(case, &format!("{what}, at {point}"), |points| {
            arm(points);
            points.arm(point, Action::Pause, Some(1));
        });
        run.reach(point);
        run
    }

    pub fn world(&self) -> &World {
        self.world.as_ref().unwrap()
    }

    /// Does something in the daemon's runtime, while its tasks go on.
    pub fn on<T>(&self, work: impl AsyncFnOnce(&World) -> T) -> T {
        let work = async { tokio::time::timeout(HANG, work(self.world())).await };
        let done = self.life.as_ref().unwrap().block_on(work);
        done.unwrap_or_else(|_| panic!("{} hangs", self.what))
    }

    pub fn script(&self) -> Script {
        self.world().script_of(self.job)
    }

    /// Waits until the operation is at the point.
    pub fn reach(&self, point: &str) {
        assert!(self.comes_to(point), "{} never comes to {point}", self.what);
    }

    /// Waits until the operation is at the point, or at its end.
    pub fn comes_to(&self, point: &str) -> bool {
        self.on(async |world| {
            tokio::select! {
                biased;
                () = world.points.reached(point) => true,
                () = world.quiet() => false,
            }
        })
    }

    pub fn release(&self, point: &str) {
        self.world().points.release(point);
    }

    /// The daemon dies where it is, and the next one starts.
    pub fn crash(&mut self, arm: impl FnOnce(&FailPoints)) {
        let remains = self.world.take().unwrap().fall();
        drop(self.life.take());
        let life = life();
        self.world = Some(life.block_on(remains.rise(arm)));
        self.life = Some(life);
    }

    /// Waits until the job waits for the host; false if it ends before.
    pub fn waits(&self) -> bool {
        self.on(async |world| {
            let mut changes = world.service().changes();
            while world.service().jobs_running() > 0 {
                let job = world.service().job(self.job).await.unwrap();
                if job.step.contains("waiting") {
                    return true;
                }
                next(&mut changes).await;
            }
            false
        })
    }

    /// Returns once every task waits for something: only then does the paused clock move.
    pub fn idle(&self) {
        self.on(async |_| tokio::time::sleep(Duration::from_millis(1)).await);
    }

    /// The end of all that is under way.
    pub fn rest(&self) {
        self.on(async |world| world.quiet().await);
        self.idle();
    }

    /// How it is then.
    pub fn at_rest(&self) -> (Job, Picture) {
        self.rest();
        self.on(async |world| (world.service().job(self.job).await.unwrap(), picture(world).await))
    }

    /// Lets it come to its end, which has to be one of these, and judges it.
    pub fn settles(&self, course: &Course, allowed: &[SagaState]) -> SagaState {
        let (job, end) = self.at_rest();
        let what = &self.what;
        assert!(allowed.contains(&job.state), "{what}: {} {:?}", job.state, job.result);
        match job.state {
            SagaState::Done => {
                assert_eq!(end.odds(&self.others), [""; 0], "{what}");
                assert_eq!(end.summary(), course.after, "{what}");
            }
            SagaState::Failed => self.assert_undone(course, &end),
            SagaState::Stuck => self.give_back(),
            SagaState::Running | SagaState::Unwinding => panic!("{what}: it is left open"),
        }
        job.state
    }

    /// Lets it come to its end, which has to be a failure, and gives back what it left.
    pub fn fails_and_is_given_back(&self) {
        let (job, _) = self.at_rest();
        // A guest does not get back a device that somebody removed.
        let stuck = self.case.op == OpKind::Detach && job.state == SagaState::Stuck;
        assert!(stuck || job.state == SagaState::Failed, "{}: {:?}", self.what, job.result);
        self.give_back();
    }

    /// As if it had never begun, row by row.
    fn assert_undone(&self, course: &Course, end: &Picture) {
        let what = &self.what;
        if self.case.given == Given::Lost {
            // A device that was made again stays: it belongs to the instance.
            return assert_eq!(lost(&end.summary()), lost(&self.before.summary()), "{what}");
        }
        assert_eq!(end.odds(&self.others), [""; 0], "{what}");
        // A stop that fails may have stopped all the same; nothing is lost by it.
        let stopped = self.case.op == OpKind::Stop && end.summary() == course.after;
        let stopped =
            stopped || (self.case.op == OpKind::Reboot && end.summary() == off(&self.before.summary()));
        if !stopped {
            assert_eq!(end.summary(), self.before.summary(), "{what}");
            assert_eq!(end, &self.before, "{what}");
        }
    }

    /// What a stuck operation left is given back by destroy or release.
    pub fn give_back(&self) {
        let what = &self.what;
        self.on(async |world| {
            world.sim.heal();
            world.done(self.case.give_back(world).await).await;
        });
        let (_, end) = self.at_rest();
        assert_eq!(end.odds(&self.others), [""; 0], "{what}");
        assert_eq!((end.books.instances().len(), end.books.claims().len()), (0, 0), "{what}");
        if self.case.given != Given::Keep {
            assert_eq!(end.books.own_devices().len(), 0, "{what}");
        }
    }
}

/// The summary as if the guest were off.
fn off(summary: &[String]) -> Vec<String> {
    summary.iter().map(|line| line.replace("Some(true)", "Some(false)").replace("InUse", "Parked")).collect()
}

/// The same without what tells a lost device from one that was made again.
fn lost(summary: &[String]) -> Vec<String> {
    let same = |line: &String| line.replace("active true", "active false").replace("Missing", "Parked");
    off(summary).iter().map(same).collect()
}

/// A host of its own, where the operation can begin.
pub async fn fresh(case: Case) -> World {
    let world = World::of(&scenario("two-m60.xml"), &case.config(), "").await;
    case.prepare(&world).await;
    world
}

pub fn life() -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

pub async fn picture(world: &World) -> Picture {
    Picture::of(&world.service().store, &*world.sim, &*world.sim).await
}
