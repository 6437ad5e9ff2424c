//! Remove the domain with its definition; from then on its claims are on their way out.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{claims, find_domain};
use crate::model::ClaimEvent;
use crate::ops::{Found, Host, Params, step_error};
use crate::saga::{Seen, Step, StepError};
use crate::store::Change;

/// See the head of the file.
#[derive(Debug)]
pub struct UndefineDomain {
    host: Host,
    params: Params,
}

impl UndefineDomain {
    /// The step for the domain of these parameters.
    pub fn new(host: &Host, params: &Params) -> Self {
        Self { host: host.clone(), params: params.clone() }
    }

    fn out(&self) -> Value {
        json!({ "undefined": self.params.instance })
    }
}

#[async_trait]
impl Step for UndefineDomain {
    fn name(&self) -> &'static str {
        "undefine_domain"
    }

    async fn seen(&self) -> Result<Seen, StepError> {
        Ok(match find_domain(&self.host, &self.params).await? {
            Found::Ours(_) => Seen::Absent,
            Found::Absent | Found::Other(_) => Seen::Done(self.out()),
        })
    }

    async fn run(&self) -> Result<Value, StepError> {
        let what = format!("undefine domain {:?}", self.params.name);
        if self.seen().await? == Seen::Absent {
            let Params { instance, .. } = self.params;
            self.host.hypervisor.undefine(instance).await.map_err(|e| step_error(&what, &e))?;
            // One that was started again meanwhile lives on without a definition, with devices that are not its any more.
            self.host.hypervisor.stop(instance).await.map_err(|e| step_error(&what, &e))?;
        }
        Ok(self.out())
    }

    /// Only used past the point of no return.
    async fn undo(&self, _out: Option<&Value>) -> Result<(), StepError> {
        Ok(())
    }

    fn done_changes(&self, _out: &Value) -> Vec<Change> {
        claims(&self.params.devices, ClaimEvent::Release)
    }
}
