//! Parents as objects, the manager's properties, and `InventoryChanged`.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use zbus::{Connection, OwnedObjectPath};

use super::{Outcome, add, manager, remove, update};
use crate::dbus::health::Health;
use crate::dbus::json::clean;
use crate::dbus::manager::Manager;
use crate::dbus::parent::ParentObject;
use crate::dbus::path;
use crate::model::ParentAddr;
use crate::service::api::{Change, DeviceView, UseCases};

/// How many changes are taken together, so that a burst costs one look at the hardware.
const BATCH: usize = 256;

/// Mirrors parents and health.
#[derive(Debug)]
pub struct HostMirror {
    connection: Connection,
    service: Arc<dyn UseCases>,
    health: Arc<Health>,
    shown: BTreeMap<ParentAddr, DeviceView>,
}

/// What a batch of changes asks to be looked at.
#[derive(Debug, Default)]
struct Todo {
    inventory: bool,
    status: bool,
    /// What to signal: word, parent, text.
    drifts: Vec<(String, ParentAddr, String)>,
}

impl Todo {
    /// Changes were missed. A drift among them is not signalled, but status and inventory have it.
    fn everything(&mut self) {
        (self.inventory, self.status) = (true, true);
    }

    fn add(&mut self, change: &Change) {
        match change {
            Change::Inventory => self.inventory = true,
            Change::Status => self.status = true,
            Change::Drift { word, parent, was, now } => {
                let text = format!("{word} on {parent} was {was}, and is {now} now");
                self.drifts.push((word.text.clone(), parent.clone(), text));
            }
            Change::Claim(_) | Change::JobNew(_) | Change::JobChanged(_) | Change::JobRemoved { .. } => {}
        }
    }

    /// Waits for a change and takes those that came with it; `None` when the service is gone.
    async fn next(changes: &mut Receiver<Change>) -> Option<Self> {
        let mut todo = Self::default();
        match changes.recv().await {
            Ok(change) => todo.add(&change),
            Err(RecvError::Lagged(_)) => todo.everything(),
            Err(RecvError::Closed) => return None,
        }
        for _ in 0..BATCH {
            match changes.try_recv() {
                Ok(change) => todo.add(&change),
                Err(TryRecvError::Lagged(_)) => todo.everything(),
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        Some(todo)
    }
}

impl HostMirror {
    pub(in crate::dbus) fn new(
        connection: Connection,
        service: Arc<dyn UseCases>,
        health: Arc<Health>,
    ) -> Self {
        Self { connection, service, health, shown: BTreeMap::new() }
    }

    /// Follows the service until it is gone.
    pub(in crate::dbus) async fn run(mut self, mut changes: Receiver<Change>) {
        while let Some(todo) = Todo::next(&mut changes).await {
            if let Err(err) = self.follow(todo).await {
                tracing::warn!(%err, "cannot mirror the host to the bus");
            }
        }
    }

    async fn follow(&mut self, todo: Todo) -> Outcome<()> {
        for (word, parent, text) in todo.drifts {
            let parent = clean(&parent.to_string());
            Manager::drift_detected(&manager(&self.connection), &clean(&word), &parent, &clean(&text))
                .await?;
        }
        if todo.status {
            self.look_at_health().await?;
        }
        if todo.inventory {
            // The signal comes even if the host cannot be read: whoever asks then is told why.
            let outcome = self.look_at_parents().await;
            Manager::inventory_changed(&manager(&self.connection)).await?;
            outcome?;
        }
        Ok(())
    }

    pub(in crate::dbus) async fn look_at_health(&self) -> Outcome<()> {
        let status = self.service.status().await?;
        let root = OwnedObjectPath::from(manager(&self.connection).path().to_owned());
        Ok(update(&self.connection, &root, |_: &Manager| self.health.set(&status)).await?)
    }

    pub(in crate::dbus) async fn look_at_parents(&mut self) -> Outcome<()> {
        let seen = self.service.devices().await?;
        let seen: BTreeMap<_, _> = seen.into_iter().map(|view| (view.address.clone(), view)).collect();
        let gone: Vec<ParentAddr> =
            self.shown.keys().filter(|addr| !seen.contains_key(*addr)).cloned().collect();
        for addr in gone {
            self.shown.remove(&addr);
            remove::<ParentObject>(&self.connection, path::of_parent(&addr)).await?;
        }
        for (addr, view) in seen {
            let path = path::of_parent(&addr);
            match self.shown.insert(addr, view.clone()) {
                Some(old) if old == view => {}
                Some(_) => update(&self.connection, &path, |object: &ParentObject| object.set(view)).await?,
                None => add(&self.connection, path, ParentObject::new(view)).await?,
            }
        }
        Ok(())
    }
}
