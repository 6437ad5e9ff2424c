//! One connection to the daemon, and carrying an operation out to its end.

use std::convert::Infallible;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::args::{Cli, JobArgs};
use super::table::printable;
use crate::dbus::{Bus, Client};
use crate::model::{Fault, FaultKind, Job, JobId, SagaState};

/// A connection.
#[derive(Debug)]
pub struct Session {
    client: Client,
    patience: Duration,
    progress: bool,
}

/// What became of an operation.
#[derive(Debug)]
pub enum Carried {
    /// It began, and nobody wants to wait.
    Begun(Job),
    /// It ended well.
    Done(Job),
}

impl Session {
    /// Connects as the global options say.
    ///
    /// # Errors
    /// `HostUnreachable` without the bus.
    pub async fn open(cli: &Cli, bus: &Bus) -> Result<Self, Fault> {
        let progress = !cli.global.json && io::stderr().is_terminal();
        Self::connect(bus, Duration::from_secs(cli.global.timeout), progress).await
    }

    /// Connects to a bus.
    ///
    /// # Errors
    /// `HostUnreachable` without the bus.
    pub async fn connect(bus: &Bus, patience: Duration, progress: bool) -> Result<Self, Fault> {
        let client = timeout(patience, Client::connect(bus, patience))
            .await
            .map_err(|_| Fault::new(FaultKind::Timeout, format!("{} does not answer", bus.describe())))??;
        Ok(Self { client, patience, progress })
    }

    /// How long it waits for an answer, and for a job to end.
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// Waits for the job that is begun, which has no id of the caller's.
    pub fn to_its_end() -> JobArgs {
        JobArgs { operation_id: None, no_wait: false }
    }

    /// For calls that read.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Begins an operation and waits for its end.
    ///
    /// # Errors
    /// The refusal, the failure of the job, or `Timeout` or `HostUnreachable` with the job in the details.
    pub async fn carry_out(
        &self,
        how: &JobArgs,
        begin: impl AsyncFnOnce(&Client) -> Result<JobId, Fault>,
    ) -> Result<Carried, Fault> {
        if how.no_wait {
            let id = begin(&self.client).await?;
            return Ok(Carried::Begun(self.client.job(id).await?));
        }
        // Before the call, so that the end cannot fall between the answer and the listening.
        let mut events = self.client.watch().await?;
        let id = begin(&self.client).await?;
        let (seen, progress) = watch::channel(None);
        let waiting = self.client.finished(id, &mut events, |job| drop(seen.send_replace(Some(job.clone()))));
        let job = tokio::select! {
            outcome = timeout(self.patience, waiting) => outcome.unwrap_or_else(|_| Err(self.too_long(id))),
            never = show(progress, self.progress) => match never {},
        };
        if self.progress {
            line("");
        }
        let job = job?;
        match job.state {
            SagaState::Done => Ok(Carried::Done(job)),
            SagaState::Running | SagaState::Unwinding | SagaState::Failed | SagaState::Stuck => {
                Err(failure(&job))
            }
        }
    }

    fn too_long(&self, id: JobId) -> Fault {
        let seconds = self.patience.as_secs();
        let message = format!(
            "job {id} has not ended after {seconds} s and goes on; look with mdevirtctl job show {id}, wait longer with --timeout"
        );
        Fault::new(FaultKind::Timeout, message).with_details(json!({ "job": id }))
    }
}

/// The failure that a job recorded as its result.
fn failure(job: &Job) -> Fault {
    let recorded = job.result.clone().and_then(|result| serde_json::from_value::<Fault>(result).ok());
    recorded.unwrap_or_else(|| {
        let kind = match job.state {
            SagaState::Stuck => FaultKind::OperationStuck,
            SagaState::Running | SagaState::Unwinding | SagaState::Done | SagaState::Failed => {
                FaultKind::Internal
            }
        };
        let message =
            format!("{} of {} ended {} without a reason: job {}", job.op, job.instance, job.state, job.id);
        Fault::new(kind, message)
    })
}

/// From the second second on, the step at work on one line of the terminal.
async fn show(mut seen: watch::Receiver<Option<Job>>, wanted: bool) -> Infallible {
    if wanted {
        sleep(Duration::from_secs(1)).await;
        loop {
            if let Some(job) = seen.borrow_and_update().as_ref() {
                let step = printable(&job.step);
                line(&format!(
                    "{} {}: step {} of {}, {step}",
                    job.op,
                    job.instance,
                    job.steps_done + 1,
                    job.steps_total
                ));
            }
            if seen.changed().await.is_err() {
                break;
            }
        }
    }
    std::future::pending().await
}

fn line(text: &str) {
    let mut err = io::stderr().lock();
    // Progress is a courtesy: if the terminal is gone, so is its reader.
    let _ = write!(err, "\r\x1b[K{text}").and_then(|()| err.flush());
}
