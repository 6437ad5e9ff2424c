//! The daemon's side: objects first, the name last, then two tasks that follow the service.

use std::sync::Arc;

use tokio::task::JoinHandle;
use zbus::fdo::{ObjectManager, RequestNameFlags};
use zbus::{Connection, ObjectPath};

use super::authority::Authority;
use super::health::Health;
use super::manager::Manager;
use super::mirror::{self, HostMirror, InstanceMirror, JobMirror};
use super::{NAME, path};
use crate::service::api::UseCases;

/// Why the daemon is not on the bus.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another process has the name.
    #[error("{NAME} is taken on this bus: another mdevirtd runs")]
    NameTaken,
    /// The bus is lost or refuses.
    #[error("serve {NAME}")]
    Bus(#[from] zbus::Error),
}

/// A daemon on the bus, until it is dropped or stopped.
#[derive(Debug)]
pub struct Server {
    connection: Connection,
    tasks: Vec<JoinHandle<()>>,
}

/// Serves the use cases on a connection. A host or a store that cannot be read now is shown when it can be.
///
/// # Errors
/// The name is taken, or the bus fails.
pub async fn serve(
    connection: Connection,
    service: Arc<dyn UseCases>,
    authority: Arc<dyn Authority>,
) -> Result<Server, ServeError> {
    // Before anything is looked at, so that no change falls between the look and the listening.
    let (book_changes, host_changes) = (service.changes(), service.changes());
    let health = Arc::new(Health::default());
    let jobs = Arc::new(JobMirror::new(connection.clone(), service.clone()));
    let mut instances = InstanceMirror::new(connection.clone(), service.clone());
    let mut host = HostMirror::new(connection.clone(), service.clone(), health.clone());

    let root = ObjectPath::from_static_str_unchecked(path::ROOT);
    let server = connection.object_server();
    server.at(&root, ObjectManager).await?;
    server.at(&root, Manager::new(service, authority, jobs.clone(), health)).await?;
    let looks = [
        jobs.fill().await,
        instances.look().await.map(drop),
        host.look_at_health().await,
        host.look_at_parents().await,
    ];
    for err in looks.into_iter().filter_map(Result::err) {
        tracing::warn!(%err, "not all objects are on the bus yet");
    }

    // No replacing in either direction: two daemons with one state directory must not meet.
    let flags = RequestNameFlags::DO_NOT_QUEUE;
    match connection.request_name_with_flags(NAME, flags).await {
        Ok(_) => {}
        Err(zbus::Error::NameTaken) => return Err(ServeError::NameTaken),
        Err(err) => return Err(err.into()),
    }
    let tasks = vec![
        tokio::spawn(mirror::books(jobs, instances, book_changes)),
        tokio::spawn(host.run(host_changes)),
    ];
    Ok(Server { connection, tasks })
}

impl Server {
    /// Returns when the bus has gone.
    pub async fn closed(&self) {
        self.connection.closed().await;
    }

    /// Gives the name back; calls that came before are still answered while the connection lives.
    ///
    /// # Errors
    /// The bus is lost.
    pub async fn stop(self) -> Result<(), ServeError> {
        self.connection.release_name(NAME).await?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}
