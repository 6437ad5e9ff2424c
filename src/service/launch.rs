//! From a saga row to a running job: write the journal's first line, run the steps beside everything else, tell listeners.

use std::time::Duration;

use super::Service;
use super::api::{Accepted, Change};
use crate::model::{Fault, FaultKind, JobId, OpKind, SagaRow, SagaState};
use crate::ops::{Params, VERSION, script};
use crate::saga::{Ending, Interrupted, Observer, Progress, Script};
use crate::store::{Begin, StoreError};

/// How often sagas that wait look again while a job runs; an idle daemon has no timer.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

impl Service {
    /// A saga of ours that has not begun.
    pub(super) fn new_saga(
        &self,
        op: OpKind,
        params: &Params,
        operation_id: Option<String>,
        request_digest: String,
    ) -> SagaRow {
        SagaRow {
            id: JobId(self.ids.fresh()),
            op,
            version: VERSION,
            instance: params.instance,
            state: SagaState::Running,
            operation_id,
            request_digest,
            params: serde_json::to_value(params).unwrap_or_default(),
            result: None,
            created_usec: self.clock.now_usec(),
        }
    }

    /// Writes the beginning and starts the job. A repeat that came at the same moment gets the job that won.
    pub(super) fn launch(&self, saga: SagaRow, with: impl FnOnce(Begin) -> Begin) -> Result<Accepted, Fault> {
        if self.goes_down() {
            return Err(Fault::new(
                FaultKind::ShuttingDown,
                "the daemon is going down; ask again when it is back",
            ));
        }
        let script = script(&self.host, &saga)?;
        let row = saga.clone();
        match self.store.begin(with(Begin::new(saga, script.key(0)))) {
            Ok(()) => {}
            Err(StoreError::OperationRepeated { job, same_request: true }) => {
                return Ok(Accepted { job, fresh: false });
            }
            Err(err) => return Err(err.into()),
        }
        self.jobs.note(beginning(&row, &script));
        self.tell(Change::JobNew(row.id));
        self.tell(Change::Claim(row.instance));
        let service = self.clone();
        let accepted = Accepted { job: row.id, fresh: true };
        tokio::spawn(async move { service.drive(row, script, false).await });
        Ok(accepted)
    }

    /// Runs a saga to its end, or until the daemon stops. A store that cannot write now is tried again.
    pub(super) async fn drive(self, row: SagaRow, script: Script, mut resume: bool) {
        tracing::info!(job = %row.id, op = %row.op, instance = %row.instance, resume, "operation begins");
        let ending = loop {
            let ending = tokio::select! {
                ending = self.walk(&row, &script, resume) => ending,
                () = self.keep_looking() => return,
                () = self.show_sending(row.id, row.instance), if row.op == OpKind::LiveCommit => return,
            };
            match ending {
                Err(Interrupted::Store(err)) if err.is_temporary() && !self.goes_down() => {
                    tracing::error!(job = %row.id, "operation waits for the state database: {err}");
                    self.tell(Change::Status);
                    tokio::time::sleep(LOOK_AGAIN).await;
                    resume = true;
                }
                ending => break ending,
            }
        };
        // What its domain did meanwhile was left to the operation, which may not have seen it. While libvirt waits for it, the
        // domain cannot be looked at, and what it did has an event.
        let in_kernel = row.params.get("in_kernel").is_some_and(|flag| flag.as_bool() == Some(true));
        if ending.is_ok() && !in_kernel {
            self.catch_up(Some(row.instance)).await;
        }
        self.jobs.end(row.id);
        if let Ok(ending) = &ending {
            self.after_operation(&row, ending).await;
        }
        match ending {
            Ok(ending) => self.ended(&row, &ending),
            Err(Interrupted::Stopped) => tracing::info!(job = %row.id, "operation left to the next start"),
            Err(err) => {
                tracing::error!(job = %row.id, op = %row.op, instance = %row.instance, "operation interrupted: {err:?}");
                self.tell(Change::Status);
            }
        }
    }

    async fn walk(&self, row: &SagaRow, script: &Script, resume: bool) -> Result<Ending, Interrupted> {
        if !resume {
            return self.runner.run(row.id, script, self).await;
        }
        // The state may have turned since the row was read.
        let now = self.store.saga(row.id).map_err(Interrupted::Store)?;
        self.runner.resume(now.as_ref().unwrap_or(row), script, self).await
    }

    /// Some changes of the host have no event (an answer that was lost): while a job runs, waiting sagas look again.
    async fn keep_looking(&self) {
        loop {
            tokio::time::sleep(LOOK_AGAIN).await;
            self.wake.ring();
        }
    }

    fn ended(&self, row: &SagaRow, ending: &Ending) {
        match ending {
            Ending::Done(_) => {
                tracing::info!(job = %row.id, op = %row.op, instance = %row.instance, "operation done");
            }
            Ending::Failed(fault) => {
                tracing::error!(job = %row.id, op = %row.op, instance = %row.instance, kind = %fault.kind, "operation failed, all undone: {fault}");
            }
            Ending::Stuck(fault) => {
                tracing::error!(job = %row.id, op = %row.op, instance = %row.instance, "operation stuck: {fault}");
            }
        }
        self.tell(Change::Claim(row.instance));
        self.tell(Change::Inventory);
        self.tell(Change::JobRemoved { id: row.id, result: ending.state().as_str().to_owned() });
    }
}

/// How a job looks before its first step.
pub(super) fn beginning(row: &SagaRow, script: &Script) -> Progress {
    let steps_total = u32::try_from(script.steps.len()).unwrap_or(u32::MAX);
    Progress {
        job: row.id,
        state: row.state,
        steps_done: 0,
        steps_total,
        step: script.label(0),
        result: None,
    }
}

impl Observer for Service {
    fn progress(&self, progress: Progress) {
        let id = progress.job;
        self.jobs.note(progress);
        self.tell(Change::JobChanged(id));
    }
}
