//! One saga under way: what the way forward and the way back share.

use std::time::Duration;

use serde_json::Value;

use super::failpoint::{Injected, Moment};
use super::observer::{Observer, Progress};
use super::runner::{Ending, Interrupted, Runner};
use super::script::Script;
use super::signal::Ear;
use super::step::{Seen, Step, StepError};
use crate::model::{Fault, FaultKind, JobId, SagaState, StepEvent};
use crate::store::Entry;

/// Least time between two looks of one saga that waits.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Why a walk does not go on.
#[derive(Debug)]
pub(super) enum Halt {
    Interrupted(Interrupted),
    Ended(Ending),
}

impl From<Interrupted> for Halt {
    fn from(why: Interrupted) -> Self {
        Self::Interrupted(why)
    }
}

/// A known outcome.
pub(super) type Outcome<T> = Result<T, Fault>;

pub(super) struct Walk<'a> {
    pub(super) runner: &'a Runner,
    pub(super) job: JobId,
    pub(super) script: &'a Script,
    pub(super) observer: &'a dyn Observer,
    /// What each step returned whose effect is there.
    pub(super) outs: Vec<Option<Value>>,
    pub(super) state: SagaState,
}

impl Walk<'_> {
    pub(super) fn step(&self, index: usize) -> &dyn Step {
        &*self.script.steps[index]
    }

    /// Adds a line about a step.
    pub(super) fn line(&self, entry: Entry, index: usize, event: StepEvent, payload: Option<Value>) -> Entry {
        entry.line(number(index), self.script.key(index), event, payload)
    }

    pub(super) fn check_stop(&self) -> Result<(), Halt> {
        if self.runner.stop.is_stopped() { Err(Interrupted::Stopped.into()) } else { Ok(()) }
    }

    /// Asks until there is an answer.
    pub(super) async fn look(&self, index: usize, ear: &mut Ear) -> Result<Seen, Halt> {
        loop {
            match self.step(index).seen().await {
                Ok(seen) => return Ok(seen),
                // A look that fails, even for sure, says nothing about the effect.
                Err(err) => self.wait(index, &err.to_string(), ear).await?,
            }
        }
    }

    /// Waits until the host moves, and says so in the job.
    pub(super) async fn wait(&self, index: usize, why: &str, ear: &mut Ear) -> Result<(), Halt> {
        tracing::warn!(job = %self.job, step = self.script.key(index), why, "waiting for the host");
        self.report(format!("{}: waiting, {why}", self.script.label(index)), None);
        let ring = async {
            ear.rang().await;
            // A host that comes and goes without an end rings all the time.
            tokio::time::sleep(LOOK_PAUSE).await;
        };
        tokio::select! {
            () = ring => Ok(()),
            () = self.runner.stop.stopped() => Err(Interrupted::Stopped.into()),
        }
    }

    pub(super) async fn point(&self, index: usize, moment: Moment) -> Result<(), StepError> {
        match self.runner.points.hit(self.script.op, &self.script.key(index), moment).await {
            Ok(()) => Ok(()),
            Err(Injected::Error(text)) => Err(Fault::new(FaultKind::Internal, text).into()),
            Err(Injected::Unknown(text)) => Err(StepError::Unknown(text)),
        }
    }

    /// Commits between the two commit points of a step.
    pub(super) async fn commit_step(&self, index: usize, entry: Entry) -> Result<(), Halt> {
        let injected = |err: StepError| Interrupted::Injected(err.to_string());
        self.point(index, Moment::BeforeCommit).await.map_err(injected)?;
        self.commit(entry).await?;
        Ok(self.point(index, Moment::AfterCommit).await.map_err(injected)?)
    }

    /// Commits. A store that is out of order interrupts; books that refuse the entry end the saga as stuck, since
    /// the effect is there and cannot be booked.
    pub(super) async fn commit(&self, entry: Entry) -> Result<(), Halt> {
        match self.runner.advance(self.job, entry).await {
            Ok(()) => Ok(()),
            Err(Interrupted::Store(err)) if !err.is_temporary() => {
                let why = format!("the books refuse the outcome of a step: {}", Fault::from(err).message);
                self.give_up(&why).await.map_or_else(Err, |ending| Err(Halt::Ended(ending)))
            }
            Err(other) => Err(other.into()),
        }
    }

    pub(super) async fn give_up(&self, why: &str) -> Result<Ending, Halt> {
        Ok(self.ended(self.runner.give_up(self.job, why).await?))
    }

    /// Tells the observer of an end that is on disk.
    pub(super) fn ended(&self, ending: Ending) -> Ending {
        tracing::info!(job = %self.job, op = %self.script.op, state = %ending.state(), "ended");
        self.report(String::new(), Some(&ending));
        ending
    }

    pub(super) fn report(&self, step: String, ending: Option<&Ending>) {
        self.observer.progress(Progress {
            job: self.job,
            state: ending.map_or(self.state, Ending::state),
            steps_done: number(self.outs.iter().flatten().count()),
            steps_total: number(self.script.steps.len()),
            step,
            result: ending.map(Ending::to_json),
        });
    }
}

/// Step numbers in the journal; no script comes near the bound.
pub(super) fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
