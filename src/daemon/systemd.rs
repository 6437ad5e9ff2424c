//! What systemd is told; without systemd nothing is sent.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::{Instant, sleep_until};

/// The line that systemd shows; sent when it is another one.
#[derive(Debug, Default)]
pub(super) struct Status(String);

impl Status {
    /// The daemon serves.
    pub(super) fn ready(&mut self, line: &str) {
        line.clone_into(&mut self.0);
        send(&[NotifyState::Ready, NotifyState::Status(line)]);
    }

    /// What it does at this moment.
    pub(super) fn show(&mut self, line: &str) {
        if self.0 != line {
            line.clone_into(&mut self.0);
            send(&[NotifyState::Status(line)]);
        }
    }
}

/// The configuration is read again.
pub(super) fn reloading() {
    send(&[NotifyState::Status("reading the configuration again")]);
}

/// The daemon is going down.
pub(super) fn stopping() {
    send(&[NotifyState::Stopping, NotifyState::Status("operations stop after the step at work")]);
}

/// The runtime still turns.
pub(super) fn alive() {
    send(&[NotifyState::Watchdog]);
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(err) = sd_notify::notify(states) {
        tracing::debug!("tell systemd: {err}");
    }
}

/// Due twice per `WatchdogSec`, never without one.
#[derive(Debug)]
pub(super) struct Watchdog {
    every: Option<Duration>,
    next: Instant,
}

impl Watchdog {
    /// From systemd's environment variables.
    pub(super) fn from_env() -> Self {
        let every = sd_notify::watchdog_enabled().map(|limit| limit / 2);
        Self { every, next: Instant::now() }
    }

    /// Returns when the next sign of life is due.
    pub(super) async fn due(&mut self) {
        let Some(every) = self.every else { return std::future::pending().await };
        sleep_until(self.next).await;
        self.next = Instant::now() + every;
    }
}
