//! A case as a running service: hardware, configuration, domains and what was in the books before.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mdevirt::config;
use mdevirt::host::sim::{FileHost, SimHost, SimOptions};
use mdevirt::host::sysfs::Sysfs;
use mdevirt::host::{Hypervisor, NodeDevices};
use mdevirt::model::{Fault, FaultKind, HostScan, Ids, InstanceUuid, InventoryRecord, MdevUuid};
use mdevirt::service::api::{ClaimRequest, DeviceView, InstanceView, StatusView, UseCases};
use mdevirt::store::Store;
use mdevirt::xml::domain::DomainDoc;
use tempfile::TempDir;

use crate::books::{Remembered, remember};
use crate::fixture;
use crate::listing::{Listing, nodedev_dir};
use crate::sysfs_text::node_devices;
use crate::world::{Random, Ticks, World};

/// What a case is made of, before it starts.
pub(crate) struct Setup {
    case: &'static str,
    nodes: Option<Arc<dyn NodeDevices>>,
    config: String,
    domains: Vec<(PathBuf, bool)>,
    remembered: Vec<Remembered>,
}

/// A case that runs.
pub(crate) struct Case {
    world: World,
    /// The state directory.
    pub(crate) state: PathBuf,
    /// Where `mdevirt.toml` is.
    pub(crate) dir: TempDir,
}

impl Setup {
    /// The case's `nodedev/` with nothing enabled.
    pub(crate) fn new(case: &'static str) -> Self {
        Self { case, nodes: None, config: String::new(), domains: Vec::new(), remembered: Vec::new() }
    }

    /// Other hardware than `nodedev/`.
    pub(crate) fn on(mut self, nodes: impl NodeDevices + 'static) -> Self {
        self.nodes = Some(Arc::new(nodes));
        self
    }

    /// The devices of a directory through libvirt's own test driver, beside the planted tree `root`.
    #[cfg(feature = "libvirt")]
    pub(crate) fn on_libvirt(self, root: &Path, devices: &Path) -> Self {
        let uri = fixture::test_host(root, &fixture::xml_files(devices));
        let templates = mdevirt::xml::render::Templates::load(&[]).unwrap();
        let host = mdevirt::host::libvirt::LibvirtHost::new(uri, Sysfs::new(root), templates);
        Self { nodes: Some(host), ..self }
    }

    /// The configuration that the import makes of this nova.conf.
    pub(crate) fn nova(mut self, file: &str) -> Self {
        self.config = nova(self.case, file);
        self
    }

    /// The configuration itself.
    pub(crate) fn toml(mut self, text: impl Into<String>) -> Self {
        self.config = text.into();
        self
    }

    /// Changes what the import made.
    pub(crate) fn edit(mut self, from: &str, to: &str) -> Self {
        assert!(self.config.contains(from), "{from} is not in {}", self.config);
        self.config = self.config.replace(from, to);
        self
    }

    /// A domain of the case, running or shut off.
    pub(crate) fn domain(mut self, file: &str, running: bool) -> Self {
        self.domains.push((fixture::case(self.case).join(file), running));
        self
    }

    /// The books as `remembered.tsv` says.
    pub(crate) fn remembered(self) -> Self {
        let text = fs::read_to_string(fixture::case(self.case).join("remembered.tsv")).unwrap();
        self.remembering(text.lines().skip(1).map(Remembered::read))
    }

    /// The books as these lines say.
    pub(crate) fn remembering(mut self, lines: impl IntoIterator<Item = Remembered>) -> Self {
        self.remembered.extend(lines);
        self
    }

    /// Starts the service on it. What was remembered is there before the service is, as after a restart.
    pub(crate) async fn start(self) -> Case {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("mdevirt.toml"), &self.config).unwrap();
        let nodes =
            self.nodes.unwrap_or_else(|| Arc::new(Listing::of_files(&nodedev_dir(self.case))) as Arc<_>);
        let listed = nodes.scan().await.unwrap();
        let sim = SimHost::new(nodes, no_domains(), SimOptions::default()).await.unwrap();
        assert_eq!(
            room(&listed),
            room(&sim.scan().await.unwrap()),
            "the simulator shows what the case lists"
        );
        for (file, running) in &self.domains {
            let xml = fs::read_to_string(file).unwrap();
            sim.define(&xml).await.unwrap();
            if *running {
                sim.start(DomainDoc::parse(&xml).unwrap().uuid.unwrap()).await.unwrap();
            }
        }
        let state = TempDir::new().unwrap();
        let store = Store::open(state.path(), Arc::new(Ticks::default())).unwrap();
        for line in &self.remembered {
            let domain = match line.vm {
                Some(vm) => sim.domain(vm).await.unwrap(),
                None => None,
            };
            remember(&store, line, domain.map(|d| (d.name, d.running)));
        }
        drop(store);
        let place = state.path().to_owned();
        Case { world: World::on(state, sim, &dir.path().join("mdevirt.toml")), state: place, dir }
    }
}

/// Domains begin with none; they come by their XML, as to libvirt.
fn no_domains() -> Arc<FileHost> {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("none.xml");
    fs::write(&file, "<node></node>").unwrap();
    FileHost::load(&file).unwrap()
}

/// The import of a nova.conf of a case.
pub(crate) fn nova(case: &str, file: &str) -> String {
    let text = fs::read_to_string(fixture::case(case).join(file)).unwrap();
    config::import(&text, file).unwrap().toml
}

