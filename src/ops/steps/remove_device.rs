//! Remove one device of ours and its claim. One that is open is waited for, then reported, never forced.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::remove_when_closed;
use crate::model::{Claim, ClaimEvent};
use crate::ops::{DevicePlan, Host};
use crate::saga::{Part, Seen, Step, StepError};
use crate::store::Change;

/// See the head of the file.
#[derive(Debug)]
pub struct RemoveDevice {
    host: Host,
    part: Part,
    device: DevicePlan,
}

impl RemoveDevice {
    /// One step for one device.
    pub fn new(host: &Host, part: Part, device: &DevicePlan) -> Self {
        Self { host: host.clone(), part, device: device.clone() }
    }
}

#[async_trait]
impl Step for RemoveDevice {
    fn name(&self) -> &'static str {
        "remove_device"
    }

    fn part(&self) -> Option<Part> {
        Some(self.part)
    }

    async fn seen(&self) -> Result<Seen, StepError> {
        let found = self.host.nodes.find(self.device.claim.uuid).await;
        let found =
            found.map_err(|e| StepError::Unknown(format!("look for {}: {e}", self.device.claim.uuid)))?;
        let there = found.iter().any(|m| m.parent == self.device.claim.parent);
        Ok(if there { Seen::Absent } else { Seen::Done(json!({ "removed": self.device.claim.uuid })) })
    }

    async fn run(&self) -> Result<Value, StepError> {
        remove_when_closed(&self.host, &self.device).await?;
        Ok(json!({ "removed": self.device.claim.uuid }))
    }

    /// A device that is gone stays gone: this step is only used past the point of no return.
    async fn undo(&self, _out: Option<&Value>) -> Result<(), StepError> {
        Ok(())
    }

    fn done_changes(&self, _out: &Value) -> Vec<Change> {
        let Claim { id, uuid, parent, .. } = &self.device.claim;
        vec![
            Change::Claim { claim: *id, event: ClaimEvent::Release },
            Change::ClaimGone(*id),
            Change::DeviceForgotten { uuid: *uuid, parent: parent.clone() },
        ]
    }
}
