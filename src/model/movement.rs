//! An instance under way from one set of devices to another: between two operations, not inside one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::claim::text_enum;
use super::hostdev::DisplayWish;
use super::id::{InstanceUuid, InvalidName, MdevUuid};

text_enum!(
    /// What kind of way it is.
    MoveKind, "move" {
        /// Another flavor on this host.
        Resize = "resize",
        /// To another host: this is the source.
        Out = "out",
        /// From another host: this is the target.
        In = "in",
        /// To another host while the guest runs: this is the source.
        LiveOut = "live-out",
        /// From another host while the guest runs: this is the target.
        LiveIn = "live-in",
        /// A repair with another definition; the devices stay.
        Rescue = "rescue",
    }
);

text_enum!(
    /// How far it is.
    MovePhase, "move phase" {
        /// The new side is booked and made; the guest is on the old one.
        Prepared = "prepared",
        /// The guest is on the new side; the old one is kept until it is confirmed or reverted.
        Finished = "finished",
    }
);

impl MoveKind {
    /// Whether the other side of it is another host.
    pub fn is_between_hosts(self) -> bool {
        matches!(self, Self::Out | Self::In | Self::LiveOut | Self::LiveIn)
    }

    /// Whether the instance leaves this host.
    pub fn leaves(self) -> bool {
        matches!(self, Self::Out | Self::LiveOut)
    }
}

/// A move that waits for its next operation. An instance has at most one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// Whose.
    pub instance: InstanceUuid,
    /// What it is.
    pub kind: MoveKind,
    /// How far it is.
    pub phase: MovePhase,
    /// The rest, which only the operations of the move read.
    pub baggage: Baggage,
}

/// What a revert needs to bring everything back, and a finish to go on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baggage {
    /// The guest ran when the move began.
    #[serde(default)]
    pub running: bool,
    /// The domain's definition of the old side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_xml: Option<String>,
    /// The domain's definition of the new side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_xml: Option<String>,
    /// The devices of the old side, all of which a revert needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub old_devices: Vec<MdevUuid>,
    /// The devices of the new side, all of which a finish needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub new_devices: Vec<MdevUuid>,
    /// The flavor of the old side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_flavor: Option<String>,
    /// The flavor of the new side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_flavor: Option<String>,
    /// Whether the guest's console shows the first device of the new side.
    #[serde(default)]
    pub display: DisplayWish,
    /// Name of the host on the other side, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
}
