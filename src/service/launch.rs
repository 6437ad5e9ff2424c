//! From a saga row to a running job: write the journal's first line, run the steps beside everything else, tell listeners.

use super::Service;
use super::api::{Accepted, Change};
use crate::model::{Fault, FaultKind, JobId, OpKind, SagaRow, SagaState};
use crate::ops::{Params, VERSION, script};
use crate::saga::{Observer, Outcome, Script};
use crate::store::{Begin, StoreError};

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
    pub(super) fn launch(
        &self,
        saga: SagaRow,
        with: impl FnOnce(Begin) -> Begin,
    ) -> Result<Accepted, Fault> {
        if self.stopping() {
            return Err(Fault::new(FaultKind::ShuttingDown, "the daemon is going down; ask again when it is back"));
        }
        let script = script(&self.host, &saga)?;
        let row = saga.clone();
        match self.store.begin(with(Begin::new(saga, script.first_step()))) {
            Ok(()) => {}
            Err(StoreError::OperationRepeated { job, same_request: true }) => return Ok(Accepted { job, fresh: false }),
            Err(err) => return Err(err.into()),
        }
        self.jobs.begin(row.id, script.step_count());
        self.tell(Change::JobNew(row.id));
        self.tell(Change::Claim(row.instance));
        let service = self.clone();
        let accepted = Accepted { job: row.id, fresh: true };
        tokio::spawn(async move { service.drive(row, script, false).await });
        Ok(accepted)
    }

    /// Runs a saga to its end, or until the daemon stops.
    pub(super) async fn drive(self, row: SagaRow, script: Script, resume: bool) {
        let observer = JobObserver { service: self.clone(), id: row.id };
        tracing::info!(job = %row.id, op = %row.op, instance = %row.instance, resume, "operation begins");
        let outcome = if resume {
            self.runner.resume(&row, script, &observer).await
        } else {
            self.runner.run(&row, script, &observer).await
        };
        match outcome {
            Ok(Outcome::Ended(state)) => self.ended(&row, state),
            Ok(Outcome::Stopped) => tracing::info!(job = %row.id, "operation left to the next start"),
            Err(err) => {
                tracing::error!(job = %row.id, op = %row.op, instance = %row.instance, "operation cannot go on: {err}");
                self.jobs.end(row.id);
                self.tell(Change::Status);
            }
        }
    }

    fn ended(&self, row: &SagaRow, state: SagaState) {
        match state {
            SagaState::Done => tracing::info!(job = %row.id, op = %row.op, instance = %row.instance, "operation done"),
            SagaState::Failed | SagaState::Stuck | SagaState::Running | SagaState::Unwinding => {
                let why = self.store.saga(row.id).ok().flatten().and_then(|r| r.result).unwrap_or_default();
                tracing::error!(job = %row.id, op = %row.op, instance = %row.instance, %why, "operation {state}");
            }
        }
        self.jobs.end(row.id);
        self.tell(Change::Claim(row.instance));
        self.tell(Change::Inventory);
        self.tell(Change::JobRemoved { id: row.id, result: state.as_str().to_owned() });
    }
}

struct JobObserver {
    service: Service,
    id: JobId,
}

impl Observer for JobObserver {
    fn progress(&self, steps_done: u32, step: &str) {
        self.service.jobs.update(self.id, steps_done, step);
        self.service.tell(Change::JobChanged(self.id));
    }
}
