//! Start the domain; from then on its claims are in use.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::claims;
use crate::model::{ClaimEvent, Fault, FaultKind};
use crate::ops::{Host, Params, step_error};
use crate::saga::{Seen, Step, StepError};
use crate::store::Change;

/// See the head of the file.
#[derive(Debug)]
pub struct StartDomain {
    host: Host,
    params: Params,
}

impl StartDomain {
    /// The step for the domain of these parameters.
    pub fn new(host: &Host, params: &Params) -> Self {
        Self { host: host.clone(), params: params.clone() }
    }
}

#[async_trait]
impl Step for StartDomain {
    fn name(&self) -> &'static str {
        "start_domain"
    }

    async fn seen(&self) -> Result<Seen, StepError> {
        let Params { instance, name, .. } = &self.params;
        let found = self.host.hypervisor.domain(*instance).await;
        match found.map_err(|e| StepError::Unknown(format!("look for domain {name:?} ({instance}): {e}")))? {
            Some(domain) if domain.running => Ok(Seen::Done(json!({ "running": instance }))),
            Some(_) | None => Ok(Seen::Absent),
        }
    }

    async fn run(&self) -> Result<Value, StepError> {
        let Params { instance, name, .. } = &self.params;
        let what = format!("start domain {name:?}");
        let domain = self.host.hypervisor.domain(*instance).await.map_err(|e| step_error(&what, &e))?;
        if domain.is_none() {
            let text = format!(
                "{what}: libvirt has no domain with UUID {instance}; define it again, or destroy the instance"
            );
            return Err(StepError::Fault(Fault::new(FaultKind::HostRefused, text)));
        }
        self.host.hypervisor.start(*instance).await.map_err(|e| step_error(&what, &e))?;
        Ok(json!({ "running": instance }))
    }

    async fn undo(&self, _out: Option<&Value>) -> Result<(), StepError> {
        let what = format!("stop domain {:?}", self.params.name);
        self.host.hypervisor.stop(self.params.instance).await.map_err(|e| step_error(&what, &e))
    }

    fn done_changes(&self, _out: &Value) -> Vec<Change> {
        claims(&self.params.devices, ClaimEvent::Started)
    }

    fn undone_changes(&self) -> Vec<Change> {
        claims(&self.params.devices, ClaimEvent::Stopped)
    }
}
