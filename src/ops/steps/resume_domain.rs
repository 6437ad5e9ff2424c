//! Go on with the saved memory of a guest. Its undo saves it again, so that nothing of the guest is lost.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{claims, find_domain, not_ours};
use crate::model::{ClaimEvent, Fault, FaultKind};
use crate::ops::{Found, Host, Params, step_error};
use crate::saga::{Seen, Step, StepError};
use crate::store::Change;

/// See the head of the file.
#[derive(Debug)]
pub struct ResumeDomain {
    host: Host,
    params: Params,
}

impl ResumeDomain {
    /// The step for the domain of these parameters.
    pub fn new(host: &Host, params: &Params) -> Self {
        Self { host: host.clone(), params: params.clone() }
    }

    fn refuse(&self, why: &str) -> StepError {
        let text = format!("resume domain {:?}: {why}", self.params.name);
        StepError::Fault(Fault::new(FaultKind::HostRefused, text))
    }
}

#[async_trait]
impl Step for ResumeDomain {
    fn name(&self) -> &'static str {
        "resume_domain"
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
        let what = format!("resume domain {name:?}");
        match find_domain(&self.host, &self.params).await? {
            Found::Ours(domain) if domain.running => return Ok(json!({ "running": instance })),
            Found::Ours(_) => {}
            Found::Absent => return Err(self.refuse("libvirt has no such domain; destroy the instance")),
            Found::Other(domain) => return Err(self.refuse(&not_ours(&domain))),
        }
        let saved = self.host.hypervisor.is_saved(*instance).await;
        if !saved.map_err(|e| StepError::Unknown(format!("{what}: {e}")))? {
            return Err(self.refuse("there is no saved memory; use start"));
        }
        self.host.hypervisor.start(*instance).await.map_err(|e| step_error(&what, &e))?;
        Ok(json!({ "running": instance }))
    }

    async fn undo(&self, _out: Option<&Value>) -> Result<(), StepError> {
        let running = matches!(find_domain(&self.host, &self.params).await?, Found::Ours(d) if d.running);
        if !running {
            return Ok(());
        }
        let what = format!("save domain {:?} again", self.params.name);
        self.host.hypervisor.save(self.params.instance).await.map_err(|e| step_error(&what, &e))
    }

    fn done_changes(&self, _out: &Value) -> Vec<Change> {
        claims(&self.params.devices, ClaimEvent::Started)
    }

    fn undone_changes(&self) -> Vec<Change> {
        claims(&self.params.devices, ClaimEvent::Stopped)
    }
}
