//! The real service, store and runner in this process, over the simulator on any hardware.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use mdevirt::host::sim::SimHost;
use mdevirt::host::{Hypervisor, NodeDevices};
use mdevirt::model::{Clock, Fault, HostScan, Ids, InstanceUuid, Job, JobId, SagaState, Usec};
use mdevirt::ops::{CardLocks, Host};
use mdevirt::saga::{FailPoints, Runner, Stop, Wake};
use mdevirt::service::api::{Accepted, Change, UseCases};
use mdevirt::service::{Parts, Service, SettingsCell};
use mdevirt::store::Store;
use mdevirt::xml::render::Templates;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// Counts microseconds; never the same moment twice.
#[derive(Debug, Default)]
struct Ticks(AtomicI64);

impl Clock for Ticks {
    fn now_usec(&self) -> Usec {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

#[derive(Debug)]
struct Random;

impl Ids for Random {
    fn fresh(&self) -> Uuid {
        fresh()
    }
}

/// A UUID that nobody has.
#[expect(clippy::disallowed_methods, reason = "a test's own source of ids")]
pub(crate) fn fresh() -> Uuid {
    Uuid::new_v4()
}

/// The books of a directory, while no daemon has them.
pub(crate) fn books(dir: &Path) -> Store {
    Store::open(dir, Arc::new(Ticks::default())).unwrap()
}

/// A daemon that runs.
pub(crate) struct Daemon {
    dir: PathBuf,
    pub(crate) sim: Arc<SimHost>,
    pub(crate) points: Arc<FailPoints>,
    service: Option<Service>,
    follower: JoinHandle<()>,
}

impl Daemon {
    /// Starts on `DIR/state` with the configuration `DIR/mdevirt.toml`.
    pub(crate) fn start(dir: &Path, sim: Arc<SimHost>) -> Self {
        let points = Arc::new(FailPoints::default());
        let service = service(dir, &sim, &points);
        service.recover().unwrap();
        let follower = tokio::spawn(service.clone().follow());
        Self { dir: dir.to_owned(), sim, points, service: Some(service), follower }
    }

    /// Ends while nothing is under way, and starts again on the same host and directory.
    pub(crate) async fn restart(&mut self) {
        assert_eq!(self.service().jobs_running(), 0);
        self.service().go_down();
        self.follower.abort();
        let _ = (&mut self.follower).await;
        let old = self.service.take().unwrap();
        let store = Arc::downgrade(&old.store);
        drop(old);
        // The last job has told its end before its task is gone.
        while store.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
        *self = Self::start(&self.dir, Arc::clone(&self.sim));
    }

    pub(crate) fn service(&self) -> &Service {
        self.service.as_ref().unwrap()
    }

    /// Waits for a job's end.
    pub(crate) async fn ended(&self, id: JobId) -> Job {
        let mut changes = self.service().changes();
        loop {
            let job = self.service().job(id).await.unwrap();
            if !job.state.is_open() && self.service().jobs_running() == 0 {
                return job;
            }
            while !matches!(changes.recv().await.unwrap(), Change::JobRemoved { .. }) {}
        }
    }

    /// Waits for an accepted operation, which must succeed.
    pub(crate) async fn done(&self, accepted: Result<Accepted, Fault>) -> Job {
        let job = self.ended(accepted.unwrap().job).await;
        assert_eq!(job.state, SagaState::Done, "{:?}", job.result);
        job
    }

    /// What the hardware shows.
    pub(crate) async fn scan(&self) -> HostScan {
        self.sim.scan().await.unwrap()
    }

    /// A domain's XML, as libvirt has it.
    pub(crate) async fn domain_xml(&self, instance: InstanceUuid) -> String {
        self.sim.domain(instance).await.unwrap().unwrap().xml
    }

    /// Books and devices are as on a host that never did anything for us.
    pub(crate) async fn assert_untouched(&self, before: &HostScan) {
        let books = self.service().store.books();
        assert_eq!((books.instances().len(), books.claims().len(), books.own_devices().len()), (0, 0, 0));
        assert_eq!(&self.scan().await, before, "the hardware is not as it was");
    }
}

fn service(dir: &Path, sim: &Arc<SimHost>, points: &Arc<FailPoints>) -> Service {
    let clock: Arc<dyn Clock> = Arc::new(Ticks::default());
    let store = Arc::new(Store::open(&dir.join("state"), Arc::clone(&clock)).unwrap());
    let (wake, stop) = (Arc::new(Wake::default()), Arc::new(Stop::default()));
    let runner = Runner::new(Arc::clone(&store), Arc::clone(&wake), Arc::clone(&stop), Arc::clone(points));
    Service::new(Parts {
        host: Host { nodes: sim.clone(), hypervisor: sim.clone(), cards: Arc::new(CardLocks::default()) },
        store,
        runner,
        wake,
        stop,
        templates: Templates::load(&[]).unwrap(),
        settings: SettingsCell::load(dir.join("mdevirt.toml")).unwrap(),
        ids: Arc::new(Random),
        clock,
        host_name: "h1".into(),
        libvirt_uri: "test".into(),
        simulated: true,
    })
}

/// The smallest domain of that name.
pub(crate) fn smallest_domain(name: &str) -> String {
    format!("<domain type='kvm'>\n  <name>{name}</name>\n  <devices>\n  </devices>\n</domain>\n")
}
