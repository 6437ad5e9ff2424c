//! The operator's configuration: text in, checked values out (rank 1).
//!
//! ```text
//!   mdevirt.toml ---document--> Layer --+                +--> Config (in force)
//!   mdevirt.toml.d/*.toml ----> Layer --+-merge--check---+--> warnings
//!   nova.conf ------nova_ini--> Layer --+                +--> every error of every file
//! ```
//! 1. A [`Config`] that exists is valid; bad text gives errors and changes nothing (`tests/config_cases`).
//! 2. All errors of all files come out together, each with file, line and key.
//! 3. nova.conf goes through the same check as TOML: only the reading differs.
//! 4. What [`to_toml`] writes is read back as the same [`Config`] (`show`, property).
//! 5. Nothing is guessed: an unknown key, word or form is an error. What may be right on another host or
//!    another day (a card that is not there) is a warning, and most of those need the hardware: `plan::mapping`.
//! 6. Bounded: a file by [`MAX_FILE_BYTES`], types and addresses by [`MAX_ENTRIES`].
//!
//! How files are read and what is said about them is [`text`](crate::text)'s.

mod check;
mod document;
mod layer;
mod load;
mod nova;
mod nova_ini;
mod nova_notes;
mod nova_traits;
mod parse;
mod show;
mod word;

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::model::claim::text_enum;
use crate::model::{Finding, InvalidName, ParentAddr, ResourceClass, TraitName};

pub use crate::text::{ConfigError, ConfigErrors, MAX_FILE_BYTES};
pub use load::load;
pub use nova::{Imported, import};
pub use parse::parse;
pub use show::to_toml;

/// Greatest number of type entries, and of addresses, in all files together.
pub const MAX_ENTRIES: usize = 10_000;

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
    /// `[traits] automatic`.
    pub automatic: BTreeSet<Automatic>,
    /// `[policy] packing`.
    pub packing: Packing,
    /// `[policy] on_release`.
    pub on_release: OnRelease,
    /// `[policy] on_stop`.
    pub on_stop: OnStop,
    /// `[policy] restore_deadline_sec`, in seconds, at least 1.
    pub restore_deadline_sec: u32,
    /// `[policy] live_deadline_sec`, in seconds, at least 1.
    pub live_deadline_sec: u32,
    /// `[hook] start_budget_ms`, in milliseconds, 100 to 60000.
    pub hook_start_budget_ms: u32,
}

impl Default for Config {
    /// What an empty file means: no type is enabled.
    fn default() -> Self {
        Self {
            libvirt_uri: "qemu:///system".to_owned(),
            enabled: Vec::new(),
            unlisted: Unlisted::default(),
            traits_file: PathBuf::from("/etc/mdevirt/traits.toml"),
            traits_lock: PathBuf::from("/etc/mdevirt/traits.lock"),
            automatic: BTreeSet::from([Automatic::Capabilities]),
            packing: Packing::default(),
            on_release: OnRelease::default(),
            on_stop: OnStop::default(),
            restore_deadline_sec: 300,
            live_deadline_sec: 300,
            hook_start_budget_ms: 2000,
        }
    }
}

/// One enabled type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EnabledType {
    /// Id or vendor type name, as written but for blanks at the ends.
    pub key: String,
    /// Parents that get this type, in the order of the list, each once.
    pub addresses: Vec<ParentAddr>,
    /// `mdev_class`.
    pub class: ResourceClass,
    /// Host-wide cap, at least 1.
    pub max_instances: Option<u32>,
    /// Kept back per provider.
    pub reserved: u32,
    /// Traits of providers with this type.
    pub traits: BTreeSet<TraitName>,
    /// Whether one VM may have several slices of one card; `None`: what is known of the vendor.
    pub several_per_vm: Option<bool>,
}

text_enum!(
    /// What a parent gets that no type lists.
    #[derive(Default)]
    Unlisted, "rule for unlisted parents" {
        /// The first enabled type that it offers.
        #[default]
        First = "first",
        /// The first enabled type that lists no addresses, else nothing: nova's rule since 21.
        Default = "default",
        /// Nothing.
        Ignore = "ignore",
    }
);

text_enum!(
    /// Traits that providers get without a line in `traits.toml`.
    Automatic, "kind of automatic trait" {
        /// What the type can do: displays, CUDA, graphics interfaces.
        Capabilities = "capabilities",
        /// The licence series of NVIDIA's type names, `CUSTOM_VGPU_SERIES_Q`.
        Series = "series",
        /// The type's vendor name, `CUSTOM_NVIDIA_A2_4Q`; never an id.
        TypeName = "type-name",
    }
);

text_enum!(
    /// Which card is filled first.
    #[derive(Default)]
    Packing, "packing" {
        /// The emptiest card.
        #[default]
        Breadth = "breadth",
        /// The fullest card.
        Depth = "depth",
    }
);

text_enum!(
    /// What becomes of a device when its claim ends.
    #[derive(Default)]
    OnRelease, "rule for released devices" {
        /// It is removed.
        #[default]
        Remove = "remove",
        /// It stays, idle, for the next claim of that type on that parent.
        Keep = "keep",
    }
);

text_enum!(
    /// What becomes of the devices of a libvirt user's own domain when it stops.
    #[derive(Default)]
    OnStop, "rule for domains that stop" {
        /// They are given back; its next start gets others under the same UUIDs.
        #[default]
        Release = "release",
        /// They stay booked for it.
        Keep = "keep",
    }
);

/// A configuration that was read and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// What is in force from now on.
    pub config: Config,
    /// What of it has no effect; the rest works.
    pub warnings: Vec<Finding>,
    /// The files it came from, in the order they were read; empty if none exists.
    pub files: Vec<PathBuf>,
}
