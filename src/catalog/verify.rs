//! Whether any number of hosts mean the same by their traits: `mdevirtctl trait verify`.
//!
//! What is expected is what most hosts have; where two meanings are equally common, that of the host that comes first. A
//! host is compared trait by trait; the locks are compared as one line, for a trait in a lock alone has no meaning yet.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use serde::{Deserialize, Serialize};

use super::export::{Export, LockMark};
use crate::model::{TraitName, TypeIdentity};

/// Name of the line that compares the locks.
pub const LOCK_LINE: &str = "traits.lock";

/// The outcome (`trait verify --json`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether nothing differs.
    pub agree: bool,
    /// How many hosts were compared.
    pub hosts: usize,
    /// What differs, in the order of traits and hosts.
    pub differences: Vec<Difference>,
}

/// One host that means something else by one trait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The trait, or [`LOCK_LINE`].
    #[serde(rename = "trait")]
    pub name: String,
    /// The host.
    pub host: String,
    /// Vendor name of the type there, or why there is none.
    pub type_name: String,
    /// The same of most hosts.
    pub expected: String,
    /// What the trait means there, in full.
    pub identity: Option<TypeIdentity>,
    /// What it means on most hosts, in full.
    pub expected_identity: Option<TypeIdentity>,
}

/// Compares hosts.
pub fn verify(exports: &[Export]) -> Verdict {
    let names: BTreeSet<&TraitName> = exports.iter().flat_map(|export| export.traits.keys()).collect();
    let mut differences = locks(exports);
    differences.extend(names.into_iter().flat_map(|name| of_trait(name, exports)));
    Verdict { agree: differences.is_empty(), hosts: exports.len(), differences }
}

fn of_trait(name: &TraitName, exports: &[Export]) -> Vec<Difference> {
    let meant = |export: &Export| export.traits.get(name).map(|one| (one.state, one.identity.clone()));
    let all: Vec<_> = exports.iter().map(meant).collect();
    // A drifted trait still means what it was bound to: hosts are compared by that, and each is told how it stands.
    let expected = most(all.iter().map(|one| one.as_ref().and_then(|(_, identity)| identity.as_ref())));
    let differs = |index: &usize| {
        let here = all[*index].as_ref();
        let healthy = here.is_some_and(|(state, _)| *state == super::TraitState::Ok);
        here.and_then(|(_, identity)| identity.as_ref()) != expected || !healthy
    };
    let line = |index: usize| {
        let identity = all[index].as_ref().and_then(|(_, identity)| identity.clone());
        Difference {
            name: name.to_string(),
            host: exports[index].host.clone(),
            type_name: label(all[index].as_ref()),
            expected: expected.map_or_else(|| "no type".to_owned(), |e| e.label().to_owned()),
            identity,
            expected_identity: expected.cloned(),
        }
    };
    (0..exports.len()).filter(differs).map(line).collect()
}

fn label(meant: Option<&(super::TraitState, Option<TypeIdentity>)>) -> String {
    match meant {
        None => "not in its traits.toml".to_owned(),
        Some((super::TraitState::Ok, Some(identity))) => identity.label().to_owned(),
        Some((state, Some(identity))) => format!("{}, {state}", identity.label()),
        Some((state, None)) => state.to_string(),
    }
}

fn locks(exports: &[Export]) -> Vec<Difference> {
    let expected = most(exports.iter().map(|export| export.lock.as_ref().map(|lock| lock.digest)));
    let shown = |lock: Option<&LockMark>| match lock {
        Some(lock) => format!("{} (revision {})", lock.digest.short(), lock.revision),
        None => "no lock".to_owned(),
    };
    let usual =
        exports.iter().map(|export| export.lock.as_ref()).find(|lock| lock.map(|l| l.digest) == expected);
    let other = exports.iter().filter(|export| export.lock.as_ref().map(|lock| lock.digest) != expected);
    other
        .map(|export| Difference {
            name: LOCK_LINE.to_owned(),
            host: export.host.clone(),
            type_name: shown(export.lock.as_ref()),
            expected: shown(usual.flatten()),
            identity: None,
            expected_identity: None,
        })
        .collect()
}

/// What is there most often; what is there at all goes before what is not, and among equals the first.
fn most<T: Copy + Eq + Hash>(all: impl Iterator<Item = Option<T>>) -> Option<T> {
    let mut counts: HashMap<T, (usize, usize)> = HashMap::new();
    for (index, one) in all.enumerate() {
        if let Some(one) = one {
            counts.entry(one).or_insert((0, index)).0 += 1;
        }
    }
    counts.into_iter().max_by_key(|(_, (count, first))| (*count, usize::MAX - first)).map(|(one, _)| one)
}

#[cfg(test)]
mod tests;
