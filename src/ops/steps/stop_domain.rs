//! Stop the domain at once; its devices stay booked.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::claims;
use crate::model::ClaimEvent;
use crate::ops::{Host, Params, step_error};
use crate::saga::{Seen, Step, StepError};
use crate::store::Change;

/// See the head of the file.
#[derive(Debug)]
pub struct StopDomain {
    host: Host,
    params: Params,
}

impl StopDomain {
    /// The step for the domain of these parameters.
    pub fn new(host: &Host, params: &Params) -> Self {
        Self { host: host.clone(), params: params.clone() }
    }
}

#[async_trait]
impl Step for StopDomain {
    fn name(&self) -> &'static str {
        "stop_domain"
    }

    async fn seen(&self) -> Result<Seen, StepError> {
        let Params { instance, name, .. } = &self.params;
        let found = self.host.hypervisor.domain(*instance).await;
        match found.map_err(|e| StepError::Unknown(format!("look for domain {name:?} ({instance}): {e}")))? {
            Some(domain) if domain.running => Ok(Seen::Absent),
            Some(_) | None => Ok(Seen::Done(json!({ "stopped": instance }))),
        }
    }

    async fn run(&self) -> Result<Value, StepError> {
        let what = format!("stop domain {:?}", self.params.name);
        self.host.hypervisor.stop(self.params.instance).await.map_err(|e| step_error(&what, &e))?;
        Ok(json!({ "stopped": self.params.instance }))
    }

    /// Nothing is lost by a VM that is off; starting it again is the caller's choice.
    async fn undo(&self, _out: Option<&Value>) -> Result<(), StepError> {
        Ok(())
    }

    fn done_changes(&self, _out: &Value) -> Vec<Change> {
        claims(&self.params.devices, ClaimEvent::Stopped)
    }
}