/// A listing of sysfs, with the descriptions that libvirt does not pass on.
pub(crate) fn from_sysfs(case: &str, file: &str) -> Listing {
    let path = fixture::case(case).join(file);
    let root = tempfile::tempdir().unwrap();
    fixture::plant(&path, root.path());
    let documents = node_devices(&fs::read_to_string(path).unwrap());
    Listing::of_documents(&documents).described(&Sysfs::new(root.path()))
}

/// What each type of each parent has room for, in order.
pub(crate) fn room(scan: &HostScan) -> BTreeSet<(String, String, u32)> {
    let of_parent = |p: &mdevirt::model::Parent| {
        let addr = p.addr.to_string();
        let types = p.types.iter().map(|t| (t.id.to_string(), t.available_instances));
        types.map(|(id, n)| (addr.clone(), id, n)).collect::<Vec<_>>()
    };
    scan.parents.iter().flat_map(of_parent).collect()
}

impl Case {
    /// Replaces the configuration file; the service reads it at its next reload.
    pub(crate) fn write_config(&self, text: &str) {
        fs::write(self.dir.path().join("mdevirt.toml"), text).unwrap();
    }

    /// `PARENT CLASS TOTAL` of each record.
    pub(crate) async fn totals(&self) -> Vec<String> {
        let records = self.service().inventory().await.unwrap();
        records.iter().map(|r| format!("{} {} {}", r.parent, r.resource_class, r.total)).collect()
    }

    /// The record of a parent.
    pub(crate) async fn record(&self, parent: &str) -> InventoryRecord {
        let all = self.service().inventory().await.unwrap();
        all.into_iter().find(|r| r.parent.to_string() == parent).unwrap_or_else(|| panic!("none of {parent}"))
    }

    /// What a parent can still give.
    pub(crate) async fn free(&self, parent: &str) -> u32 {
        let record = self.record(parent).await;
        record.total - record.reserved - record.used
    }

    pub(crate) async fn devices(&self) -> Vec<DeviceView> {
        self.service().devices().await.unwrap()
    }

    /// A parent as people see it.
    pub(crate) async fn device(&self, parent: &str) -> DeviceView {
        let all = self.devices().await;
        all.into_iter().find(|d| d.address.to_string() == parent).unwrap_or_else(|| panic!("no {parent}"))
    }

    pub(crate) async fn status(&self) -> StatusView {
        self.service().status().await.unwrap()
    }

    /// Whether status has a finding about `about` whose text has all these words.
    pub(crate) async fn finds(&self, about: &str, words: &[&str]) -> bool {
        let found = self.status().await.findings;
        found.iter().any(|f| f.about == about && words.iter().all(|word| f.text.contains(word)))
    }

    /// Everything that status found.
    pub(crate) async fn findings(&self) -> Vec<String> {
        self.status().await.findings.iter().map(|f| format!("{}: {}", f.about, f.text)).collect()
    }

    /// Claims devices for a fresh instance; what it holds then.
    pub(crate) async fn claimed(&self, flavor: &str) -> InstanceView {
        let job = self.done(self.service().claim(claim_request(flavor)).await).await;
        self.held_by(job.instance).await
    }

    /// Why a claim is refused at once, with the reason of each parent, as the command line shows it.
    pub(crate) async fn refused(&self, flavor: &str) -> (FaultKind, String) {
        let before = self.scan().await;
        let fault = self.service().claim(claim_request(flavor)).await.unwrap_err();
        assert_eq!(self.scan().await, before, "a refusal changes nothing");
        (fault.kind, said(&fault))
    }

    /// An instance with its claims.
    pub(crate) async fn held_by(&self, instance: InstanceUuid) -> InstanceView {
        let all = self.service().instances().await.unwrap();
        all.into_iter().find(|i| i.uuid == instance).unwrap()
    }

    /// A domain's XML, as libvirt has it.
    pub(crate) async fn domain_xml(&self, instance: InstanceUuid) -> String {
        self.sim.domain(instance).await.unwrap().unwrap().xml
    }

    /// UUIDs of the devices in the kernel.
    pub(crate) async fn active(&self) -> BTreeSet<MdevUuid> {
        self.scan().await.mdevs.iter().filter(|m| m.active).map(|m| m.uuid).collect()
    }
}

impl Deref for Case {
    type Target = World;
    fn deref(&self) -> &World {
        &self.world
    }
}

/// A case in two lives of the daemon; the second begins with what the first found.
pub(crate) fn two_lives<T>(
    setup: Setup,
    first: impl AsyncFnOnce(&Case) -> T,
    second: impl AsyncFnOnce(&Case, T),
) {
    let life = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let runtime = life();
    let (Case { world, state, dir }, found) = runtime.block_on(async {
        let case = setup.start().await;
        let found = first(&case).await;
        (case, found)
    });
    let remains = world.fall();
    drop(runtime);
    life().block_on(async {
        let case = Case { world: remains.rise(|_| ()).await, state, dir };
        second(&case, found).await;
    });
}

/// A claim for a fresh instance.
pub(crate) fn claim_request(flavor: &str) -> ClaimRequest {
    ClaimRequest {
        instance: InstanceUuid(Random.fresh()),
        name: String::new(),
        flavor: flavor.to_owned(),
        operation_id: None,
    }
}

/// Everything that a refusal says.
pub(crate) fn said(fault: &Fault) -> String {
    let parents = fault.details["parents"].as_array().into_iter().flatten();
    let reasons =
        parents.map(|p| format!("\n{}: {}", p["parent"].as_str().unwrap(), p["reason"].as_str().unwrap()));
    std::iter::once(fault.message.clone()).chain(reasons).collect()
}

/// A text of a case.
pub(crate) fn case_text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name);
    fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()))
}
