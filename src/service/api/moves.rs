//! Moves to another host, as callers see them.

use serde::{Deserialize, Serialize};

use crate::model::{MdevUuid, ParentAddr, TypeId, Versions};

/// `MigratePrepare`: the document of the source, carried to the target.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PrepareRequest {
    /// What `InstanceExport` gives once the migration has begun.
    pub document: String,
    /// Another flavor, for a resize across hosts; `None`: the same devices as on the source.
    pub flavor: Option<String>,
    /// Take a type of another identity, if this host's traits serve the flavor with it.
    pub allow_type_change: bool,
    /// The source is dead: a document that was made at some time before is good enough.
    pub evacuate: bool,
    /// The guest comes running: `LivePrepare`, with what `LiveCheckSource` gives.
    pub live: bool,
    /// The caller's operation id.
    pub operation_id: Option<String>,
}

/// How a guest goes, as the source is told. None of it is needed to go on with a migration that got stuck.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveOptions {
    /// The `document` of the result of `LivePrepare`: which device becomes which.
    pub document: Option<String>,
    /// How this host's libvirt reaches that of the target, `qemu+ssh://root@host-2/system`.
    pub uri: Option<String>,
    /// Most that is sent, in MiB/s.
    pub bandwidth_mib: Option<u32>,
    /// Longest time for which the guest may stand still, in ms.
    pub downtime_ms: Option<u32>,
}

/// `LiveCheckTarget`: the target would take the guest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveCheckView {
    /// Name of the target.
    pub host: String,
    /// What runs its guests.
    pub versions: Versions,
    /// Where each device would be made.
    pub devices: Vec<LiveLanding>,
}

/// One device of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveLanding {
    /// The device on the source.
    pub source: MdevUuid,
    /// Where it would be made.
    pub parent: ParentAddr,
    /// Its local type id.
    pub mdev_type: TypeId,
    /// Its vendor name, the id when it has none.
    pub type_name: String,
}
