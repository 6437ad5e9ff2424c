//! What callers hand in and get back; the bus and the command line are thin over these.

use std::fmt::Debug;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

mod hook;
mod moves;
mod traits;
mod upkeep;

pub use self::hook::HookCall;
pub use self::moves::{LiveCheckView, LiveLanding, LiveOptions, PrepareRequest};
pub use self::traits::{
    AcceptRequest, CheckDifference, HistoryLine, LeftOut, LocalType, LockView, PlanChange, PlanView,
    TraitCheck, TraitView,
};
pub use self::upkeep::{ReconcileView, RestoreView};
pub use crate::model::ClaimView;
use crate::model::{
    DeviceApi, DisplayWish, DomainOwner, Fault, FaultKind, Finding, Framework, InstanceUuid, InventoryRecord,
    Job, JobId, MdevUuid, OpKind, ParentAddr, PciAddress, TypeId, Word,
};

/// `Spawn`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpawnRequest {
    /// The user's domain XML; a missing `<uuid>` is added.
    pub domain_xml: String,
    /// Flavor extra specs, `resources:VGPU=1,trait:CUSTOM_X=required`.
    pub flavor: String,
    /// Console wish for the first device.
    #[serde(default)]
    pub display: DisplayWish,
    /// The caller's operation id: the same again gives the same job.
    #[serde(default)]
    pub operation_id: Option<String>,
    /// Say what would be done, do nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// `Claim`: devices only, for an orchestrator that owns the domain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimRequest {
    /// The domain's UUID, its consumer in Placement.
    pub instance: InstanceUuid,
    /// A name for people; empty if the domain has none yet.
    #[serde(default)]
    pub name: String,
    /// Flavor extra specs.
    pub flavor: String,
    /// The caller's operation id.
    #[serde(default)]
    pub operation_id: Option<String>,
}

/// An operation on an instance that is in the books.
#[derive(Debug, Clone, PartialEq)]
pub struct Operate {
    /// Which.
    pub op: OpKind,
    /// Name or UUID of the instance.
    pub instance: String,
    /// The caller's operation id.
    pub operation_id: Option<String>,
    /// What the operation needs besides.
    pub with: OperateWith,
}

/// What some operations need besides the instance.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OperateWith {
    /// Resize, attach: flavor extra specs; an empty text for no devices.
    pub flavor: Option<String>,
    /// Rescue, rebuild: the domain XML without host devices of ours.
    pub domain_xml: Option<String>,
    /// Resize: console wish for the first device.
    pub display: DisplayWish,
    /// Detach: UUID of the device.
    pub device: Option<MdevUuid>,
    /// Migration, source: how the target is reached, kept for those who confirm or revert.
    pub peer: Option<String>,
    /// Live migration, source: how the guest goes.
    pub live: LiveOptions,
}

impl OperateWith {
    /// The flavor.
    ///
    /// # Errors
    /// `InvalidRequest` if none was given; likewise below.
    pub fn flavor(&self) -> Result<&str, Fault> {
        self.flavor.as_deref().ok_or_else(|| missing("flavor"))
    }

    /// The domain XML.
    ///
    /// # Errors
    /// As for the flavor.
    pub fn domain_xml(&self) -> Result<&str, Fault> {
        self.domain_xml.as_deref().ok_or_else(|| missing("domain_xml"))
    }

    /// The device.
    ///
    /// # Errors
    /// As for the flavor.
    pub fn device(&self) -> Result<MdevUuid, Fault> {
        self.device.ok_or_else(|| missing("device"))
    }
}

fn missing(option: &str) -> Fault {
    Fault::new(FaultKind::InvalidRequest, format!("option {option} is missing"))
}

impl Operate {
    /// An operation that needs the instance alone.
    pub fn plain(op: OpKind, instance: &str, operation_id: Option<String>) -> Self {
        Self { op, instance: instance.to_owned(), operation_id, with: OperateWith::default() }
    }
}

/// What a verb that changes something returns at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    /// The job to watch.
    pub job: JobId,
    /// False if this very request was accepted before: the job is the old one.
    pub fresh: bool,
}

/// An instance as scripts see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstanceView {
    /// UUID of the domain.
    pub uuid: InstanceUuid,
    /// Its name.
    pub name: String,
    /// Who starts and stops its domain: `mdevirt`, the `caller` of `Claim`, or plain `libvirt`.
    pub owner: DomainOwner,
    /// The flavor it has; `null` for one booked by an older program.
    #[serde(default)]
    pub flavor: Option<String>,
    /// A move that waits for its next operation, `resize finished`; `null` without one.
    #[serde(default)]
    pub moving: Option<String>,
    /// The flavor it is under way to on this host, or has since the move was finished.
    #[serde(default)]
    pub new_flavor: Option<String>,
    /// The other side of it, where there is one.
    #[serde(default)]
    pub peer: Option<String>,
    /// What it holds.
    pub claims: Vec<ClaimView>,
}

