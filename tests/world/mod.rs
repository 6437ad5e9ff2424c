//! A whole host in one process: the real service, store and runner over a simulated host.
//!
//! The simulated hardware and its domains live outside the service, so that [`World::fall`] and [`Remains::rise`] are
//! what a crash and the next start are: the books are read from disk, the host is as it was.

#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part of the world")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has to stop")]

pub mod gate;
pub mod picture;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use mdevirt::host::sim::{FileHost, Script, SimHost, SimOptions};
use mdevirt::host::{Hypervisor, NodeDevices};
use mdevirt::model::{
    Claim, Clock, Fault, HostScan, Ids, InstanceUuid, Job, JobId, MdevUuid, NewMdev, SagaState, Usec,
};
use mdevirt::ops::{CardLocks, Host};
use mdevirt::saga::{FailPoints, Runner, Stop, Wake};
use mdevirt::service::api::{Accepted, Change, LiveOptions, OperateWith, SpawnRequest, UseCases};
use mdevirt::service::{Parts, Service, SettingsCell};
use mdevirt::store::Store;
use mdevirt::xml::render::Templates;
use tempfile::TempDir;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use uuid::Uuid;

use self::gate::Gate;

/// Counts microseconds; never the same moment twice.
#[derive(Debug, Default)]
pub struct Ticks(AtomicI64);

