//! The real `mdevirtd` as a child process on a private bus, over a simulated host that outlives it.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mdevirt::dbus::{BusEvent, Client, Watch};
use mdevirt::host::sim::{FileHost, SimHost, SimOptions};
use mdevirt::model::{JobId, SagaState};
use mdevirt::saga::FailPoints;
use mdevirt::store::Store;
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::bus::PrivateBus;
use crate::world::picture::Picture;
use crate::world::{Ticks, scenario};

/// A deadline that only a hang reaches.
const LONG: Duration = Duration::from_secs(120);

/// SIGABRT and SIGKILL.
pub const ABORTED: i32 = 6;
pub const KILLED: i32 = 9;

/// A process that ends with the value, however that goes.
struct Process(Arc<Mutex<Child>>);

impl Process {
    fn kill(&self) -> i32 {
        let mut child = self.0.lock().unwrap();
        // It fails only if the child has ended already.
        let _ = child.kill();
        child.wait().unwrap().signal().unwrap_or(0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A running daemon.
struct Alive {
    process: Process,
    /// Comes with its log when it has ended.
    ended: oneshot::Receiver<String>,
    /// Lines of log until it is killed; 0: never.
    countdown: Arc<AtomicU32>,
}

/// A host: what outlives a daemon, and the daemon if there is one.
pub struct Site {
    dir: TempDir,
    address: String,
    alive: Option<Alive>,
    pub client: Client,
    watch: Watch,
}

impl Site {
    pub async fn new(bus: &PrivateBus) -> Self {
        let client = Client::connect(&bus.bus(), LONG).await.unwrap();
        let watch = client.watch().await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        Self { dir, address: bus.address().to_owned(), alive: None, client, watch }
    }

    /// Starts a daemon with these fail points, to be killed after so many lines of its log; false if it ends before it
    /// is on the bus.
    pub async fn start(&mut self, points: &str, lines: u32) -> bool {
        assert!(self.alive.is_none());
        let mut child = self.command(points).spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        let child = Arc::new(Mutex::new(child));
        let (send, ended) = oneshot::channel();
        let countdown = Arc::new(AtomicU32::new(lines));
        let (target, left) = (child.clone(), countdown.clone());
        std::thread::spawn(move || send.send(follow(stderr, &target, &left)));
        self.alive = Some(Alive { process: Process(child), ended, countdown });
        tokio::time::timeout(LONG, self.is_there()).await.expect("the daemon hangs at its start")
    }

    #[allow(clippy::disallowed_methods, reason = "this test is about a process")]
    fn command(&self, points: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mdevirtd"));
        let dir = self.dir.path();
        command
            .args(["--address", &self.address, "--log-format", "text", "--host-name", "h1"])
            .arg("--sim")
            .arg(scenario("two-m60.xml"))
            .arg("--config")
            .arg(scenario("two-m60.toml"))
            .arg("--sim-state")
            .arg(dir.join("host.json"))
            .arg("--state-dir")
            .arg(dir.join("state"))
            .arg("--templates")
            .arg(dir.join("templates"))
            .env(FailPoints::VARIABLE, points)
            .env("MDEVIRT_LOG", "mdevirt=debug")
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    async fn is_there(&mut self) -> bool {
        let ended = &mut self.alive.as_mut().unwrap().ended;
        loop {
            tokio::select! {
                event = self.watch.next() => {
                    if event.expect("the bus is there") == BusEvent::DaemonThere {
                        return true;
                    }
                }
                log = &mut *ended => {
                    // Kept for those who ask how it ended.
                    let (send, again) = oneshot::channel();
                    send.send(log.unwrap()).unwrap();
                    *ended = again;
                    return false;
                }
            }
        }
    }

    /// From now on so many lines of its log until it is killed.
    pub fn kill_after(&self, lines: u32) {
        self.alive.as_ref().unwrap().countdown.store(lines, Ordering::SeqCst);
    }

    /// The end of the daemon: the signal that ended it, and its log.
    pub async fn ended(&mut self) -> (i32, String) {
        let alive = self.alive.take().expect("a daemon");
        let log = tokio::time::timeout(LONG, alive.ended).await;
        let Ok(log) = log else {
            alive.process.kill();
            panic!("the daemon does not end");
        };
        (alive.process.kill(), log.unwrap())
    }

    /// Ends it.
    pub async fn kill(&mut self) -> (i32, String) {
        self.alive.as_ref().unwrap().process.kill();
        self.ended().await
    }

    /// Waits for the end of a job, or of the daemon.
    pub async fn finished(&mut self, job: JobId) -> Option<SagaState> {
        let end = self.client.finished(job, &mut self.watch, |_| ());
        let end = tokio::time::timeout(LONG, end).await.expect("the job hangs");
        end.ok().map(|job| job.state)
    }

    /// The jobs, once the daemon of the moment has its name: the last signals of one that was killed may come late.
    async fn jobs(&mut self) -> Vec<mdevirt::model::Job> {
        loop {
            match self.client.jobs().await {
                Ok(jobs) => return jobs,
                Err(fault) if fault.kind == mdevirt::model::FaultKind::HostUnreachable => {
                    let next = tokio::time::timeout(LONG, self.watch.next()).await;
                    assert!(next.expect("the daemon comes to the bus").is_some(), "the bus is lost");
                }
                Err(fault) => panic!("{fault}"),
            }
        }
    }

    /// A daemon without fail points brings everything to an end; then it is killed, and this is what is on disk.
    pub async fn converged(mut self) -> Converged {
        if !self.start("", 0).await {
            panic!("{}", self.ended().await.1);
        }
        for job in self.jobs().await {
            assert!(self.finished(job.id).await.is_some(), "the daemon went away again");
        }
        let (signal, log) = self.kill().await;
        assert_eq!(signal, KILLED, "{log}");
        let store = Store::open(&self.dir.path().join("state"), Arc::new(Ticks::default())).unwrap();
        let base = FileHost::load(&scenario("two-m60.xml")).unwrap();
        let state_file = Some(self.dir.path().join("host.json"));
        let options = SimOptions { state_file, ..SimOptions::default() };
        let sim = SimHost::new(base.clone(), base, options).await.unwrap();
        let picture = Picture::of(&store, &*sim, &*sim).await;
        let open = store.open_sagas().unwrap().len() + store.stuck_sagas().unwrap().len();
        Converged { picture, store, open, log }
    }
}

/// Reads the log to its end, and kills on the way if it is to.
fn follow(stderr: ChildStderr, child: &Mutex<Child>, left: &AtomicU32) -> String {
    let mut log = String::new();
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        log += &line;
        log.push('\n');
        let due = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)) == Ok(1);
        if due {
            // It fails only if the child has ended already.
            let _ = child.lock().unwrap().kill();
        }
    }
    log
}

/// Books, hardware and domains on disk, after the last daemon.
pub struct Converged {
    pub picture: Picture,
    pub store: Store,
    open: usize,
    log: String,
}

impl Converged {
    /// Nothing is open, stuck, doubled or half; there are so many whole instances of two states.
    pub fn assert_whole(&self, what: &str, instances: usize) {
        let Self { picture, open, log, .. } = self;
        assert_eq!(*open, 0, "{what}: open or stuck\n{log}");
        assert_eq!(picture.odds(&BTreeSet::new()), [""; 0], "{what}\n{log}");
        assert_eq!(picture.books.instances().len(), instances, "{what}\n{log}");
        if instances == 0 {
            assert_eq!((picture.scan.mdevs.len(), picture.domains.len()), (0, 0), "{what}\n{log}");
        }
    }
}
