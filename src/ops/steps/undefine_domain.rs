//! Remove the domain's definition; from then on its claims are on their way out.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::claims;
use crate::model::ClaimEvent;
use crate::ops::{Host, Params, step_error};
use crate::saga::{Seen, Step, StepError};
use crate::store::Change;

/// See the head of the file.
#[derive(Debug)]
pub struct UndefineDomain {
    host: Host,
    params: Params,
}

impl UndefineDomain {
    /// The step for the domain of these parameters.
    pub fn new(host: &Host, params: &Params) -> Self {
        Self { host: host.clone(), params: params.clone() }
    }
}

#[async_trait]
impl Step for UndefineDomain {
    fn name(&self) -> &'static str {
        "undefine_domain"
    }

    async fn seen(&self) -> Result<Seen, StepError> {
        let Params { instance, name, .. } = &self.params;
        let found = self.host.hypervisor.domain(*instance).await;
        let found =
            found.map_err(|e| StepError::Unknown(format!("look for domain {name:?} ({instance}): {e}")))?;
        Ok(found.map_or_else(|| Seen::Done(json!({ "undefined": instance })), |_| Seen::Absent))
    }

    async fn run(&self) -> Result<Value, StepError> {
        let what = format!("undefine domain {:?}", self.params.name);
        self.host.hypervisor.undefine(self.params.instance).await.map_err(|e| step_error(&what, &e))?;
        Ok(json!({ "undefined": self.params.instance }))
    }

    /// Only used past the point of no return.
    async fn undo(&self, _out: Option<&Value>) -> Result<(), StepError> {
        Ok(())
    }

    fn done_changes(&self, _out: &Value) -> Vec<Change> {
        claims(&self.params.devices, ClaimEvent::Release)
    }
}
