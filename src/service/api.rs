//! What callers hand in and get back; the bus and the command line are thin over these.

use serde::{Deserialize, Serialize};

use crate::model::{
    ClaimRole, ClaimState, DisplayWish, Finding, InstanceUuid, JobId, MdevUuid, ParentAddr, TraitName, TypeId,
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

/// What a verb that changes something returns at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    /// The job to watch.
    pub job: JobId,
    /// False if this very request was accepted before: the job is the old one.
    pub fresh: bool,
}

/// A claim as scripts see it (`instance list --json`, `spawn --json`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimView {
    /// Node-device name, `mdev_<uuid>_<parent>`.
    pub device: String,
    /// UUID of the mdev.
    pub uuid: MdevUuid,
    /// PCI address of a VF that is itself the device; `null` for an mdev.
    pub address: Option<String>,
    /// Where it is.
    pub parent: ParentAddr,
    /// Local type id.
    pub mdev_type: TypeId,
    /// Vendor name of the type, the id when it has none.
    pub type_name: String,
    /// The trait that was asked for, if one was.
    #[serde(rename = "trait")]
    pub trait_name: Option<TraitName>,
    /// Where the claim stands.
    pub state: ClaimState,
    /// What it is to the instance.
    pub role: ClaimRole,
}

/// An instance as scripts see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstanceView {
    /// UUID of the domain.
    pub uuid: InstanceUuid,
    /// Its name.
    pub name: String,
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
    /// Devices of others.
    pub foreign: Vec<MdevView>,
    /// Everything worth an operator's look.
    pub findings: Vec<Finding>,
}