/// The result of a spawn, done or only shown (`--dry-run`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpawnResult {
    /// The job; `null` for a dry run.
    pub job: Option<JobId>,
    /// UUID of the domain.
    pub instance: InstanceUuid,
    /// Its devices.
    pub devices: Vec<ClaimView>,
    /// The domain XML with the host devices written in.
    pub domain_xml: String,
}

/// A mediated device as `device list` shows it below its parent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MdevView {
    /// UUID.
    pub uuid: MdevUuid,
    /// Where it is.
    pub parent: ParentAddr,
    /// Its type, `null` when unknown.
    pub mdev_type: Option<TypeId>,
    /// It exists in the kernel.
    pub active: bool,
    /// It has a persistent definition.
    pub defined: bool,
    /// We did not make it.
    pub foreign: bool,
    /// Who uses it: `instance web-01`, `used by lab-handmade`, `in no domain`, `idle`.
    pub usage: String,
}

/// `status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusView {
    /// Version of the daemon.
    pub version: String,
    /// Connection to libvirt: its URI, and whether it stands.
    pub libvirt_uri: String,
    /// Whether libvirt can be reached.
    pub connected: bool,
    /// Whether the simulator is in use.
    pub simulated: bool,
    /// Parents with inventory.
    pub providers: usize,
    /// Instances in the books.
    pub instances: usize,
    /// Claims in the books.
    pub claims: usize,
    /// Jobs under way.
    pub jobs_running: usize,
    /// Jobs that need an operator.
    pub jobs_stuck: usize,
    /// Devices that were gone, and how many are there again; `null` if none was since the daemon started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<RestoreView>,
    /// Devices of others.
    pub foreign: Vec<MdevView>,
    /// Everything worth an operator's look.
    pub findings: Vec<Finding>,
}

/// A parent as `device list --json` shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceView {
    /// PCI address or node name.
    pub address: ParentAddr,
    /// Product text, else the driver, else the node name.
    pub name: String,
    /// How it makes slices; `null` for a physical function whose VFs are the parents.
    pub framework: Option<Framework>,
    /// Of a VF.
    pub physical_function: Option<PciAddress>,
    /// As `0x10de`; `null` without PCI.
    pub vendor_id: Option<String>,
    /// As `0x25b6`; `null` without PCI.
    pub device_id: Option<String>,
    /// NUMA node.
    pub numa_node: Option<u32>,
    /// IOMMU group.
    pub iommu_group: Option<u32>,
    /// Other parents in the same IOMMU group: passed whole, all of them go to one VM or to none.
    #[serde(default)]
    pub iommu_group_shared_with: Vec<ParentAddr>,
    /// `ok`, or why it has no inventory.
    pub status: String,
    /// What it offers.
    pub types: Vec<TypeView>,
    /// The devices on it.
    pub mdevs: Vec<MdevView>,
}

/// A type as `device list --json` shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TypeView {
    /// Local id.
    pub id: TypeId,
    /// Vendor name; `null` when the driver gives none.
    pub name: Option<String>,
    /// Device API.
    pub device_api: DeviceApi,
    /// Free at this moment.
    pub available_instances: u32,
    /// MiB.
    pub framebuffer_mib: Option<u32>,
    /// Display heads.
    pub heads: Option<u32>,
    /// Card-wide limit as the vendor states it.
    pub max_instances: Option<u32>,
}

/// What changed; sent to everybody who listens.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A job began.
    JobNew(JobId),
    /// A job moved on by a step.
    JobChanged(JobId),
    /// A job ended.
    JobRemoved {
        /// Which.
        id: JobId,
        /// `done`, `failed` or `stuck`.
        result: String,
    },
    /// The inventory is not what it was.
    Inventory,
    /// The claims of an instance are not what they were.
    Claim(InstanceUuid),
    /// A word of the operator's has become something else on a parent; nothing new is given out there.
    Drift {
        /// Trait or enabled type.
        word: Word,
        /// Where.
        parent: ParentAddr,
        /// What it was bound to.
        was: String,
        /// What its local id is now.
        now: String,
    },
    /// Status, findings or the connection to libvirt changed.
    Status,
}

