//! Which configured type each parent of this host gets, and what of the configuration has no effect here.

use std::collections::BTreeMap;

use crate::config::{Config, EnabledType};
use crate::model::{Finding, HostScan, MdevType, Parent, ParentAddr};

/// A parent with the type that the configuration gives it.
#[derive(Debug, Clone, Copy)]
pub struct Assigned<'a> {
    /// The parent.
    pub parent: &'a Parent,
    /// The configured type as this parent offers it.
    pub mdev_type: &'a MdevType,
    /// The table it comes from.
    pub rule: &'a EnabledType,
}

/// The outcome for one host.
#[derive(Debug, Clone, Default)]
pub struct Mapping<'a> {
    /// Parents that have a type, in address order.
    pub assigned: BTreeMap<&'a ParentAddr, Assigned<'a>>,
    /// Parents that have none, with the reason.
    pub without: BTreeMap<&'a ParentAddr, String>,
    /// Warnings of section "configuration": an address no device has, a type a configured parent does not offer (with
    /// what it does offer), two sizes configured on one card.
    pub findings: Vec<Finding>,
}

/// Gives each parent its type.
pub fn assign<'a>(_config: &'a Config, _scan: &'a HostScan) -> Mapping<'a> {
    Mapping::default()
}
