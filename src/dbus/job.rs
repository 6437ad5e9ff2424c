//! `org.mdevirt1.Job`: one operation under way or ended.

use std::sync::{Mutex, PoisonError};

use super::json::{self, Record, clean};
use crate::model::Job;

/// One job on the bus.
#[derive(Debug)]
pub struct JobObject {
    seen: Mutex<Job>,
}

impl JobObject {
    pub(super) fn new(job: Job) -> Self {
        Self { seen: Mutex::new(job) }
    }

    pub(super) fn set(&self, job: Job) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = job;
    }

    fn get<T>(&self, pick: impl FnOnce(&Job) -> T) -> T {
        pick(&self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Properties. Only `State`, `Step`, `StepsDone` and `Result` change.
#[zbus::interface(
    name = "org.mdevirt1.Job",
    introspection_docs = false,
    proxy(default_service = "org.mdevirt1", async_name = "JobProxy")
)]
impl JobObject {
    /// Its id, also the end of its path.
    #[zbus(property(emits_changed_signal = "const"))]
    fn id(&self) -> String {
        self.get(|job| job.id.to_string())
    }

    /// `spawn`, `destroy`, `start`, `stop`, `claim`, `release`.
    #[zbus(property(emits_changed_signal = "const"))]
    fn operation(&self) -> String {
        self.get(|job| job.op.to_string())
    }

    /// UUID of the instance it works on.
    #[zbus(property(emits_changed_signal = "const"))]
    fn instance(&self) -> String {
        self.get(|job| job.instance.to_string())
    }

    /// `running`, `unwinding`, `done`, `failed`, `stuck`.
    #[zbus(property)]
    fn state(&self) -> String {
        self.get(|job| job.state.to_string())
    }

    /// The step at work, for people.
    #[zbus(property)]
    fn step(&self) -> String {
        self.get(|job| clean(&job.step))
    }

    /// Steps done so far.
    #[zbus(property)]
    fn steps_done(&self) -> u32 {
        self.get(|job| job.steps_done)
    }

    /// Steps in all.
    #[zbus(property)]
    fn steps_total(&self) -> u32 {
        self.get(|job| job.steps_total)
    }

    /// Empty until it has ended; then the result, or `kind`, `message` and `details` of the failure.
    #[zbus(property)]
    fn result(&self) -> zbus::fdo::Result<Record> {
        let result = self.get(|job| job.result.clone());
        match result {
            None | Some(serde_json::Value::Null) => Ok(Record::new()),
            Some(value) => json::to_record(&value).map_err(|err| zbus::fdo::Error::Failed(err.to_string())),
        }
    }

    /// When it began, in microseconds since the Unix epoch.
    #[zbus(property(emits_changed_signal = "const"))]
    fn created_usec(&self) -> u64 {
        self.get(|job| u64::try_from(job.created_usec).unwrap_or_default())
    }
}
