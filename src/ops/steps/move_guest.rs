//! Send the running guest to another host. libvirt does it, and goes on with it if this daemon dies.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{find_domain, not_ours};
use crate::host::Whereabouts;
use crate::model::{Fault, FaultKind};
use crate::ops::{Found, Host, Params, step_error};
use crate::saga::{Seen, Step, StepError};

/// See the head of the file.
#[derive(Debug)]
pub struct MoveGuest {
    host: Host,
    params: Params,
}

impl MoveGuest {
    /// The step for the domain of these parameters.
    pub fn new(host: &Host, params: &Params) -> Self {
        Self { host: host.clone(), params: params.clone() }
    }

    fn what(&self) -> String {
        let to = self.params.moving.as_ref().and_then(|m| m.baggage.peer.as_deref());
        format!("migrate domain {:?} to {}", self.params.name, to.unwrap_or("the other host"))
    }

    fn out(&self) -> Value {
        json!({ "moved": self.params.instance })
    }

    async fn whereabouts(&self) -> Result<Whereabouts, StepError> {
        let found = self.host.hypervisor.whereabouts(self.params.instance).await;
        found.map_err(|e| StepError::Unknown(format!("{}: {e}", self.what())))
    }

    /// A guest that was stopped for the last part of its way, and of which libvirt does not know how that ended.
    fn in_doubt(&self) -> StepError {
        let name = &self.params.name;
        StepError::Unknown(format!(
            "{}: it was broken off at the last moment, and the guest is paused here and may run there; if it runs there, \
             `virsh destroy {name}` and `virsh undefine {name}` here, else `virsh resume {name}`",
            self.what()
        ))
    }
}

#[async_trait]
impl Step for MoveGuest {
    fn name(&self) -> &'static str {
        "move_guest"
    }

    async fn seen(&self) -> Result<Seen, StepError> {
        if let Found::Other(domain) = find_domain(&self.host, &self.params).await? {
            return Ok(Seen::Foreign(not_ours(&domain)));
        }
        Ok(match self.whereabouts().await? {
            Whereabouts::Absent | Whereabouts::Off { moved: true } => Seen::Done(self.out()),
            Whereabouts::Here | Whereabouts::Off { moved: false } => Seen::Absent,
            Whereabouts::UnderWay(_) => {
                return Err(StepError::Unknown(format!("{}: it is on its way", self.what())));
            }
            Whereabouts::Held => return Err(self.in_doubt()),
        })
    }

    async fn run(&self) -> Result<Value, StepError> {
        let what = self.what();
        let refuse =
            |why: &str| Err(StepError::Fault(Fault::new(FaultKind::HostRefused, format!("{what}: {why}"))));
        match self.seen().await? {
            Seen::Done(out) => return Ok(out),
            Seen::Foreign(why) => return refuse(&why),
            Seen::Absent | Seen::Partial => {}
        }
        if self.whereabouts().await? != Whereabouts::Here {
            return refuse("it has stopped");
        }
        let Some(passage) = &self.params.passage else { return refuse("how to get there is not known") };
        let Err(err) = self.host.hypervisor.migrate(self.params.instance, passage).await else {
            return Ok(self.out());
        };
        match (step_error(&what, &err), self.whereabouts().await?) {
            // A refusal at the last moment may leave a guest of which nobody knows where it runs.
            (StepError::Fault(_), Whereabouts::Held) => Err(self.in_doubt()),
            (err, _) => Err(err),
        }
    }

    async fn undo(&self, _out: Option<&Value>) -> Result<(), StepError> {
        match self.whereabouts().await? {
            Whereabouts::UnderWay(_) => {
                let what = format!("break off: {}", self.what());
                self.host
                    .hypervisor
                    .abort_migration(self.params.instance)
                    .await
                    .map_err(|e| step_error(&what, &e))?;
                Err(StepError::Unknown(what))
            }
            Whereabouts::Held => Err(self.in_doubt()),
            Whereabouts::Here | Whereabouts::Off { .. } | Whereabouts::Absent => Ok(()),
        }
    }
}
