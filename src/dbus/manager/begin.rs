//! How a method of the manager begins a job.

use zbus::OwnedObjectPath;
use zbus::message::Header;

use super::{Manager, Result};
use crate::dbus::json::Record;
use crate::dbus::{options, path};
use crate::model::{Fault, OpKind};
use crate::service::api::Accepted;

impl Manager {
    /// The job is on the bus, and announced, before its path is handed out.
    pub(super) async fn accepted(
        &self,
        accepted: std::result::Result<Accepted, Fault>,
    ) -> Result<OwnedObjectPath> {
        let accepted = accepted?;
        self.jobs.ensure(accepted.job, accepted.fresh).await;
        Ok(path::of_job(accepted.job))
    }

    /// An operation on an instance that is in the books.
    pub(super) async fn verb(
        &self,
        op: OpKind,
        instance: &str,
        options: &Record,
        header: &Header<'_>,
    ) -> Result<OwnedObjectPath> {
        let request = options::operate(op, instance, options)?;
        self.authority.check(header).await?;
        self.accepted(self.service.operate(request).await).await
    }
}
