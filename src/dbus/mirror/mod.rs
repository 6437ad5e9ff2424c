//! What the service knows, mirrored to objects and signals.
//!
//! Two tasks, each with its own receiver of [`Change`]s: one for the books (jobs and instances), one for the hardware,
//! so that a slow look at the hardware never holds up the end of a job. Within the books the order is the service's.
//! A change only says what to look at again; when changes were missed, everything is looked at again.

mod host;
mod instances;
mod jobs;
mod ledger;

pub use host::HostMirror;
pub use instances::InstanceMirror;
pub use jobs::JobMirror;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::broadcast::{Receiver, error::RecvError};
use zbus::object_server::{Interface, SignalEmitter};
use zbus::{Connection, ObjectPath, OwnedObjectPath, Variant, fdo};

use crate::model::Fault;
use crate::service::api::Change;

/// Why the bus does not show what the service knows; told in the log, and mended by the next change.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// The service does not say.
    #[error(transparent)]
    Service(#[from] Fault),
    /// The bus is lost.
    #[error(transparent)]
    Bus(#[from] zbus::Error),
    /// A property cannot be read.
    #[error(transparent)]
    Property(#[from] fdo::Error),
}

type Outcome<T> = Result<T, MirrorError>;

/// Follows jobs and instances until the service is gone.
pub(super) async fn books(
    jobs: Arc<JobMirror>,
    mut instances: InstanceMirror,
    mut changes: Receiver<Change>,
) {
    loop {
        let outcome = match changes.recv().await {
            Ok(Change::JobNew(id)) => jobs.began(id).await,
            Ok(Change::JobChanged(id)) => jobs.changed(id).await,
            Ok(Change::JobRemoved { id, result }) => jobs.ended(id, &result).await,
            Ok(Change::Claim(uuid)) => instances.changed(uuid).await,
            Ok(Change::Inventory | Change::Status | Change::Drift { .. }) => Ok(()),
            Err(RecvError::Lagged(_)) => instances.look_again().await.and(jobs.look_again().await),
            Err(RecvError::Closed) => return,
        };
        if let Err(err) = outcome {
            tracing::warn!(%err, "cannot mirror the books to the bus");
        }
    }
}

async fn add<I: Interface>(connection: &Connection, path: OwnedObjectPath, object: I) -> zbus::Result<()> {
    // One that is there already stays; who mirrors it knows and updates it.
    connection.object_server().at(path, object).await.map(drop)
}

async fn remove<I: Interface>(connection: &Connection, path: OwnedObjectPath) -> zbus::Result<()> {
    connection.object_server().remove::<I, _>(path).await.map(drop)
}

/// Changes an object and sends one `PropertiesChanged` for all properties that moved.
async fn update<I: Interface>(
    connection: &Connection,
    path: &OwnedObjectPath,
    change: impl FnOnce(&I),
) -> zbus::Result<()> {
    let server = connection.object_server();
    let object = server.interface::<_, I>(path.as_ref()).await?;
    let emitter = object.signal_emitter();
    let held = object.get().await;
    let before = held.get_all(server, connection, None, emitter).await?;
    change(&held);
    let after = held.get_all(server, connection, None, emitter).await?;
    let mut changed = HashMap::new();
    for (name, value) in after.iter().filter(|(name, value)| before.get(*name) != Some(*value)) {
        changed.insert(name.as_str(), Variant::try_from(value)?);
    }
    if changed.is_empty() {
        return Ok(());
    }
    fdo::Properties::properties_changed(emitter, I::name(), changed, Cow::Borrowed(&[])).await
}

/// Signals of the manager come from here.
fn manager(connection: &Connection) -> SignalEmitter<'static> {
    let root = ObjectPath::from_static_str_unchecked(super::path::ROOT);
    SignalEmitter::from_parts(connection.clone(), root)
}