/// Everything a caller can ask. The bus and the tests see the service through this alone.
#[async_trait]
pub trait UseCases: Send + Sync + Debug {
    /// Books, makes, writes, defines and starts; the job does it.
    async fn spawn(&self, request: SpawnRequest) -> Result<Accepted, Fault>;
    /// What [`UseCases::spawn`] would do.
    async fn preview_spawn(&self, request: SpawnRequest) -> Result<SpawnResult, Fault>;
    /// Books an operation on an instance that is in the books.
    async fn operate(&self, request: Operate) -> Result<Accepted, Fault>;
    /// Stops and undefines the domain and gives the devices back. `instance` is a name or a UUID, here and below.
    async fn destroy(&self, instance: &str, operation_id: Option<String>) -> Result<Accepted, Fault> {
        self.operate(Operate::plain(OpKind::Destroy, instance, operation_id)).await
    }
    /// Starts the domain; a device that is lost is made again under its UUID on its parent.
    async fn start(&self, instance: &str, operation_id: Option<String>) -> Result<Accepted, Fault> {
        self.operate(Operate::plain(OpKind::Start, instance, operation_id)).await
    }
    /// Stops the domain; its devices stay booked.
    async fn stop(&self, instance: &str, operation_id: Option<String>) -> Result<Accepted, Fault> {
        self.operate(Operate::plain(OpKind::Stop, instance, operation_id)).await
    }
    /// The document that [`UseCases::migrate_prepare`] takes, of an instance as it is now; nothing is done.
    async fn export_instance(&self, instance: &str) -> Result<String, Fault>;
    /// Target: books and makes devices for an instance that comes from another host.
    async fn migrate_prepare(&self, request: PrepareRequest) -> Result<Accepted, Fault>;
    /// Source of a live migration: the document for [`UseCases::live_check_target`] and [`UseCases::migrate_prepare`], of a guest
    /// that can go; nothing is done.
    async fn live_check_source(&self, instance: &str) -> Result<String, Fault>;
    /// Target of a live migration: what it would do for this document; nothing is done.
    async fn live_check_target(&self, document: &str) -> Result<LiveCheckView, Fault>;
    /// Books and makes devices for a domain that the caller owns.
    async fn claim(&self, request: ClaimRequest) -> Result<Accepted, Fault>;
    /// Gives them back.
    async fn release(&self, instance: &str, operation_id: Option<String>) -> Result<Accepted, Fault> {
        self.operate(Operate::plain(OpKind::Release, instance, operation_id)).await
    }
    /// Writes the instance's host devices into a domain XML.
    async fn render_domain(
        &self,
        instance: &str,
        domain_xml: &str,
        display: DisplayWish,
    ) -> Result<String, Fault>;
    /// Writes into the definition of a domain of libvirt's own what it wants, and host devices for it; `None` takes the wish out. The
    /// UUIDs that its devices will have.
    async fn request_for_domain(&self, domain: &str, flavor: Option<&str>) -> Result<Vec<MdevUuid>, Fault>;
    /// What libvirt's qemu hook is to print: the domain's XML with other devices, or nothing. A fault refuses the start.
    async fn hook(&self, call: HookCall) -> Result<String, Fault>;
    /// Parents with types and devices.
    async fn devices(&self) -> Result<Vec<DeviceView>, Fault>;
    /// One record per provider with a total above 0.
    async fn inventory(&self) -> Result<Vec<InventoryRecord>, Fault>;
    /// The books.
    async fn instances(&self) -> Result<Vec<InstanceView>, Fault>;
    /// Jobs under way, and those that ended since the daemon started (at most the last 1000).
    async fn jobs(&self) -> Result<Vec<Job>, Fault>;
    /// One job, also one of an earlier daemon.
    async fn job(&self, id: JobId) -> Result<Job, Fault>;
    /// Health in one record.
    async fn status(&self) -> Result<StatusView, Fault>;
    /// Compares books, hardware and domains, and does what is safe about the differences; nothing in a dry run.
    async fn reconcile(&self, dry_run: bool) -> Result<Vec<ReconcileView>, Fault>;
    /// Reads the configuration again; a bad one leaves the running one in force and is the error. The warnings of a good one.
    async fn reload(&self) -> Result<Vec<Finding>, Fault>;
    /// The configuration in force, as TOML.
    async fn config_text(&self) -> Result<String, Fault>;
    /// Every trait of `traits.toml`, where it stands and what became of it.
    async fn traits(&self) -> Result<Vec<TraitView>, Fault>;
    /// Writes the lock: what is locked stays, what is not and stands well is added.
    async fn trait_lock(&self) -> Result<LockView, Fault>;
    /// Compares this host with its lock.
    async fn trait_check(&self) -> Result<TraitCheck, Fault>;
    /// Takes what a drifted trait, or enabled type, is now for what it shall be. The traits afterwards.
    async fn trait_accept(&self, request: AcceptRequest) -> Result<Vec<TraitView>, Fault>;
    /// What the traits of this host are bound to, as a document for other hosts.
    async fn trait_export(&self) -> Result<String, Fault>;
    /// What this configuration, or the files as they are now, would change.
    async fn plan(&self, config: Option<String>) -> Result<PlanView, Fault>;
    /// Changes from now on.
    fn changes(&self) -> broadcast::Receiver<Change>;
}
