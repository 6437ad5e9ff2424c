//! Keys and values to a request.

use std::collections::{BTreeMap, BTreeSet};

use super::super::id::InvalidName;
use super::group::GroupDraft;
use super::text::LIST;
use super::{FromSpecs, MAX_DEVICES, NumaPolicy, Request, foreign};

/// nova's key for the NUMA nodes of PCI devices.
const NOVA_NUMA: &str = "hw:pci_numa_affinity_policy";

/// Who wrote the keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Writer {
    /// Somebody who asks mdevirt, so that every key is meant for it.
    Person,
    /// A service that hands on all keys that a flavor has.
    Orchestrator,
}

/// A request while it is read.
pub(super) struct Draft {
    writer: Writer,
    seen: BTreeSet<String>,
    groups: BTreeMap<String, GroupDraft>,
    isolate: bool,
    numa: Option<NumaPolicy>,
    ignored: Vec<String>,
}

impl Draft {
    pub(super) fn new(writer: Writer) -> Self {
        let (seen, groups) = Default::default();
        Self { writer, seen, groups, isolate: false, numa: None, ignored: Vec::new() }
    }

    pub(super) fn take(&mut self, key: &str, value: &str) -> Result<(), InvalidName> {
        let (front, word) = match key.split_once(':') {
            Some((front, word)) => (front, Some(word)),
            None => (key, None),
        };
        // A list may be given in parts, as a query to Placement may.
        let may_repeat = word.is_none() && front.starts_with(LIST);
        if !self.seen.insert(key.to_owned()) && !may_repeat {
            return Err(InvalidName::new("flavor extra spec", key, "the key is given twice"));
        }
        match (front, word) {
            ("group_policy", None) => self.policy(value),
            ("numa", None) => self.numa(numa(value)?),
            ("hw", Some(_)) if key == NOVA_NUMA => self.numa(nova_numa(value)?),
            (_, Some(word)) => {
                if let Some(suffix) = front.strip_prefix("resources") {
                    self.resource(suffix, key, word, value)
                } else if let Some(suffix) = front.strip_prefix("trait") {
                    self.wish(suffix, key, word, value)
                } else {
                    self.unknown(key)
                }
            }
            (_, None) => match front.strip_prefix(LIST) {
                Some(suffix) => self.group(suffix)?.list(key, value),
                None => self.unknown(key),
            },
        }
    }

    fn policy(&mut self, value: &str) -> Result<(), InvalidName> {
        self.isolate = match value {
            "isolate" => true,
            "none" => false,
            _ => return Err(InvalidName::new("group_policy", value, "expected isolate or none")),
        };
        Ok(())
    }

    fn numa(&mut self, policy: NumaPolicy) -> Result<(), InvalidName> {
        match self.numa.replace(policy) {
            Some(other) if other != policy => {
                let why = "numa and hw:pci_numa_affinity_policy do not say the same";
                Err(InvalidName::new("NUMA policy", policy.as_str(), why))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn resource(&mut self, suffix: &str, key: &str, class: &str, count: &str) -> Result<(), InvalidName> {
        let foreign = self.writer == Writer::Orchestrator && foreign::is_class(class);
        let group = self.group(suffix)?;
        if foreign {
            group.foreign_resource();
            self.ignored.push(key.to_owned());
            return Ok(());
        }
        group.resource(class, count)
    }

    fn wish(&mut self, suffix: &str, key: &str, name: &str, value: &str) -> Result<(), InvalidName> {
        if self.writer == Writer::Orchestrator && suffix.is_empty() && foreign::is_trait(name) {
            self.ignored.push(key.to_owned());
            return Ok(());
        }
        self.group(suffix)?.wish(key, name, value)
    }

    fn unknown(&mut self, key: &str) -> Result<(), InvalidName> {
        if self.writer == Writer::Orchestrator && foreign::is_key(key) {
            self.ignored.push(key.to_owned());
            return Ok(());
        }
        let why = "expected resources:, trait:, required, group_policy or numa";
        Err(InvalidName::new("flavor extra spec", key, why))
    }

    fn group(&mut self, suffix: &str) -> Result<&mut GroupDraft, InvalidName> {
        check_suffix(suffix)?;
        Ok(self.groups.entry(suffix.to_owned()).or_default())
    }

    pub(super) fn finish(mut self) -> Result<FromSpecs, InvalidName> {
        let mut drafts: Vec<(String, GroupDraft)> = self.groups.into_iter().collect();
        drafts.sort_by(|(a, _), (b, _)| suffix_order(a).cmp(&suffix_order(b)));
        let may_be_foreign = self.writer == Writer::Orchestrator;
        let mut groups = Vec::new();
        for (suffix, draft) in drafts {
            groups.extend(draft.finish(&suffix, may_be_foreign, &mut self.ignored)?);
        }
        let request = Request { groups, isolate: self.isolate, numa: self.numa.unwrap_or_default() };
        match request.device_count() {
            0 => {
                let why = "it asks for no virtual device (resources:VGPU=1, for example)";
                Err(InvalidName::new("flavor", "", why))
            }
            n if n > MAX_DEVICES => {
                Err(InvalidName::new("flavor", &n.to_string(), "more than 64 devices for one VM"))
            }
            _ => {
                self.ignored.sort();
                self.ignored.dedup();
                Ok(FromSpecs { request, ignored: self.ignored })
            }
        }
    }
}

fn numa(value: &str) -> Result<NumaPolicy, InvalidName> {
    value.parse().map_err(|_| InvalidName::new("numa", value, "expected required, preferred or ignore"))
}

/// nova's words in ours. `legacy` is nova's default and so becomes ours; `socket` becomes the narrower `required`,
/// which never breaks its promise.
///
/// # Source
/// nova "Extra specs", `hw:pci_numa_affinity_policy`.
fn nova_numa(value: &str) -> Result<NumaPolicy, InvalidName> {
    match value {
        "required" | "socket" => Ok(NumaPolicy::Required),
        "preferred" | "legacy" => Ok(NumaPolicy::Preferred),
        _ => Err(InvalidName::new(NOVA_NUMA, value, "expected required, socket, preferred or legacy")),
    }
}

/// No suffix, then numbers by value, then words.
fn suffix_order(suffix: &str) -> (u8, usize, &str) {
    let digits = suffix.trim_start_matches('0');
    match suffix {
        "" => (0, 0, suffix),
        _ if suffix.bytes().all(|b| b.is_ascii_digit()) => (1, digits.len(), digits),
        _ => (2, 0, suffix),
    }
}

/// Placement's group suffix: up to 64 of letters, digits, `_`, `-`.
fn check_suffix(suffix: &str) -> Result<(), InvalidName> {
    let plain =
        suffix.len() <= 64 && suffix.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if plain { Ok(()) } else { Err(InvalidName::new("group suffix", suffix, "expected [A-Za-z0-9_-]{0,64}")) }
}
