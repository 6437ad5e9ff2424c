//! A whole host in one process: the real service, store and runner over a simulated host.
//!
//! The simulated hardware and its domains live outside the service, so that [`World::restart`] is what a restart of the
//! daemon is: the books are read from disk, the host is as it was.

#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part of the world")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use mdevirt::host::sim::{FileHost, Script, SimHost, SimOptions};
use mdevirt::host::{Hypervisor, NodeDevices};
use mdevirt::model::{Clock, Fault, HostScan, Ids, InstanceUuid, Job, JobId, SagaState, Usec};
use mdevirt::ops::{CardLocks, Host};
use mdevirt::saga::{FailPoints, Runner, Stop, Wake};
use mdevirt::service::api::{Accepted, Change, SpawnRequest, UseCases};
use mdevirt::service::{Parts, Service, SettingsCell};
use mdevirt::store::Store;
use mdevirt::xml::render::Templates;
use tempfile::TempDir;
use uuid::Uuid;

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
    service: Option<Service>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
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
        let base = FileHost::load(file).unwrap();
        Self::over(base.clone(), base, config, script).await
    }

    /// The simulator over these parents and domains.
    pub async fn over(
        nodes: Arc<dyn NodeDevices>,
        domains: Arc<dyn Hypervisor>,
        config: &Path,
        script: &str,
    ) -> Self {
        let dir = TempDir::new().unwrap();
        let options = SimOptions { state_file: None, script: Script::parse(script).unwrap() };
        let sim = SimHost::new(nodes, domains, options).await.unwrap();
        let points = Arc::new(FailPoints::default());
        let service = service(dir.path(), config, &sim, &points);
        let mut world =
            Self { dir, config: config.to_owned(), sim, points, service: Some(service), tasks: Vec::new() };
        world.follow();
        world
    }

    /// The state directory.
    pub fn state_dir(&self) -> &Path {
        self.dir.path()
    }

    /// The service of this moment.
    pub fn service(&self) -> &Service {
        self.service.as_ref().unwrap()
    }

    fn follow(&mut self) {
        self.tasks.push(tokio::spawn(self.service().clone().follow()));
    }

    /// The daemon goes away, wherever it is, and comes back on the same host with the same state directory.
    pub async fn restart(&mut self) {
        self.service().go_down();
        for task in self.tasks.drain(..) {
            task.abort();
            let _ = task.await;
        }
        let old = self.service.take().unwrap();
        let store = Arc::downgrade(&old.store);
        drop(old);
        // The state directory is locked as long as any task of the old service lives.
        while store.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
        self.points = Arc::new(FailPoints::default());
        let new = service(self.dir.path(), &self.config, &self.sim, &self.points);
        new.recover().unwrap();
        self.service = Some(new);
        self.follow();
    }

    /// Waits until no job is under way.
    pub async fn quiet(&self) {
        let mut changes = self.service().changes();
        while self.service().jobs_running() > 0 {
            changes.recv().await.unwrap();
        }
    }

    /// Waits for a job's end.
    pub async fn ended(&self, id: JobId) -> Job {
        let mut changes = self.service().changes();
        loop {
            let job = self.service().job(id).await.unwrap();
            if !job.state.is_open() {
                return job;
            }
            while !matches!(changes.recv().await.unwrap(), Change::JobRemoved { id: ended, .. } if ended == id)
            {
            }
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

fn service(dir: &Path, config: &Path, sim: &Arc<SimHost>, points: &Arc<FailPoints>) -> Service {
    let clock: Arc<dyn Clock> = Arc::new(Ticks::default());
    let store = Arc::new(Store::open(dir, Arc::clone(&clock)).unwrap());
    let (wake, stop) = (Arc::new(Wake::default()), Arc::new(Stop::default()));
    let runner = Runner::new(Arc::clone(&store), Arc::clone(&wake), Arc::clone(&stop), Arc::clone(points));
    Service::new(Parts {
        host: Host { nodes: sim.clone(), hypervisor: sim.clone(), cards: Arc::new(CardLocks::default()) },
        store,
        runner,
        wake,
        stop,
        templates: Templates::load(&[]).unwrap(),
        settings: SettingsCell::load(config.to_owned()).unwrap(),
        ids: Arc::new(Random),
        clock,
        host_name: "h1".into(),
        libvirt_uri: "test".into(),
        simulated: true,
    })
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
