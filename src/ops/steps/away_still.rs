//! Make sure that a guest which was expected has not come. It changes nothing.

use async_trait::async_trait;
use serde_json::Value;

use super::find_domain;
use crate::model::{Fault, FaultKind};
use crate::ops::{Found, Host, Params};
use crate::saga::{Seen, Step, StepError};

/// See the head of the file.
#[derive(Debug)]
pub struct AwayStill {
    host: Host,
    params: Params,
}

impl AwayStill {
    /// The step for the domain of these parameters.
    pub fn new(host: &Host, params: &Params) -> Self {
        Self { host: host.clone(), params: params.clone() }
    }
}

#[async_trait]
impl Step for AwayStill {
    fn name(&self) -> &'static str {
        "away_still"
    }

    async fn seen(&self) -> Result<Seen, StepError> {
        Ok(match find_domain(&self.host, &self.params).await? {
            Found::Absent | Found::Other(_) => Seen::Done(Value::Null),
            Found::Ours(_) => Seen::Absent,
        })
    }

    async fn run(&self) -> Result<Value, StepError> {
        match find_domain(&self.host, &self.params).await? {
            Found::Absent | Found::Other(_) => Ok(Value::Null),
            Found::Ours(domain) => {
                let text = format!("domain {:?} has come, or is on its way: it is not given up", domain.name);
                Err(StepError::Fault(Fault::new(FaultKind::InstanceBusy, text)))
            }
        }
    }

    async fn undo(&self, _out: Option<&Value>) -> Result<(), StepError> {
        Ok(())
    }
}
