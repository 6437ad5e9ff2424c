//! The fault script (`--sim-script FILE`): which calls fail, and how the host changes under way. TOML text in, rules out.
//!
//! ```toml
//! [[fail]]                      # the second create on this parent finds no room
//! call = "create"               # scan find create remove domains define undefine start stop save attach detach migrate,
//!                               # scan-kernel find-in-kernel create-in-kernel, or any
//! parent = "0000:84:00.0"       # left out: any parent; `instance = "UUID"` does the same for domain calls
//! nth = 2                       # counts the matching calls from 1; left out: 1
//! times = 1                     # that many in a row; 0: for ever; left out: 1
//! kind = "no-room"              # one of the kinds of `FailKind`
//!
//! [[change]]                    # after the first scan was answered, the second GPU appears
//! after = { call = "scan", count = 1 }   # left out: before the first call; may have `parent` or `instance`
//! do = { parent-back = "0000:85:00.0" }  # one of the changes of `Change`
//! ```
//! Calls are counted from the start of the daemon; a change that has no cause among the calls of an event-driven daemon
//! needs `after` a call that it does make.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use crate::host::HostError;
use crate::model::{InstanceUuid, MdevUuid, ParentAddr, TypeId, Versions};

/// A bound against nonsense.
const MAX_SCRIPT_BYTES: u64 = 64 * 1024;

/// The calls of the host traits, as a script names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// `scan` and `scan_card`.
    Scan,
    /// `find`.
    Find,
    /// `create`.
    Create,
    /// `remove`.
    Remove,
    /// `scan_kernel`.
    ScanKernel,
    /// `find_in_kernel`.
    FindInKernel,
    /// `create_in_kernel`.
    CreateInKernel,
    /// `domains`, `domain`, `definition` and `is_saved`.
    Domains,
    /// `define`.
    Define,
    /// `undefine`.
    Undefine,
    /// `start`.
    Start,
    /// `stop`.
    Stop,
    /// `save`.
    Save,
    /// `attach`.
    Attach,
    /// `detach`.
    Detach,
    /// `migrate`.
    Migrate,
    /// Any of them.
    Any,
}

impl Call {
    /// Whether libvirt has no part in it, so that it goes on while libvirt is away.
    pub(super) fn is_of_kernel(self) -> bool {
        matches!(self, Self::ScanKernel | Self::FindInKernel | Self::CreateInKernel)
    }
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailKind {
    /// libvirt is away for these calls; `Disconnected` comes with the first, `Connected` after the last. Calls of the kernel
    /// go on and are not counted.
    Unreachable,
    /// The call takes effect, the caller gets `OutcomeUnknown`.
    AnswerLost,
    /// The call takes no effect, the caller gets `OutcomeUnknown`.
    OutcomeUnknown,
    /// `NotFound`.
    NotFound,
    /// `InUse`: somebody holds the device open.
    InUse,
    /// `NoRoom`.
    NoRoom,
    /// `InvalidXml`.
    InvalidXml,
    /// `Unreadable`.
    Unreadable,
    /// `NotSupported`.
    NotSupported,
    /// `Refused`.
    Refused,
}

/// One `[[fail]]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailRule {
    /// Which calls.
    pub call: Call,
    /// Only on this parent (for a look at a card: this card).
    pub parent: Option<ParentAddr>,
    /// Only for this domain.
    pub instance: Option<InstanceUuid>,
    /// The first matching call that fails, from 1.
    #[serde(default = "one")]
    pub nth: u32,
    /// How many fail in a row; 0: all from there on.
    #[serde(default = "one")]
    pub times: u32,
    /// How.
    pub kind: FailKind,
}

fn one() -> u32 {
    1
}

/// The moment of a [`ChangeRule`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// Which calls are counted.
    pub call: Call,
    /// Only on this parent.
    pub parent: Option<ParentAddr>,
    /// Only for this domain.
    pub instance: Option<InstanceUuid>,
    /// The change comes when this many were answered, failed ones included.
    pub count: u32,
}

/// A device that somebody else makes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForeignMdev {
    /// Its UUID.
    pub uuid: MdevUuid,
    /// Where.
    pub parent: ParentAddr,
    /// Its type.
    #[serde(rename = "type")]
    pub type_id: TypeId,
}

/// What happens to the host.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// A parent, or all functions of a card, vanishes; its active devices with it, their definitions stay.
    ParentGone(ParentAddr),
    /// It is there again; defined devices come back by autostart while there is room.
    ParentBack(ParentAddr),
    /// A device appears that nobody asked us for, if there is room.
    ForeignMdev(ForeignMdev),
    /// An active device vanishes from the kernel; its definition stays.
    MdevLost(MdevUuid),
    /// A driver update: types of the file (left) have these ids (right) from now on, on all parents; what is not
    /// named keeps its id. It replaces an earlier renumbering. Active devices move along, definitions do not.
    Renumber(BTreeMap<TypeId, TypeId>),
    /// Types of the file that no parent offers from now on; it replaces an earlier list. Devices of them stay.
    Withdraw(BTreeSet<TypeId>),
    /// The host boots again: no domain runs, no device is active; definitions stay, and devices come back with
    /// `parent-back` or when they are made. What libvirt starts at boot is not started.
    Reboot,
    /// libvirt starts this domain when the host boots, from now on.
    Autostart(InstanceUuid),
    /// Other versions of libvirt, QEMU and the kernel, until the daemon ends.
    Versions(Versions),
    /// Another version of the driver of all parents, until the daemon ends.
    Driver(String),
}

/// One `[[change]]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeRule {
    /// When; `None`: before the first call.
    pub after: Option<After>,
    /// What.
    #[serde(rename = "do")]
    pub change: Change,
}

/// A whole script.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// `[[fail]]`, in order; of several that fit a call the first decides.
    #[serde(default)]
    pub fail: Vec<FailRule>,
    /// `[[change]]`, in order.
    #[serde(default)]
    pub change: Vec<ChangeRule>,
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// [`HostError::Unreadable`] with line and key of the first mistake.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        let script: Self = toml::from_str(text).map_err(|e| unreadable("the fault script", &e))?;
        if script.fail.iter().any(|rule| rule.nth == 0) {
            return Err(unreadable("the fault script", &"nth counts from 1"));
        }
        for rule in &script.change {
            if let Change::Renumber(map) = &rule.change
                && map.values().collect::<BTreeSet<_>>().len() < map.len()
            {
                return Err(unreadable("the fault script", &"renumber gives two types one id"));
            }
        }
        Ok(script)
    }

    /// Reads a script file of at most 64 KiB.
    ///
    /// # Errors
    /// [`HostError::Unreadable`] with the path.
    pub fn load(path: &Path) -> Result<Self, HostError> {
        let what = format!("the fault script {}", path.display());
        let size = std::fs::metadata(path).map_err(|e| unreadable(&what, &e))?.len();
        if size > MAX_SCRIPT_BYTES {
            return Err(unreadable(&what, &format!("{size} bytes are more than {MAX_SCRIPT_BYTES}")));
        }
        let text = std::fs::read_to_string(path).map_err(|e| unreadable(&what, &e))?;
        Self::parse(&text)
    }
}

pub(super) fn unreadable(what: &str, why: &dyn std::fmt::Display) -> HostError {
    HostError::Unreadable { what: what.to_owned(), why: why.to_string() }
}

#[cfg(test)]
#[path = "script_test.rs"]
mod tests;
