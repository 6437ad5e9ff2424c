//! What a saga of unknown outcome waits on: a sign that the host can be looked at again.

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;

use crate::saga::Wake;

/// Longest wait without a sign. Only sagas that are waiting use it; an idle daemon has no timer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Wakes all waiting sagas when libvirt is back or the daemon stops.
#[derive(Debug, Default)]
pub struct HostWake(Notify);

impl HostWake {
    /// Something changed: look again.
    pub fn wake(&self) {
        self.0.notify_waiters();
    }
}

#[async_trait]
impl Wake for HostWake {
    async fn changed(&self) {
        let _ = tokio::time::timeout(PATIENCE, self.0.notified()).await;
    }
}
