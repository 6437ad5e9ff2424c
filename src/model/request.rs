//! Flavor extra specs, the request language: text in, groups out.
//!
//! | key | value |
//! |---|---|
//! | `resources{S}:CLASS` | how many slices, 0 to 64 |
//! | `trait{S}:NAME` | `required` or `forbidden` |
//! | `required{S}` | `A,!B`: A required, B forbidden; `in:A,B`: at least one of them. May be repeated |
//! | `group_policy` | `isolate` or `none` |
//! | `numa` | `required`, `preferred` or `ignore`; nova's `hw:pci_numa_affinity_policy` says the same |
//!
//! `{S}` is empty, a number or a word; the same suffix makes one group.
//!
//! 1. What a [`Request`] shows (its `Display`) is read back as the same request (`tests`, property).
//! 2. In the text that a person writes an unknown key is an error. In an orchestrator's map it may be another
//!    service's: it is left alone and told ([`FromSpecs::ignored`]), unless it looks like one of ours misspelt.
//! 3. Any well-formed trait may be asked for; whether a type has it is decided on the host.

mod draft;
mod foreign;
mod group;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::claim::text_enum;
use super::id::InvalidName;
use super::vocab::{ResourceClass, TraitName};

use draft::{Draft, Writer};

/// One granular group: devices of one class that come from one parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// `""` for the unnumbered group, else the suffix (`1`, `_gpu`).
    pub suffix: String,
    /// What is wanted.
    pub class: ResourceClass,
    /// How many of it.
    pub count: u32,
    /// Traits the parent's type must have.
    pub required: BTreeSet<TraitName>,
    /// Traits it must not have.
    pub forbidden: BTreeSet<TraitName>,
    /// Lists of which it must have at least one trait each; a list has two traits or more.
    #[serde(default)]
    pub any_of: Vec<BTreeSet<TraitName>>,
}

text_enum!(
    /// What a request wants of the NUMA nodes of a device and of the domain's memory.
    #[derive(Default)]
    NumaPolicy, "NUMA policy" {
        /// The same node, or no device.
        Required = "required",
        /// The same node if there is room, else any.
        #[default]
        Preferred = "preferred",
        /// Nodes are not looked at.
        Ignore = "ignore",
    }
);

/// A parsed request for virtual devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Groups in the order of their suffixes: none, numbers by value, words.
    pub groups: Vec<Group>,
    /// `group_policy=isolate`: numbered groups go to different parents.
    pub isolate: bool,
    /// `numa`.
    #[serde(default)]
    pub numa: NumaPolicy,
}

/// What was found in a flavor's extra specs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FromSpecs {
    /// What is asked of mdevirt.
    pub request: Request,
    /// Keys that are for others, in order.
    pub ignored: Vec<String>,
}

/// More devices than any VM can take; a bound against nonsense, not a hardware fact.
const MAX_DEVICES: u32 = 64;

impl Request {
    /// Reads `resources:VGPU=1,trait:CUSTOM_X=required`, the form of the command line and of domain metadata.
    ///
    /// Parts are separated by commas or line ends, and empty ones are skipped. A part without `=` goes on with the list
    /// of a `required{S}` before it: `required1=in:CUSTOM_A,CUSTOM_B`.
    ///
    /// # Source
    /// nova "Flavors / extra specs": `resources{N}:CLASS`, `trait{N}:NAME`, `group_policy`. OpenStack Placement API,
    /// `GET /allocation_candidates`, `required{S}`; `in:` since microversion 1.39, suffixes that are words since 1.33.
    ///
    /// # Errors
    /// Names the part that is not understood, contradicts another, or is over a limit.
    pub fn parse(flavor: &str) -> Result<Self, InvalidName> {
        let mut draft = Draft::new(Writer::Person);
        for (key, value) in text::pairs(flavor)? {
            draft.take(key, &value)?;
        }
        draft.finish().map(|read| read.request)
    }

    /// Reads the extra specs of a flavor as an orchestrator has them, those for other services among them.
    ///
    /// Left alone are: keys with another front (`hw:`, `quota:`, `os:`, ...), as nova leaves them to whoever knows
    /// them; standard resource classes other than `VGPU`; traits of the compute node in the unnumbered group
    /// (`COMPUTE_..`, `HW_CPU_..`), and all of its traits if it asks for no resource of ours.
    ///
    /// # Errors
    /// As for [`Request::parse`]; a key that looks like one of ours misspelt is refused.
    pub fn from_specs(specs: &BTreeMap<String, String>) -> Result<FromSpecs, InvalidName> {
        text::check_size(specs.iter().map(|(key, value)| key.len() + value.len()))?;
        let mut draft = Draft::new(Writer::Orchestrator);
        for (key, value) in specs {
            draft.take(key, value)?;
        }
        draft.finish()
    }

    /// How many devices are wanted in all.
    pub fn device_count(&self) -> u32 {
        self.groups.iter().map(|g| g.count).sum()
    }
}

impl FromStr for Request {
    type Err = InvalidName;
    fn from_str(flavor: &str) -> Result<Self, InvalidName> {
        Self::parse(flavor)
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::canonical(self))
    }
}

#[cfg(test)]
mod tests;
