//! Start the domain; from then on its claims are in use.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{claims, find_domain, not_ours};
use crate::model::{ClaimEvent, Fault, FaultKind};
use crate::ops::{Found, Host, Params, step_error};
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
        Ok(match find_domain(&self.host, &self.params).await? {
            Found::Ours(domain) if domain.running => Seen::Done(json!({ "running": domain.uuid })),
            Found::Ours(_) | Found::Absent => Seen::Absent,
            Found::Other(domain) => Seen::Foreign(not_ours(&domain)),
        })
    }

    async fn run(&self) -> Result<Value, StepError> {
        let Params { instance, name, .. } = &self.params;
        let what = format!("start domain {name:?}");
        let why = match find_domain(&self.host, &self.params).await? {
            Found::Ours(_) => None,
            Found::Absent => Some(format!("libvirt has no domain with UUID {instance}")),
            Found::Other(domain) => Some(not_ours(&domain)),
        };
        if let Some(why) = why {
            let text = format!("{what}: {why}; define it again, or destroy the instance");
            return Err(StepError::Fault(Fault::new(FaultKind::HostRefused, text)));
        }
        self.host.hypervisor.start(*instance).await.map_err(|e| step_error(&what, &e))?;
        Ok(json!({ "running": instance }))
    }

    async fn undo(&self, _out: Option<&Value>) -> Result<(), StepError> {
        if !matches!(find_domain(&self.host, &self.params).await?, Found::Ours(_)) {
            return Ok(());
        }
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
