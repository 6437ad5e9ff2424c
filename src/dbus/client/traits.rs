//! Calls about traits and their lock.

use serde_json::{Map, json};

use super::{Client, list, one, sent};
use crate::model::Fault;
use crate::service::api::{AcceptRequest, LockView, TraitCheck, TraitView};

impl Client {
    /// Every trait.
    ///
    /// # Errors
    /// As [`Client::status`].
    pub async fn traits(&self) -> Result<Vec<TraitView>, Fault> {
        list(self.manager.traits().await)
    }

    /// Has the lock written.
    ///
    /// # Errors
    /// `StoreUnavailable` if the file cannot be written.
    pub async fn trait_lock(&self) -> Result<LockView, Fault> {
        one(self.manager.trait_lock().await)
    }

    /// The host against its lock.
    ///
    /// # Errors
    /// As [`Client::status`].
    pub async fn trait_check(&self) -> Result<TraitCheck, Fault> {
        one(self.manager.trait_check().await)
    }

    /// Takes another identity; the traits afterwards.
    ///
    /// # Errors
    /// The refusal.
    pub async fn trait_accept(&self, request: &AcceptRequest) -> Result<Vec<TraitView>, Fault> {
        let mut options = Map::from_iter([("reason".to_owned(), json!(request.reason))]);
        options.extend(request.parent.as_ref().map(|parent| ("parent".to_owned(), json!(parent))));
        list(self.manager.trait_accept(&request.word, sent(&options)?).await)
    }

    /// The traits of this host as a document.
    ///
    /// # Errors
    /// As [`Client::status`].
    pub async fn trait_export(&self) -> Result<String, Fault> {
        Ok(self.manager.trait_export().await?)
    }
}
