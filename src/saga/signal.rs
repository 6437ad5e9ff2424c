//! The two signals a runner listens to. Both are remembered: one that comes before somebody waits is not lost.

use tokio::sync::watch;

/// Rings when something on the host moved (an event, a new connection), so that it is worth looking again.
#[derive(Debug)]
pub struct Wake(watch::Sender<u64>);

impl Default for Wake {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Wake {
    /// Wakes everybody who waits, and lets those who are at work look once more.
    pub fn ring(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// An ear for what rings from now on.
    pub(super) fn listen(&self) -> Ear {
        Ear(self.0.subscribe())
    }
}

/// Hears a [`Wake`].
#[derive(Debug)]
pub(super) struct Ear(watch::Receiver<u64>);

impl Ear {
    /// Returns when it rang since the last time, at once if it already has.
    pub(super) async fn rang(&mut self) {
        if self.0.changed().await.is_err() {
            // Nobody is left who could ring.
            std::future::pending::<()>().await;
        }
    }
}

/// Says that the daemon goes down. There is no way back.
#[derive(Debug)]
pub struct Stop(watch::Sender<bool>);

impl Default for Stop {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Stop {
    /// Lets every runner stop at its next step.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Whether [`Stop::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once [`Stop::stop`] was called.
    pub async fn stopped(&self) {
        // It cannot fail: the sender is `self`.
        let _ = self.0.subscribe().wait_for(|stopped| *stopped).await;
    }
}
