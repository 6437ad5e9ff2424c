//! Instances as objects, and `ClaimChanged`.

use std::collections::BTreeMap;
use std::sync::Arc;

use zbus::Connection;

use super::{Outcome, add, manager, remove, update};
use crate::dbus::instance::InstanceObject;
use crate::dbus::manager::Manager;
use crate::dbus::path;
use crate::model::InstanceUuid;
use crate::service::api::{InstanceView, UseCases};

/// Mirrors the instances in the books.
#[derive(Debug)]
pub struct InstanceMirror {
    connection: Connection,
    service: Arc<dyn UseCases>,
    shown: BTreeMap<InstanceUuid, InstanceView>,
}

impl InstanceMirror {
    pub(in crate::dbus) fn new(connection: Connection, service: Arc<dyn UseCases>) -> Self {
        Self { connection, service, shown: BTreeMap::new() }
    }

    /// Makes the objects equal to the books; says which instances came, went or changed.
    pub(in crate::dbus) async fn look(&mut self) -> Outcome<Vec<InstanceUuid>> {
        let seen = self.service.instances().await?;
        let seen: BTreeMap<_, _> = seen.into_iter().map(|view| (view.uuid, view)).collect();
        let mut moved: Vec<InstanceUuid> =
            self.shown.keys().filter(|uuid| !seen.contains_key(uuid)).copied().collect();
        for uuid in &moved {
            self.shown.remove(uuid);
            remove::<InstanceObject>(&self.connection, path::of_instance(*uuid)).await?;
        }
        for (uuid, view) in seen {
            let path = path::of_instance(uuid);
            match self.shown.insert(uuid, view.clone()) {
                Some(old) if old == view => continue,
                Some(_) => {
                    update(&self.connection, &path, |object: &InstanceObject| object.set(view)).await?;
                }
                None => add(&self.connection, path, InstanceObject::new(view)).await?,
            }
            moved.push(uuid);
        }
        Ok(moved)
    }

    pub(super) async fn changed(&mut self, uuid: InstanceUuid) -> Outcome<()> {
        // The signal comes even if the books cannot be read: whoever asks then is told why.
        let outcome = self.look().await;
        self.say(uuid).await?;
        outcome.map(drop)
    }

    /// Changes were missed.
    pub(super) async fn look_again(&mut self) -> Outcome<()> {
        for uuid in self.look().await? {
            self.say(uuid).await?;
        }
        Ok(())
    }

    async fn say(&self, uuid: InstanceUuid) -> zbus::Result<()> {
        Manager::claim_changed(&manager(&self.connection), &uuid.to_string()).await
    }
}
