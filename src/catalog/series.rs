//! Whether one VM may have several slices of one GPU: the rows are `series/several_per_vm.toml`.
//!
//! 1. Yes and no are what the vendor states for every driver that can offer the type on this parent. What depends on the
//!    driver's release is no answer: a wrong yes is a VM that does not start, a wrong no is one line of configuration.
//! 2. The first row that fits is the answer.
//! 3. Whether two sizes may be mixed is not told here; one GPU holds one size unless it is switched.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::capability::{self, Architecture, Form};
use super::type_name::{Series, VgpuName};
use crate::model::{Framework, MdevType, Parent};

/// What is known of several slices of one GPU in one VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeveralPerVm {
    /// The vendor's answer; `None` when there is none that holds whatever driver is loaded.
    pub allowed: Option<bool>,
    /// Why, naming the type's series where it has one; empty when nothing at all is known.
    pub reason: String,
}

/// The vendor's answer for a type on a parent.
///
/// # Source
/// NVIDIA vGPU software release notes, "Multiple vGPU Support"; each fact's document in `several_per_vm.toml`.
pub fn several_per_vm(parent: &Parent, mdev_type: &MdevType) -> SeveralPerVm {
    let name = mdev_type.name.as_deref().and_then(VgpuName::parse);
    let Some(row) = rows().iter().find(|row| row.fits(parent, name.as_ref())) else {
        return SeveralPerVm { allowed: None, reason: String::new() };
    };
    let reason = match name {
        Some(name) => format!("{} is {}-series: {}", mdev_type.label(), name.series, row.reason),
        None => row.reason.clone(),
    };
    SeveralPerVm { allowed: row.allowed, reason }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    sources: BTreeMap<String, String>,
    row: Vec<Row>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    #[serde(deserialize_with = "pci_id")]
    vendor: u16,
    frameworks: Option<Vec<Framework>>,
    architectures: Option<Vec<Architecture>>,
    forms: Option<Vec<Form>>,
    series: Option<Vec<Series>>,
    time_sliced: Option<bool>,
    allowed: Option<bool>,
    reason: String,
    source: Vec<String>,
}

impl Row {
    fn fits(&self, parent: &Parent, name: Option<&VgpuName<'_>>) -> bool {
        let card = capability::card(parent);
        parent.vendor_id == Some(self.vendor)
            && is_among(self.frameworks.as_deref(), parent.framework)
            && is_among(self.architectures.as_deref(), card.map(|card| card.architecture))
            && is_among(self.forms.as_deref(), card.map(|card| card.form))
            && is_among(self.series.as_deref(), name.map(|name| name.series))
            && self.time_sliced.is_none_or(|is| name.is_some_and(|name| name.slices.is_none() == is))
    }
}

/// A key that is left out fits everything, one that is there does not fit what is unknown.
fn is_among<T: PartialEq>(wanted: Option<&[T]>, found: Option<T>) -> bool {
    wanted.is_none_or(|wanted| found.is_some_and(|found| wanted.contains(&found)))
}

fn rows() -> &'static [Row] {
    static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
        // As in `capability::table`: `every_row_is_good` reads the same text.
        parse(include_str!("series/several_per_vm.toml")).unwrap_or_default()
    });
    &ROWS
}

fn parse(text: &str) -> Result<Vec<Row>, String> {
    let file: File = toml::from_str(text).map_err(|err| err.to_string())?;
    for row in &file.row {
        let sourced = !row.source.is_empty() && row.source.iter().all(|key| file.sources.contains_key(key));
        let said = !row.reason.is_empty();
        if !(sourced && said) {
            return Err(format!("a row lacks a known source or a reason: {row:?}"));
        }
    }
    Ok(file.row)
}

fn pci_id<'de, D: Deserializer<'de>>(from: D) -> Result<u16, D::Error> {
    let text = String::deserialize(from)?;
    u16::from_str_radix(&text, 16).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests;
