//! Moves of an instance to another host.

use serde_json::{Map, Value, json};

use super::{Client, accepted, one, operation, sent};
use crate::model::{Fault, JobId};
use crate::service::api::{LiveCheckView, PrepareRequest};

impl Client {
    /// The document of an instance for another host.
    ///
    /// # Errors
    /// The refusal.
    pub async fn export_instance(&self, instance: &str) -> Result<String, Fault> {
        Ok(self.manager.instance_export(instance).await?)
    }

    /// The document of a guest that can go to another host while it runs.
    ///
    /// # Errors
    /// The refusal.
    pub async fn live_check_source(&self, instance: &str) -> Result<String, Fault> {
        Ok(self.manager.live_check_source(instance).await?)
    }

    /// What the target would do for that document.
    ///
    /// # Errors
    /// The refusal.
    pub async fn live_check_target(&self, document: &str) -> Result<LiveCheckView, Fault> {
        let options: Map<String, Value> = [("document".to_owned(), json!(document))].into_iter().collect();
        one(self.manager.live_check_target(sent(&options)?).await)
    }

    /// Begins the target's side of a migration.
    ///
    /// # Errors
    /// The refusal.
    pub async fn migrate_prepare(&self, request: &PrepareRequest) -> Result<JobId, Fault> {
        let mut options = operation(request.operation_id.as_deref());
        options.insert("document".to_owned(), json!(request.document));
        if request.live {
            return accepted(self.manager.live_prepare(sent(&options)?).await);
        }
        options.insert("allow_type_change".to_owned(), json!(request.allow_type_change));
        options.insert("evacuate".to_owned(), json!(request.evacuate));
        options.extend(request.flavor.as_ref().map(|flavor| ("flavor".to_owned(), json!(flavor))));
        accepted(self.manager.migrate_prepare(sent(&options)?).await)
    }
}
