//! The failures that callers tell apart: one kind, one D-Bus error name, one exit code.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::claim::text_enum;
use super::id::InvalidName;
use std::fmt;
use std::str::FromStr;

text_enum!(
    /// The names after `org.mdevirt1.Error.`; never renamed.
    FaultKind, "error kind" {
        /// A request that cannot be understood.
        InvalidRequest = "InvalidRequest",
        /// A configuration that contradicts itself or cannot be read.
        InvalidMdevConfig = "InvalidMdevConfig",
        /// Domain XML that cannot be understood or must not be used.
        InvalidDomainXml = "InvalidDomainXml",
        /// No instance of that name or UUID.
        NoSuchInstance = "NoSuchInstance",
        /// No parent at that address.
        NoSuchParent = "NoSuchParent",
        /// No job of that id.
        NoSuchJob = "NoSuchJob",
        /// The instance is there already, with another request.
        InstanceExists = "InstanceExists",
        /// Another operation is at work on the instance.
        InstanceBusy = "InstanceBusy",
        /// A VM holds the device, or it is open.
        DeviceInUse = "DeviceInUse",
        /// The host has just booted and devices are still being restored.
        RestorePending = "RestorePending",
        /// The daemon is going down.
        ShuttingDown = "ShuttingDown",
        /// No parent has room.
        NoCapacity = "NoCapacity",
        /// No parent offers what is asked.
        TypeUnavailable = "TypeUnavailable",
        /// The trait's type changed on this host.
        TraitDrift = "TraitDrift",
        /// Two hosts disagree about a trait.
        TraitMismatch = "TraitMismatch",
        /// No type is bound to the trait.
        TraitUnmapped = "TraitUnmapped",
        /// The two sides of a move do not fit.
        Incompatible = "Incompatible",
        /// polkit said no.
        AccessDenied = "AccessDenied",
        /// libvirt or the daemon is away.
        HostUnreachable = "HostUnreachable",
        /// It took too long.
        Timeout = "Timeout",
        /// libvirt or the kernel refused.
        HostRefused = "HostRefused",
        /// The host cannot do it.
        NotSupported = "NotSupported",
        /// The state database failed.
        StoreUnavailable = "StoreUnavailable",
        /// An operation could be neither finished nor undone.
        OperationStuck = "OperationStuck",
        /// A fault of ours.
        Internal = "Internal",
    }
);

impl FaultKind {
    /// Exit code of the command line.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::InvalidRequest | Self::InvalidMdevConfig | Self::InvalidDomainXml => 2,
            Self::NoSuchInstance | Self::NoSuchParent | Self::NoSuchJob | Self::InstanceExists => 6,
            Self::InstanceBusy | Self::DeviceInUse | Self::RestorePending | Self::ShuttingDown => 4,
            Self::NoCapacity | Self::TypeUnavailable => 3,
            Self::TraitDrift | Self::TraitMismatch | Self::TraitUnmapped | Self::Incompatible => 5,
            Self::AccessDenied => 7,
            Self::HostUnreachable | Self::Timeout => 8,
            Self::HostRefused
            | Self::NotSupported
            | Self::StoreUnavailable
            | Self::OperationStuck
            | Self::Internal => 1,
        }
    }
}

/// A failure as a caller sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// Which failure.
    pub kind: FaultKind,
    /// What, on which device or instance, and what to do.
    pub message: String,
    /// More for programs, for example one reason per parent; `null` when there is nothing.
    #[serde(default)]
    pub details: serde_json::Value,
}

impl Fault {
    /// A failure without details.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: serde_json::Value::Null }
    }

    /// The same failure with details.
    pub fn with_details(mut self, details: serde_json::Value) -> Self {
        self.details = details;
        self
    }
}

impl Fault {
    /// `PARENT: REASON` for each parent that could not serve, in their order; only failures of these kinds have them.
    pub fn reasons(&self) -> Vec<String> {
        use FaultKind as K;
        let has_them = matches!(self.kind, K::NoCapacity | K::TypeUnavailable | K::Incompatible);
        if has_them { reasons(&self.details) } else { Vec::new() }
    }
}

/// From each list of `{parent, reason}` in the details.
fn reasons(details: &Value) -> Vec<String> {
    let reason = |entry: &Value| {
        Some(format!("{}: {}", entry.get("parent")?.as_str()?, entry.get("reason")?.as_str()?))
    };
    match details {
        Value::Array(list) => list.iter().filter_map(reason).collect(),
        Value::Object(map) => map.values().filter(|value| value.is_array()).flat_map(reasons).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

impl From<InvalidName> for Fault {
    fn from(err: InvalidName) -> Self {
        Self::new(FaultKind::InvalidRequest, err.to_string())
    }
}
