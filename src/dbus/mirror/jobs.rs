//! Jobs as objects, `JobNew` and `JobRemoved`.

use std::sync::Arc;

use tokio::sync::Mutex;
use zbus::Connection;

use super::ledger::{KEEP_ENDED, Ledger};
use super::{Outcome, add, manager, remove, update};
use crate::dbus::job::JobObject;
use crate::dbus::manager::Manager;
use crate::dbus::path;
use crate::model::{Job, JobId};
use crate::service::api::UseCases;

/// Mirrors the service's jobs.
#[derive(Debug)]
pub struct JobMirror {
    connection: Connection,
    service: Arc<dyn UseCases>,
    ledger: Mutex<Ledger>,
}

impl JobMirror {
    pub(in crate::dbus) fn new(connection: Connection, service: Arc<dyn UseCases>) -> Self {
        Self { connection, service, ledger: Mutex::default() }
    }

    /// Puts the jobs that are there on the bus; before the name is taken, so nobody hears of it.
    pub(in crate::dbus) async fn fill(&self) -> Outcome<()> {
        let jobs = self.service.jobs().await?;
        let (open, ended): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(|job| job.state.is_open());
        let old = ended.len().saturating_sub(KEEP_ENDED);
        let mut ledger = self.ledger.lock().await;
        for job in ended.into_iter().skip(old).chain(open) {
            self.put(&mut ledger, job, false).await?;
        }
        Ok(())
    }

    /// Has the job on the bus. `fresh`: it began with the call at hand, so its begin and its end will be said.
    pub(in crate::dbus) async fn ensure(&self, id: JobId, fresh: bool) {
        let mut ledger = self.ledger.lock().await;
        if let Err(err) = self.look(&mut ledger, id, fresh).await {
            tracing::warn!(job = %id, %err, "cannot show the job on the bus");
        }
    }

    pub(super) async fn began(&self, id: JobId) -> Outcome<()> {
        self.look(&mut *self.ledger.lock().await, id, true).await
    }

    pub(super) async fn changed(&self, id: JobId) -> Outcome<()> {
        let mut ledger = self.ledger.lock().await;
        self.look(&mut ledger, id, true).await?;
        self.refresh(id).await
    }

    pub(super) async fn ended(&self, id: JobId, result: &str) -> Outcome<()> {
        let mut ledger = self.ledger.lock().await;
        self.look(&mut ledger, id, true).await?;
        self.refresh(id).await?;
        if ledger.end(id) {
            let (emitter, path) = (manager(&self.connection), path::of_job(id));
            Manager::job_removed(&emitter, &id.to_string(), path.as_ref(), result).await?;
        }
        self.evict(&mut ledger).await
    }

    /// Changes were missed.
    pub(super) async fn look_again(&self) -> Outcome<()> {
        for job in self.service.jobs().await?.into_iter().filter(|job| job.state.is_open()) {
            self.changed(job.id).await?;
        }
        let open = self.ledger.lock().await.open();
        for id in open {
            let job = self.service.job(id).await?;
            if !job.state.is_open() {
                self.ended(id, job.state.as_str()).await?;
            }
        }
        Ok(())
    }

    async fn refresh(&self, id: JobId) -> Outcome<()> {
        let job = self.service.job(id).await?;
        let path = path::of_job(id);
        Ok(update(&self.connection, &path, |object: &JobObject| object.set(job)).await?)
    }

    async fn look(&self, ledger: &mut Ledger, id: JobId, fresh: bool) -> Outcome<()> {
        if !ledger.has(id) {
            let job = self.service.job(id).await?;
            self.put(ledger, job, fresh).await?;
        }
        if fresh && ledger.begin(id) {
            let (emitter, path) = (manager(&self.connection), path::of_job(id));
            Manager::job_new(&emitter, &id.to_string(), path.as_ref()).await?;
        }
        Ok(())
    }

    /// An old job is shown and its begin is not said; nor is its end, if it has ended.
    async fn put(&self, ledger: &mut Ledger, job: Job, fresh: bool) -> Outcome<()> {
        let (id, open) = (job.id, job.state.is_open());
        add(&self.connection, path::of_job(id), JobObject::new(job)).await?;
        ledger.add(id);
        if !fresh {
            ledger.begin(id);
            if !open {
                ledger.end(id);
            }
        }
        self.evict(ledger).await
    }

    async fn evict(&self, ledger: &mut Ledger) -> Outcome<()> {
        for id in ledger.evict() {
            remove::<JobObject>(&self.connection, path::of_job(id)).await?;
        }
        Ok(())
    }
}
