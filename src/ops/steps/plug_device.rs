//! One host device into a domain or out of it, in what it runs with or in its definition.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{find_domain, not_ours};
use crate::host::{Config, HostdevXml};
use crate::model::{Fault, FaultKind};
use crate::ops::{DevicePlan, Found, Host, Params, step_error};
use crate::saga::{Part, Seen, Step, StepError};
use crate::xml::domain::DomainDoc;

/// Which way the device goes; the undo is the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Into the domain.
    In,
    /// Out of it.
    Out,
}

/// See the head of the file.
#[derive(Debug)]
pub struct PlugDevice {
    host: Host,
    params: Params,
    part: Part,
    device: DevicePlan,
    config: Config,
    way: Way,
}

impl PlugDevice {
    /// The step for one device of these parameters.
    pub fn new(
        host: &Host,
        params: &Params,
        (part, device): (Part, &DevicePlan),
        (config, way): (Config, Way),
    ) -> Self {
        Self { host: host.clone(), params: params.clone(), part, device: device.clone(), config, way }
    }

    fn hostdev(&self) -> Result<&HostdevXml, StepError> {
        let found = self.params.hostdevs.iter().find(|h| h.uuid == self.device.claim.uuid);
        let missing = || {
            let text = format!("the journal has no <hostdev> for {}", self.device.claim.uuid);
            StepError::Fault(Fault::new(FaultKind::Internal, text))
        };
        found.ok_or_else(missing)
    }

    /// Whether the configuration names the device; `None` if there is no such configuration.
    async fn is_in(&self) -> Result<Result<Option<bool>, String>, StepError> {
        let xml = match find_domain(&self.host, &self.params).await? {
            Found::Other(domain) => return Ok(Err(not_ours(&domain))),
            Found::Absent => return Ok(Ok(None)),
            Found::Ours(domain) if self.config == Config::Live => domain.running.then_some(domain.xml),
            Found::Ours(domain) => {
                let definition = self.host.hypervisor.definition(domain.uuid).await;
                definition.map_err(|e| StepError::Unknown(format!("read domain {}: {e}", domain.uuid)))?
            }
        };
        let Some(xml) = xml else { return Ok(Ok(None)) };
        let doc = DomainDoc::parse(&xml)
            .map_err(|e| StepError::Unknown(format!("read domain {}: {e}", self.params.instance)))?;
        Ok(Ok(Some(doc.mdev(self.device.claim.uuid).is_some())))
    }

    async fn carry(&self, way: Way) -> Result<(), StepError> {
        let (uuid, hostdev) = (self.params.instance, self.hostdev()?);
        let device = &self.device.claim;
        let hypervisor = &self.host.hypervisor;
        match way {
            Way::In => {
                let what = format!("attach {} {} to {:?}", device.type_name, device.uuid, self.params.name);
                hypervisor.attach(uuid, hostdev, self.config).await.map_err(|e| step_error(&what, &e))
            }
            Way::Out => {
                let what = format!("detach {} {} from {:?}", device.type_name, device.uuid, self.params.name);
                hypervisor.detach(uuid, hostdev, self.config).await.map_err(|e| step_error(&what, &e))
            }
        }
    }

    /// libvirt appends what is attached: only the definition as it was has the device in its old place.
    async fn put_back(&self) -> Result<(), StepError> {
        match &self.params.old_xml {
            Some(xml) if self.config == Config::Definition => {
                let what = format!("define domain {:?}", self.params.name);
                self.host.hypervisor.define(xml).await.map_err(|e| step_error(&what, &e))
            }
            _ => self.carry(Way::In).await,
        }
    }

    fn out(&self) -> Value {
        json!({ "plugged": self.way == Way::In, "device": self.device.claim.uuid })
    }
}

#[async_trait]
impl Step for PlugDevice {
    fn name(&self) -> &'static str {
        match (self.way, self.config) {
            (Way::In, Config::Live) => "attach_live",
            (Way::In, Config::Definition) => "attach_definition",
            (Way::Out, Config::Live) => "detach_live",
            (Way::Out, Config::Definition) => "detach_definition",
        }
    }

    fn part(&self) -> Option<Part> {
        Some(self.part)
    }

    async fn seen(&self) -> Result<Seen, StepError> {
        Ok(match self.is_in().await? {
            Err(why) => Seen::Foreign(why),
            // A domain that does not run has nothing to be changed.
            Ok(None) => Seen::Done(self.out()),
            Ok(Some(there)) if there == (self.way == Way::In) => Seen::Done(self.out()),
            Ok(Some(_)) => Seen::Absent,
        })
    }

    async fn run(&self) -> Result<Value, StepError> {
        match self.seen().await? {
            Seen::Done(out) => return Ok(out),
            Seen::Foreign(why) => return Err(StepError::Fault(Fault::new(FaultKind::HostRefused, why))),
            Seen::Absent | Seen::Partial => {}
        }
        self.carry(self.way).await?;
        Ok(self.out())
    }

    async fn undo(&self, _out: Option<&Value>) -> Result<(), StepError> {
        match (self.is_in().await?, self.way) {
            (Ok(Some(true)), Way::In) => self.carry(Way::Out).await,
            (Ok(Some(false)), Way::Out) => self.put_back().await,
            (Ok(Some(_) | None) | Err(_), Way::In | Way::Out) => Ok(()),
        }
    }
}
