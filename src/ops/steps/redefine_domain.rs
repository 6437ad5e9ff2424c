//! Put another definition in the place of the domain's own; its undo puts the old one back.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{find_domain, not_ours};
use crate::model::{Fault, FaultKind};
use crate::ops::{Found, Host, Params, step_error};
use crate::saga::{Seen, Step, StepError};

/// See the head of the file.
#[derive(Debug)]
pub struct RedefineDomain {
    host: Host,
    params: Params,
}

impl RedefineDomain {
    /// The step from the `old_xml` of these parameters to their `domain_xml`.
    pub fn new(host: &Host, params: &Params) -> Self {
        Self { host: host.clone(), params: params.clone() }
    }

    async fn define(&self, xml: Option<&String>) -> Result<(), StepError> {
        let what = format!("define domain {:?}", self.params.name);
        let refuse = |why: String| {
            StepError::Fault(Fault::new(
                FaultKind::HostRefused,
                format!("{what}: {why}; nothing was changed"),
            ))
        };
        match find_domain(&self.host, &self.params).await? {
            Found::Other(domain) => return Err(refuse(not_ours(&domain))),
            Found::Absent => return Err(refuse(format!("libvirt has no domain {}", self.params.instance))),
            Found::Ours(_) => {}
        }
        let xml = xml.ok_or_else(|| refuse("no definition was kept".to_owned()))?;
        self.host.hypervisor.define(xml).await.map_err(|e| step_error(&what, &e))
    }
}

#[async_trait]
impl Step for RedefineDomain {
    fn name(&self) -> &'static str {
        "redefine_domain"
    }

    /// libvirt writes a definition anew in its own words, so that it is not told apart from another one: both ways may be
    /// gone again.
    async fn seen(&self) -> Result<Seen, StepError> {
        Ok(match find_domain(&self.host, &self.params).await? {
            Found::Absent => Seen::Absent,
            Found::Ours(_) => Seen::Partial,
            Found::Other(domain) => Seen::Foreign(not_ours(&domain)),
        })
    }

    async fn run(&self) -> Result<Value, StepError> {
        self.define(self.params.domain_xml.as_ref()).await?;
        Ok(json!({ "domain": self.params.instance }))
    }

    async fn undo(&self, _out: Option<&Value>) -> Result<(), StepError> {
        self.define(self.params.old_xml.as_ref()).await
    }
}