impl Clock for Ticks {
    fn now_usec(&self) -> Usec {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// Random ids, as the daemon has them.
#[derive(Debug)]
pub struct Random;

impl Ids for Random {
    #[expect(clippy::disallowed_methods, reason = "a test's own source of ids")]
    fn fresh(&self) -> Uuid {
        Uuid::new_v4()
    }
}

/// See the head of the file.
pub struct World {
    dir: TempDir,
    config: PathBuf,
    pub sim: Arc<SimHost>,
    pub points: Arc<FailPoints>,
    /// Another host, for guests that go there.
    pub beside: OnceLock<Arc<SimHost>>,
    service: Service,
    restore: bool,
}

/// What a daemon that is gone leaves behind: the state directory, the hardware and its domains.
pub struct Remains {
    dir: TempDir,
    config: PathBuf,
    pub sim: Arc<SimHost>,
    beside: OnceLock<Arc<SimHost>>,
    store: Weak<Store>,
    restore: bool,
}

/// A file of `tests/scenarios`.
pub fn scenario(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios").join(file)
}

impl World {
    /// A host of `tests/scenarios/NAME.xml` with the configuration beside it.
    pub async fn new(name: &str) -> Self {
        Self::of(&scenario(&format!("{name}.xml")), &scenario(&format!("{name}.toml")), "").await
    }

    /// A host of a scenario file, a configuration and a fault script.
    pub async fn of(file: &Path, config: &Path, script: &str) -> Self {
        let sim = simulated(file, script).await;
        Self::open(state_dir(), sim.clone(), host(sim), config, Arc::default())
    }

    /// A second host beside others, under a name of its own.
    pub async fn named(name: &str, file: &Path, config: &Path) -> Self {
        let sim = simulated(file, "").await;
        let dir = state_dir();
        std::fs::write(dir.path().join(HOST_NAME), name).unwrap();
        Self::open(dir, sim.clone(), host(sim), config, Arc::default())
    }

    /// A daemon on any simulated host, with the books of this directory.
    pub fn on(dir: TempDir, sim: Arc<SimHost>, config: &Path) -> Self {
        Self::open(dir, sim.clone(), host(sim), config, Arc::default())
    }

    /// A host behind a gate.
    pub async fn gated(name: &str, config: &str) -> (Self, Arc<Gate>) {
        let sim = simulated(&scenario(&format!("{name}.xml")), "").await;
        let gate = Gate::new(sim.clone());
        (Self::open(state_dir(), sim, host(gate.clone()), &scenario(config), Arc::default()), gate)
    }

    fn open(dir: TempDir, sim: Arc<SimHost>, host: Host, config: &Path, points: Arc<FailPoints>) -> Self {
        Self::start(dir, sim, host, config, (points, false))
    }

    /// The same, whose daemon waits for guests that are to come, and makes devices that are gone again.
    pub async fn acting(name: &str, file: &Path, config: &Path) -> Self {
        let sim = simulated(file, "").await;
        let dir = state_dir();
        std::fs::write(dir.path().join(HOST_NAME), name).unwrap();
        Self::start(dir, sim.clone(), host(sim), config, (Arc::default(), true))
    }

    /// A host whose daemon makes devices that are gone again by itself; the worlds above leave that to their tests.
    pub async fn restoring(name: &str) -> Self {
        let sim = simulated(&scenario(&format!("{name}.xml")), "").await;
        let config = scenario(&format!("{name}.toml"));
        Self::start(state_dir(), sim.clone(), host(sim), &config, (Arc::default(), true))
    }

    fn start(
        dir: TempDir,
        sim: Arc<SimHost>,
        host: Host,
        config: &Path,
        (points, restore): (Arc<FailPoints>, bool),
    ) -> Self {
        let service = service(dir.path(), config, host, &points, restore);
        service.recover().unwrap();
        tokio::spawn(service.clone().follow());
        Self { dir, config: config.to_owned(), sim, points, beside: OnceLock::new(), service, restore }
    }

    /// The service of this moment.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// The state directory.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The daemon is gone, wherever it was. Its tasks go with its runtime, which has to end before [`Remains::rise`].
    pub fn fall(self) -> Remains {
        let store = Arc::downgrade(&self.service.store);
        Remains {
            dir: self.dir,
            config: self.config,
            sim: self.sim,
            beside: self.beside,
            store,
            restore: self.restore,
        }
    }

    /// Waits until no job is under way.
    pub async fn quiet(&self) {
        let mut changes = self.service().changes();
        while self.service().jobs_running() > 0 {
            next(&mut changes).await;
        }
    }

    /// The steps of a job, as a restart makes them.
    pub fn script_of(&self, id: JobId) -> mdevirt::saga::Script {
        let row = self.service.store.saga(id).unwrap().unwrap();
        mdevirt::ops::script(&self.service.host, &row).unwrap()
    }

    /// Waits for a job's end.
    pub async fn ended(&self, id: JobId) -> Job {
        let mut changes = self.service().changes();
        loop {
            let job = self.service().job(id).await.unwrap();
            if !job.state.is_open() {
                return job;
            }
            next(&mut changes).await;
        }
    }

    /// Waits for an accepted operation, which must succeed.
    pub async fn done(&self, accepted: Result<Accepted, Fault>) -> Job {
        let job = self.ended(accepted.unwrap().job).await;
        assert_eq!(job.state, SagaState::Done, "{:?}", job.result);
        job
    }

    /// Spawns a VM of that name and waits for it.
    pub async fn spawn(&self, name: &str, flavor: &str) -> Job {
        self.done(self.service().spawn(spawn_request(name, flavor)).await).await
    }

    /// Makes another host, with the devices that the guest of these claims will have there, and their UUIDs here and there.
    pub async fn make_beside(&self, claims: &[Claim]) {
        let there = simulated(&scenario("two-m60.xml"), "").await;
        for claim in claims {
            let (uuid, parent, type_id) =
                (there_of(claim.uuid), claim.parent.clone(), claim.mdev_type.clone());
            there.create(&NewMdev { uuid, parent, type_id, device_api: claim.device_api }).await.unwrap();
        }
        assert!(self.beside.set(there).is_ok(), "one host beside another");
    }

    /// How the guest of these claims is sent to it.
    pub fn send_beside(&self, claims: &[Claim]) -> OperateWith {
        let pair = |c: &Claim| serde_json::json!({ "source": c.uuid, "target": there_of(c.uuid) });
        let pairs: Vec<_> = claims.iter().map(pair).collect();
        let live = LiveOptions {
            document: Some(serde_json::json!({ "host": "h2", "pairs": pairs }).to_string()),
            uri: self.beside.get().map(|there| there.address()),
            ..LiveOptions::default()
        };
        OperateWith { live, ..OperateWith::default() }
    }

    /// What the hardware shows.
    pub async fn scan(&self) -> HostScan {
        self.sim.scan().await.unwrap()
    }

    /// The domain of an instance, if libvirt has one.
    pub async fn running(&self, instance: InstanceUuid) -> Option<bool> {
        self.sim.domain(instance).await.unwrap().map(|d| d.running)
    }

    /// Books, devices and domains are as on a host that never did anything for us.
    pub async fn assert_untouched(&self, before: &HostScan) {
        let books = self.service().store.books();
        assert_eq!(books.instances().len(), 0, "instances left");
        assert_eq!(books.claims().len(), 0, "claims left");
        assert_eq!(books.own_devices().len(), 0, "devices left in the books");
        assert_eq!(&self.scan().await, before, "the hardware is not as it was");
    }
}

/// The next change; `None` if some were missed.
pub async fn next(changes: &mut broadcast::Receiver<Change>) -> Option<Change> {
    match changes.recv().await {
        Ok(change) => Some(change),
        Err(RecvError::Lagged(_)) => None,
        Err(RecvError::Closed) => panic!("the service is gone"),
    }
}

fn host<H: NodeDevices + Hypervisor + 'static>(host: Arc<H>) -> Host {
    Host { nodes: host.clone(), hypervisor: host, cards: Arc::new(CardLocks::default()) }
}

async fn simulated(file: &Path, script: &str) -> Arc<SimHost> {
    let base = FileHost::load(file).unwrap();
    let options = SimOptions { state_file: None, script: Script::parse(script).unwrap() };
    SimHost::new(base.clone(), base, options).await.unwrap()
}

/// In memory where there is such a place: the death of a process asks nothing of a disk's cache.
fn state_dir() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

impl Remains {
    /// The next daemon with the same state directory on another host: its hardware or driver was replaced meanwhile.
    pub fn rise_on(self, sim: Arc<SimHost>) -> World {
        assert_eq!(self.store.strong_count(), 0, "a task of the earlier daemon is still alive");
        World::open(self.dir, sim.clone(), host(sim), &self.config, Arc::default())
    }

