//! Start the domain; from then on its claims are in use. A suspended guest is left to resume, which knows its devices.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{claims, find_domain, not_ours};
use crate::host::Domain;
use crate::model::{ClaimEvent, Fault, FaultKind};
use crate::ops::{DevicePlan, Found, Host, Params, step_error};
use crate::saga::{Seen, Step, StepError};
use crate::store::Change;
use crate::xml::domain::DomainDoc;

/// See the head of the file.
#[derive(Debug)]
pub struct StartDomain {
    host: Host,
    params: Params,
    books: bool,
}

impl StartDomain {
    /// The step for the domain of these parameters.
    pub fn new(host: &Host, params: &Params) -> Self {
        Self { host: host.clone(), params: params.clone(), books: true }
    }

    /// The step of an operation whose last one books what the guest has: when all is undone, the claims of the side that it
    /// did not get to are as they were.
    pub fn unbooked(host: &Host, params: &Params) -> Self {
        Self { books: false, ..Self::new(host, params) }
    }

    /// Whether a guest that runs was started by somebody else on the side that the operation has just left.
    fn is_on_other_side(&self, domain: &Domain) -> Result<bool, StepError> {
        if self.params.old_xml.is_none() {
            return Ok(false);
        }
        let doc = DomainDoc::parse(&domain.xml)
            .map_err(|e| StepError::Unknown(format!("read domain {}: {e}", domain.uuid)))?;
        let has = |device: &DevicePlan| doc.mdev(device.claim.uuid).is_some();
        Ok(self.params.others.iter().any(has) || !self.params.devices.iter().all(has))
    }

    fn changes(&self, event: ClaimEvent) -> Vec<Change> {
        if self.books { claims(&self.params.devices, event) } else { Vec::new() }
    }
}

#[async_trait]
impl Step for StartDomain {
    fn name(&self) -> &'static str {
        "start_domain"
    }

    async fn seen(&self) -> Result<Seen, StepError> {
        Ok(match find_domain(&self.host, &self.params).await? {
            Found::Ours(domain) if domain.running && self.is_on_other_side(&domain)? => Seen::Partial,
            Found::Ours(domain) if domain.running => Seen::Done(json!({ "running": domain.uuid })),
            Found::Ours(_) | Found::Absent => Seen::Absent,
            Found::Other(domain) => Seen::Foreign(not_ours(&domain)),
        })
    }

    async fn run(&self) -> Result<Value, StepError> {
        let Params { instance, name, .. } = &self.params;
        let what = format!("start domain {name:?}");
        let refuse =
            |why: String| Err(StepError::Fault(Fault::new(FaultKind::HostRefused, format!("{what}: {why}"))));
        let lost = |why: String| refuse(format!("{why}; define it again, or destroy the instance"));
        match find_domain(&self.host, &self.params).await? {
            Found::Ours(domain) if domain.running && self.is_on_other_side(&domain)? => {
                self.host.hypervisor.stop(*instance).await.map_err(|e| step_error(&what, &e))?;
            }
            Found::Ours(domain) if domain.running => return Ok(json!({ "running": instance })),
            Found::Ours(_) => {}
            Found::Absent => return lost(format!("libvirt has no domain with UUID {instance}")),
            Found::Other(domain) => return lost(not_ours(&domain)),
        }
        let saved = self.host.hypervisor.is_saved(*instance).await;
        if saved.map_err(|e| StepError::Unknown(format!("{what}: {e}")))? {
            return refuse("it is suspended; use resume".to_owned());
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
        self.changes(ClaimEvent::Started)
    }

    fn undone_changes(&self) -> Vec<Change> {
        self.changes(ClaimEvent::Stopped)
    }
}
