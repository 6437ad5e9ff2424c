//! Define the domain with our host devices in it.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{find_domain, not_ours};
use crate::model::{Fault, FaultKind};
use crate::ops::{Found, Host, Params, step_error};
use crate::saga::{Seen, Step, StepError};

/// See the head of the file.
#[derive(Debug)]
pub struct DefineDomain {
    host: Host,
    params: Params,
    xml: String,
}

impl DefineDomain {
    /// The step for the domain of these parameters.
    pub fn new(host: &Host, params: &Params) -> Self {
        let xml = params.domain_xml.clone().unwrap_or_default();
        Self { host: host.clone(), params: params.clone(), xml }
    }

    async fn look(&self) -> Result<Seen, StepError> {
        Ok(match find_domain(&self.host, &self.params).await? {
            Found::Absent => Seen::Absent,
            Found::Ours(_) => Seen::Done(json!({ "domain": self.params.instance })),
            Found::Other(domain) => Seen::Foreign(not_ours(&domain)),
        })
    }
}

#[async_trait]
impl Step for DefineDomain {
    fn name(&self) -> &'static str {
        "define_domain"
    }

    async fn seen(&self) -> Result<Seen, StepError> {
        self.look().await
    }

    async fn run(&self) -> Result<Value, StepError> {
        let what = format!("define domain {:?}", self.params.name);
        match self.look().await? {
            Seen::Done(out) => return Ok(out),
            Seen::Foreign(why) => {
                return Err(StepError::Fault(Fault::new(
                    FaultKind::InstanceExists,
                    format!("{what}: {why}"),
                )));
            }
            Seen::Absent | Seen::Partial => {}
        }
        self.host.hypervisor.define(&self.xml).await.map_err(|e| step_error(&what, &e))?;
        Ok(json!({ "domain": self.params.instance }))
    }

    async fn undo(&self, _out: Option<&Value>) -> Result<(), StepError> {
        // Only a domain that carries our devices is the one we defined.
        if !matches!(self.look().await?, Seen::Done(_)) {
            return Ok(());
        }
        let what = format!("undefine domain {:?}", self.params.name);
        self.host.hypervisor.undefine(self.params.instance).await.map_err(|e| step_error(&what, &e))
    }
}
