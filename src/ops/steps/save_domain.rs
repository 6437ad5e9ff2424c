//! Write the guest's memory to libvirt's image and switch it off. A guest with devices that cannot be saved is left to a
//! second attempt, without them.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{claims, find_domain, not_ours};
use crate::host::{Config, HostError};
use crate::model::{ClaimEvent, Fault, FaultKind};
use crate::ops::{Found, Host, Params, step_error};
use crate::saga::{Seen, Step, StepError};
use crate::store::Change;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// With its devices; that it cannot be is no failure.
    WithDevices,
    /// Without them, if the first attempt left it running.
    Final,
}

/// See the head of the file.
#[derive(Debug)]
pub struct SaveDomain {
    host: Host,
    params: Params,
    attempt: Attempt,
}

impl SaveDomain {
    /// The step for the domain of these parameters.
    pub fn new(host: &Host, params: &Params, attempt: Attempt) -> Self {
        Self { host: host.clone(), params: params.clone(), attempt }
    }

    fn what(&self) -> String {
        format!("save domain {:?}", self.params.name)
    }

    async fn is_saved(&self) -> Result<bool, StepError> {
        let saved = self.host.hypervisor.is_saved(self.params.instance).await;
        saved.map_err(|e| StepError::Unknown(format!("{}: {e}", self.what())))
    }
}

#[async_trait]
impl Step for SaveDomain {
    fn name(&self) -> &'static str {
        match self.attempt {
            Attempt::WithDevices => "save_with_devices",
            Attempt::Final => "save_domain",
        }
    }

    async fn seen(&self) -> Result<Seen, StepError> {
        Ok(match find_domain(&self.host, &self.params).await? {
            Found::Other(domain) => Seen::Foreign(not_ours(&domain)),
            Found::Ours(domain) if domain.running => Seen::Absent,
            Found::Ours(_) if self.is_saved().await? => Seen::Done(json!({ "saved": true })),
            Found::Ours(_) | Found::Absent => Seen::Absent,
        })
    }

    async fn run(&self) -> Result<Value, StepError> {
        let what = self.what();
        match find_domain(&self.host, &self.params).await? {
            Found::Ours(domain) if domain.running => {}
            Found::Ours(_) if self.is_saved().await? => return Ok(json!({ "saved": true })),
            Found::Ours(_) | Found::Absent => {
                let text = format!("{what}: the guest does not run, so there is nothing to save");
                return Err(StepError::Fault(Fault::new(FaultKind::HostRefused, text)));
            }
            Found::Other(domain) => {
                let text = format!("{what}: {}", not_ours(&domain));
                return Err(StepError::Fault(Fault::new(FaultKind::HostRefused, text)));
            }
        }
        match self.host.hypervisor.save(self.params.instance).await {
            Ok(()) => Ok(json!({ "saved": true })),
            Err(HostError::NotSupported(_)) if self.attempt == Attempt::WithDevices => {
                Ok(json!({ "saved": false }))
            }
            Err(err) => Err(step_error(&what, &err)),
        }
    }

    /// The guest goes on where it was, with its devices.
    async fn undo(&self, _out: Option<&Value>) -> Result<(), StepError> {
        let ours = matches!(find_domain(&self.host, &self.params).await?, Found::Ours(d) if !d.running);
        if !ours || !self.is_saved().await? {
            return Ok(());
        }
        let (instance, hypervisor) = (self.params.instance, &self.host.hypervisor);
        let what = format!("resume domain {:?}", self.params.name);
        hypervisor.start(instance).await.map_err(|e| step_error(&what, &e))?;
        // Their own undo may have found it off.
        for hostdev in &self.params.hostdevs {
            let attached = hypervisor.attach(instance, hostdev, Config::Live).await;
            attached.map_err(|e| step_error(&what, &e))?;
        }
        Ok(())
    }

    fn done_changes(&self, out: &Value) -> Vec<Change> {
        match out["saved"].as_bool() {
            Some(true) => claims(&self.params.devices, ClaimEvent::Stopped),
            Some(false) | None => Vec::new(),
        }
    }

    fn undone_changes(&self) -> Vec<Change> {
        claims(&self.params.devices, ClaimEvent::Started)
    }
}