    /// The next daemon on the same host with the same state directory; `arm` sets its fail points.
    pub async fn rise(self, arm: impl FnOnce(&FailPoints)) -> World {
        assert_eq!(self.store.strong_count(), 0, "a task of the earlier daemon is still alive");
        let points = Arc::new(FailPoints::default());
        arm(&points);
        let host = host(self.sim.clone());
        let world = World::start(self.dir, self.sim, host, &self.config, (points, self.restore));
        World { beside: self.beside, ..world }
    }
}

/// The file of a host that has a name of its own, in its state directory.
const HOST_NAME: &str = "host-name";

fn service(dir: &Path, config: &Path, host: Host, points: &Arc<FailPoints>, restore: bool) -> Service {
    let clock: Arc<dyn Clock> = Arc::new(Ticks::default());
    let store = Arc::new(Store::open(dir, Arc::clone(&clock)).unwrap());
    let (wake, stop) = (Arc::new(Wake::default()), Arc::new(Stop::default()));
    let runner = Runner::new(Arc::clone(&store), Arc::clone(&wake), Arc::clone(&stop), Arc::clone(points));
    Service::new(Parts {
        host,
        store,
        runner,
        wake,
        stop,
        templates: Templates::load(&[]).unwrap(),
        settings: SettingsCell::load(config.to_owned()).unwrap(),
        ids: Arc::new(Random),
        clock,
        host_name: std::fs::read_to_string(dir.join(HOST_NAME)).unwrap_or_else(|_| "h1".into()),
        libvirt_uri: "test".into(),
        simulated: true,
        by_itself: restore,
    })
}

/// The UUID that a device has on the host beside.
pub fn there_of(uuid: MdevUuid) -> MdevUuid {
    MdevUuid(Uuid::from_u128(uuid.0.as_u128() ^ 1))
}

/// The smallest domain of that name.
pub fn domain_xml(name: &str) -> String {
    format!(
        "<domain type='test'>\n  <name>{name}</name>\n  <memory>65536</memory>\n  <os><type>hvm</type></os>\n  <devices>\n  </devices>\n</domain>\n"
    )
}

/// A spawn of the smallest domain.
pub fn spawn_request(name: &str, flavor: &str) -> SpawnRequest {
    SpawnRequest {
        domain_xml: domain_xml(name),
        flavor: flavor.into(),
        display: mdevirt::model::DisplayWish::Off,
        operation_id: None,
        dry_run: false,
    }
}
