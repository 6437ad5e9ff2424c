//! The one connection to libvirt: opened, kept, noticed when lost, opened again.
//!
//! ```text
//!            opened                    closed, or a call found it broken
//!   Down -------------> Up (Connected) ---------------------------------> Down (Disconnected), tried at once
//!    ^ |  failed: again after 0.5 s, 1 s, .. 30 s, and at once when somebody asks
//!    +-+
//! ```
//! 1. One task, the keeper, opens and drops connections; everybody else borrows the one that stands.
//! 2. While the connection stands nothing is polled: the socket's hang-up wakes libvirt's event thread, that wakes the keeper.
//!    Only a local connection is watched so; one to another host would need libvirt's keepalive.
//! 3. A libvirt call runs from its first to its last line on one thread that may block, for libvirt's last error is the
//!    thread's.
//! 4. A call that does not come back is given up on; its thread stays with it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, spawn_blocking};
use tokio::time::{Instant, sleep, timeout};
use virt::connect::Connect;
use virt::error::Error;

use super::error::{Doing, clean, host_error};
use super::events::{Wakes, start_loop};
use super::ffi::Watched;
use crate::host::{HostError, HostEvent};

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// libvirt itself waits up to 60 s for a device and as long again for udev.
const CALL_LIMIT: Duration = Duration::from_secs(300);

/// The connection as the rest of the room sees it.
#[derive(Debug)]
pub(super) struct Link {
    attempts: watch::Receiver<Attempt>,
    asked: Arc<Notify>,
    wakes: Arc<Wakes>,
    call_limit: Duration,
    tasks: [AbortHandle; 2],
}

/// An open connection.
pub(super) type Session = Watched;

#[derive(Debug, Clone)]
struct Attempt {
    /// Counts attempts to open, so that who waits knows one that came after his question.
    number: u64,
    session: Result<Arc<Session>, String>,
}

impl Link {
    /// Starts to connect; needs a tokio runtime. That libvirtd is away, or the URI wrong, is told by the calls.
    pub(super) fn new(uri: String) -> Self {
        let wakes = Wakes::new();
        let asked = Arc::new(Notify::new());
        let (publish, attempts) =
            watch::channel(Attempt { number: 0, session: Err("not tried yet".to_owned()) });
        let keeper = Keeper { uri, publish, asked: Arc::clone(&asked), wakes: Arc::clone(&wakes) };
        let tasks = [tokio::spawn(keeper.keep()), tokio::spawn(Arc::clone(&wakes).fold())];
        let tasks = tasks.map(|task| task.abort_handle());
        Self { attempts, asked, wakes, call_limit: CALL_LIMIT, tasks }
    }

    /// Events and what wakes them.
    pub(super) fn wakes(&self) -> &Wakes {
        &self.wakes
    }

    /// Whether the connection stands at this moment.
    pub(super) fn is_up(&self) -> bool {
        self.attempts.borrow().session.as_ref().is_ok_and(|session| is_open(session))
    }

    /// Runs libvirt calls on the current connection. `calls` may read as often as it likes and change one thing, for a call
    /// that cannot be sent is told as if nothing had been done.
    ///
    /// # Errors
    /// `Unreachable` if nothing was sent, `OutcomeUnknown` if a change was sent and its answer is lost, else what libvirt said.
    pub(super) async fn call<T, F>(&self, doing: Doing, calls: F) -> Result<T, HostError>
    where
        T: Send + 'static,
        F: FnOnce(&Session) -> Result<T, Error> + Send + 'static,
    {
        let session = self.session().await?;
        let Ok(lane) = timeout(self.call_limit, session.lanes.enter(doing.is_change())).await else {
            let why = format!("earlier calls have not come back in {} s", self.call_limit.as_secs());
            return Err(HostError::Unreachable(why));
        };
        let work = spawn_blocking(move || {
            let answer = calls(&session);
            // A call that is given up on keeps its lane until it comes back.
            drop(lane);
            answer.map_err(|err| (err, is_open(&session)))
        });
        match timeout(self.call_limit, work).await {
            Ok(Ok(Ok(value))) => Ok(value),
            Ok(Ok(Err((err, open)))) => {
                if !open {
                    self.wakes.connection_lost();
                }
                Err(host_error(&err, open, &doing))
            }
            Ok(Err(panicked)) => Err(doing.answer_lost(&panicked.to_string())),
            Err(_) => Err(doing.answer_lost(&format!("no answer in {} s", self.call_limit.as_secs()))),
        }
    }

    /// The connection that stands, else the outcome of an attempt that ends after this question.
    async fn session(&self) -> Result<Arc<Session>, HostError> {
        let mut attempts = self.attempts.clone();
        let last = attempts.borrow_and_update().clone();
        if let Ok(session) = last.session {
            if is_open(&session) {
                return Ok(session);
            }
            self.wakes.connection_lost();
        }
        self.asked.notify_one();
        let next = timeout(self.call_limit, attempts.wait_for(|attempt| attempt.number > last.number)).await;
        match next {
            Ok(Ok(attempt)) => attempt.session.clone().map_err(HostError::Unreachable),
            Ok(Err(_)) => Err(HostError::Unreachable("the connection is shut down".to_owned())),
            Err(_) => Err(HostError::Unreachable("the attempt to connect does not end".to_owned())),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

fn is_open(session: &Session) -> bool {
    session.conn.is_alive().unwrap_or(false)
}

struct Keeper {
    uri: String,
    publish: watch::Sender<Attempt>,
    asked: Arc<Notify>,
    wakes: Arc<Wakes>,
}

impl Keeper {
    async fn keep(self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let opened = self.open().await;
            let since = Instant::now();
            let session = opened.as_ref().ok().cloned();
            self.publish.send_modify(|last| *last = Attempt { number: last.number + 1, session: opened });
            if let Some(session) = session {
                self.wakes.tell(HostEvent::Connected);
                self.until_lost(session).await;
                // One that breaks as soon as it stands must not be opened in a busy loop.
                if since.elapsed() > LONGEST_PAUSE {
                    pause = FIRST_PAUSE;
                }
                if since.elapsed() > FIRST_PAUSE {
                    continue;
                }
            }
            tokio::select! {
                () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
                () = self.asked.notified() => {}
            }
        }
    }

    async fn open(&self) -> Result<Arc<Session>, String> {
        let (uri, wakes) = (self.uri.clone(), Arc::clone(&self.wakes));
        let opened = spawn_blocking(move || open(&uri, &wakes)).await;
        opened.unwrap_or_else(|panicked| Err(panicked.to_string())).map(Arc::new)
    }

    async fn until_lost(&self, session: Arc<Session>) {
        while is_open(&session) {
            self.wakes.lost().await;
        }
        let why = "the connection was closed".to_owned();
        self.publish.send_modify(|last| last.session = Err(why));
        self.wakes.tell(HostEvent::Disconnected);
        // To drop it is to call libvirt.
        let _ = spawn_blocking(move || drop(session)).await;
    }
}

fn open(uri: &str, wakes: &Arc<Wakes>) -> Result<Session, String> {
    start_loop()?;
    // The virt crate panics on it.
    if uri.contains('\0') {
        return Err("the URI contains a NUL character".to_owned());
    }
    let session = Connect::open(Some(uri)).and_then(|conn| Session::new(conn, wakes));
    session.map_err(|err| format!("{uri}: {}", clean(err.message())))
}
