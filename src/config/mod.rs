//! The operator's configuration: text in, checked values out (rank 1).

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::model::{ParentAddr, ResourceClass, TraitName};

/// A checked configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Config {
    /// `[libvirt] uri`.
    pub libvirt_uri: String,
    /// `[devices] enabled_mdev_types` with their `[mdev."X"]` tables, in the order of the list.
    pub enabled: Vec<EnabledType>,
    /// `[devices] unlisted`.
    pub unlisted: Unlisted,
    /// `[traits] file`.
    pub traits_file: PathBuf,
    /// `[traits] lock`.
    pub traits_lock: PathBuf,
    /// `[policy] packing`.
    pub packing: Packing,
    /// `[policy] on_release`.
    pub on_release: OnRelease,
}

/// One enabled type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EnabledType {
    /// Id or vendor type name, as written.
    pub key: String,
    /// Parents that get this type.
    pub addresses: Vec<ParentAddr>,
    /// `mdev_class`.
    pub class: ResourceClass,
    /// Host-wide cap.
    pub max_instances: Option<u32>,
    /// Kept back per provider.
    pub reserved: u32,
    /// Traits of providers with this type.
    pub traits: BTreeSet<TraitName>,
    /// Whether one VM may have several slices of one card; `None`: what is known of the vendor.
    pub several_per_vm: Option<bool>,
}

/// What a parent gets that no type lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Unlisted {
    /// The first enabled type that it offers.
    #[default]
    First,
    /// The first enabled type that lists no addresses, else nothing: nova's rule since 21.
    Default,
    /// Nothing.
    Ignore,
}

/// Which card is filled first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Packing {
    /// The emptiest card.
    #[default]
    Breadth,
    /// The fullest card.
    Depth,
}

/// What becomes of a device when its claim ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum OnRelease {
    /// It is removed.
    #[default]
    Remove,
    /// It stays, idle, for the next claim of that type on that parent.
    Keep,
}
