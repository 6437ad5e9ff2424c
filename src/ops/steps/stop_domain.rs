//! Stop the domain at once; its devices stay booked. Where the operation goes on with the guest, the undo starts it again.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{claims, find_domain, not_ours};
use crate::model::{ClaimEvent, Fault, FaultKind};
use crate::ops::{Found, Host, Params, step_error};
use crate::saga::{Seen, Step, StepError};
use crate::store::Change;

/// What becomes of the operation if somebody else's domain has the UUID. It runs on in either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnOther {
    /// It fails.
    Refuse,
    /// There is nothing of ours to stop.
    PassBy,
}

/// See the head of the file.
#[derive(Debug)]
pub struct StopDomain {
    host: Host,
    params: Params,
    on_other: OnOther,
    comes_back: bool,
}

impl StopDomain {
    /// The step for the domain of these parameters.
    pub fn new(host: &Host, params: &Params, on_other: OnOther) -> Self {
        Self { host: host.clone(), params: params.clone(), on_other, comes_back: false }
    }

    /// The step of an operation that goes on with the guest: its undo starts one that ran.
    pub fn in_between(host: &Host, params: &Params) -> Self {
        Self { comes_back: params.ran, ..Self::new(host, params, OnOther::Refuse) }
    }

    fn out(&self) -> Value {
        json!({ "stopped": self.params.instance })
    }
}

#[async_trait]
impl Step for StopDomain {
    fn name(&self) -> &'static str {
        "stop_domain"
    }

    async fn seen(&self) -> Result<Seen, StepError> {
        Ok(match find_domain(&self.host, &self.params).await? {
            Found::Ours(domain) if domain.running => Seen::Absent,
            Found::Other(domain) if self.on_other == OnOther::Refuse => Seen::Foreign(not_ours(&domain)),
            Found::Absent | Found::Ours(_) | Found::Other(_) => Seen::Done(self.out()),
        })
    }

    async fn run(&self) -> Result<Value, StepError> {
        let what = format!("stop domain {:?}", self.params.name);
        match self.seen().await? {
            Seen::Done(out) => return Ok(out),
            Seen::Foreign(why) => {
                return Err(StepError::Fault(Fault::new(FaultKind::HostRefused, format!("{what}: {why}"))));
            }
            Seen::Absent | Seen::Partial => {}
        }
        self.host.hypervisor.stop(self.params.instance).await.map_err(|e| step_error(&what, &e))?;
        Ok(self.out())
    }

    /// Nothing is lost by a VM that is off; where stopping it was the purpose, starting it again is the caller's choice.
    async fn undo(&self, _out: Option<&Value>) -> Result<(), StepError> {
        let off = matches!(find_domain(&self.host, &self.params).await?, Found::Ours(d) if !d.running);
        if !self.comes_back || !off {
            return Ok(());
        }
        let what = format!("start domain {:?} again", self.params.name);
        // Never with another definition, and other devices, where the undo of that one failed.
        if let Some(xml) = &self.params.old_xml {
            self.host.hypervisor.define(xml).await.map_err(|e| step_error(&what, &e))?;
        }
        self.host.hypervisor.start(self.params.instance).await.map_err(|e| step_error(&what, &e))
    }

    fn done_changes(&self, _out: &Value) -> Vec<Change> {
        claims(&self.params.devices, ClaimEvent::Stopped)
    }

    fn undone_changes(&self) -> Vec<Change> {
        if self.comes_back { claims(&self.params.devices, ClaimEvent::Started) } else { Vec::new() }
    }
}
