//! Runs sagas, fresh and interrupted ones.

use std::sync::Arc;

use serde_json::{Value, json};

use super::failpoint::FailPoints;
use super::observer::Observer;
use super::recover::{self, Plan, Recovery};
use super::script::Script;
use super::signal::{Stop, Wake};
use super::walk::{Halt, Walk};
use crate::model::{Fault, FaultKind, JobId, SagaRow, SagaState};
use crate::store::{Entry, Store, StoreError};

/// How a saga ended; it is on disk.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// All steps are done.
    Done(Value),
    /// A step failed and everything was undone.
    Failed(Fault),
    /// An operator has to look; `details` holds the `cause` and what is `left`.
    Stuck(Fault),
}

/// Why a saga stopped without an end. It stays open, and [`Runner::resume`] goes on with it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Interrupted {
    /// The daemon goes down.
    #[error("the daemon goes down")]
    Stopped,
    /// The store cannot write, or does not take what it should.
    #[error("the journal cannot be kept")]
    Store(#[source] StoreError),
    /// A fail point stood for a store that cannot write.
    #[error("{0}")]
    Injected(String),
}

impl Ending {
    /// The state of the saga.
    pub fn state(&self) -> SagaState {
        match self {
            Self::Done(_) => SagaState::Done,
            Self::Failed(_) => SagaState::Failed,
            Self::Stuck(_) => SagaState::Stuck,
        }
    }

    /// The job's result: the result, or the fault as `{kind, message, details}`.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Done(result) => result.clone(),
            Self::Failed(fault) | Self::Stuck(fault) => {
                json!({ "kind": fault.kind, "message": fault.message, "details": fault.details })
            }
        }
    }

    /// Adds the end to an entry.
    pub(super) fn write(&self, entry: Entry) -> Entry {
        entry.turn(self.state(), Some(self.to_json()))
    }

    /// `left`: labels of the steps that are left, with the failure of their undo.
    pub(super) fn stuck(cause: &Fault, left: &[(String, Option<Fault>)]) -> Self {
        let names: Vec<&str> = left.iter().map(|(label, _)| label.as_str()).collect();
        let message = if left.iter().any(|(_, fault)| fault.is_some()) {
            format!("{}; and could not be undone: {}", cause.message, names.join(", "))
        } else {
            format!("{}; past the point of no return, left to do: {}", cause.message, names.join(", "))
        };
        let left: Vec<Value> =
            left.iter().map(|(label, fault)| json!({ "step": label, "fault": fault })).collect();
        let details = json!({ "cause": cause, "left": left });
        Self::Stuck(Fault::new(FaultKind::OperationStuck, message).with_details(details))
    }
}

/// Carries out scripts.
#[derive(Debug, Clone)]
pub struct Runner {
    store: Arc<Store>,
    pub(super) wake: Arc<Wake>,
    pub(super) stop: Arc<Stop>,
    pub(super) points: Arc<FailPoints>,
}

impl Runner {
    /// A runner on a store; `wake` rings when the host moved, `stop` when the daemon goes down.
    pub fn new(store: Arc<Store>, wake: Arc<Wake>, stop: Arc<Stop>, points: Arc<FailPoints>) -> Self {
        Self { store, wake, stop, points }
    }

    /// Runs a saga that [`Store::begin`] has just begun.
    ///
    /// # Errors
    /// `Interrupted`: the saga stays open.
    pub async fn run(
        &self,
        job: JobId,
        script: &Script,
        observer: &dyn Observer,
    ) -> Result<Ending, Interrupted> {
        let outs = vec![None; script.steps.len()];
        let walk = Walk { runner: self, job, script, observer, outs, state: SagaState::Running };
        settle(walk.forward(0, false).await)
    }

    /// Goes on with an open saga of an earlier daemon, or of a runner that was interrupted.
    ///
    /// # Errors
    /// `Interrupted`: the saga stays open.
    pub async fn resume(
        &self,
        saga: &SagaRow,
        script: &Script,
        observer: &dyn Observer,
    ) -> Result<Ending, Interrupted> {
        let job = saga.id;
        let Recovery { plan, outs } = match self.blocking(move |store| store.events(job)).await {
            Ok(events) => recover::plan(saga, &events, script),
            Err(Interrupted::Store(StoreError::Corrupt(why))) => {
                Recovery { plan: Plan::Corrupt(why), outs: Vec::new() }
            }
            Err(other) => return Err(other),
        };
        tracing::info!(%job, op = %saga.op, ?plan, "resume");
        let walk = Walk { runner: self, job, script, observer, outs, state: saga.state };
        settle(match plan {
            Plan::ContinueAt(index) => walk.start_again(index, false).await,
            Plan::AskSeen(index) => walk.start_again(index, true).await,
            Plan::Finish => walk.forward(script.steps.len(), false).await,
            Plan::UndoFrom { steps, cause } => walk.undo_again(steps, cause).await,
            Plan::Corrupt(why) => walk.give_up(&format!("the journal cannot be followed: {why}")).await,
        })
    }

    /// Ends an open saga as stuck, for example when its script cannot be made any more.
    ///
    /// # Errors
    /// `Interrupted`: the saga stays open.
    pub async fn give_up(&self, job: JobId, why: &str) -> Result<Ending, Interrupted> {
        let message = format!("job {job}: {why}; look at its devices, then destroy or release the instance");
        let ending = Ending::Stuck(Fault::new(FaultKind::OperationStuck, message));
        self.advance(job, ending.write(Entry::new())).await?;
        Ok(ending)
    }

    pub(super) async fn advance(&self, job: JobId, entry: Entry) -> Result<(), Interrupted> {
        self.blocking(move |store| store.advance(job, entry)).await
    }

    /// The store syncs the disk, which must not hold up the other tasks of the runtime.
    async fn blocking<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Interrupted> {
        let store = Arc::clone(&self.store);
        match tokio::task::spawn_blocking(move || call(&store)).await {
            Ok(result) => result.map_err(Interrupted::Store),
            Err(err) => match err.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(Interrupted::Stopped),
            },
        }
    }
}

fn settle(end: Result<Ending, Halt>) -> Result<Ending, Interrupted> {
    match end {
        Ok(ending) | Err(Halt::Ended(ending)) => Ok(ending),
        Err(Halt::Interrupted(why)) => Err(why),
    }
}
