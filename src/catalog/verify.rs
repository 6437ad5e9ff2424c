//! Whether hosts agree on what traits mean. Pure and without order of hosts but for ties.
//!
//! What is expected is what most hosts say:
//! 1. A trait is expected where at least half of the hosts have it; else those that have it are the difference.
//! 2. The expected identity is the one that most hosts with a known identity have; of a tie, the one that comes first in the
//!    order of the exports. The expected lock likewise, and no lock is a lock of its own.
//! 3. The expected state is `ok` as soon as one host says so, else what most hosts say: four hosts with a card are not wrong
//!    because five have none.
//! 4. One difference for each trait and host, the gravest: another identity, then another state.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use serde::{Serialize, Serializer};

use super::canonical::IdentityForm;
use super::{Export, Exported, LockMark, TraitState};
use crate::model::{TraitName, TypeIdentity};

/// Whether hosts agree, and where they do not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// There is no difference.
    pub agree: bool,
    /// How many exports were compared.
    pub hosts: usize,
    /// How many traits they have together.
    pub traits: usize,
    /// About locks first, then by trait; hosts in the order of the exports.
    pub differences: Vec<Difference>,
}

/// One host that says something else than is expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Which trait; `None` if it is about the host's lock.
    #[serde(rename = "trait")]
    pub trait_name: Option<TraitName>,
    /// Which host.
    pub host: String,
    /// What differs.
    pub kind: DifferenceKind,
    /// Type name of the identity there, or the id in its place.
    pub type_name: Option<String>,
    /// Type name of the expected identity.
    pub expected: Option<String>,
    /// The identity there in full.
    #[serde(serialize_with = "written")]
    pub identity: Option<TypeIdentity>,
    /// The expected one in full.
    #[serde(serialize_with = "written")]
    pub expected_identity: Option<TypeIdentity>,
    /// The state there; `None` if the trait is not there, or for a lock.
    pub state: Option<TraitState>,
    /// The expected state; `None` if the trait is not expected, or for a lock.
    pub expected_state: Option<TraitState>,
    /// The lock there; only if it differs.
    pub lock: Option<LockMark>,
    /// The expected lock; only if another one is there.
    pub expected_lock: Option<LockMark>,
}

/// What differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DifferenceKind {
    /// The lock: another revision or digest, or there is none.
    Lock,
    /// The trait is not there.
    Missing,
    /// The trait is there and on most hosts it is not.
    Extra,
    /// The trait means another type.
    Identity,
    /// The trait means the same and stands otherwise.
    State,
}

/// Compares exports; none, or one, agree.
pub fn verify(exports: &[Export]) -> Verdict {
    let mut by_trait: BTreeMap<&TraitName, Vec<(usize, &Exported)>> = BTreeMap::new();
    for (at, export) in exports.iter().enumerate() {
        for (name, exported) in &export.traits {
            by_trait.entry(name).or_default().push((at, exported));
        }
    }
    let mut differences = locks(exports);
    for (name, there) in &by_trait {
        of_trait(exports, name, there, &mut differences);
    }
    Verdict { agree: differences.is_empty(), hosts: exports.len(), traits: by_trait.len(), differences }
}

/// What most say; of a tie, what was said first.
fn majority<T: Hash + Eq + Copy>(votes: impl Iterator<Item = T>) -> Option<T> {
    let mut counts: HashMap<T, (usize, usize)> = HashMap::new();
    for (at, vote) in votes.enumerate() {
        counts.entry(vote).or_insert((0, usize::MAX - at)).0 += 1;
    }
    counts.into_iter().max_by_key(|(_, rank)| *rank).map(|(vote, _)| vote)
}

fn locks(exports: &[Export]) -> Vec<Difference> {
    let expected = majority(exports.iter().map(|export| export.lock.as_ref())).flatten();
    let others = exports.iter().filter(|export| export.lock.as_ref() != expected);
    let difference = |export: &Export| Difference {
        lock: export.lock.clone(),
        expected_lock: expected.cloned(),
        ..Difference::new(None, export, DifferenceKind::Lock)
    };
    others.map(difference).collect()
}

fn of_trait(
    exports: &[Export],
    name: &TraitName,
    there: &[(usize, &Exported)],
    differences: &mut Vec<Difference>,
) {
    let identity = majority(there.iter().filter_map(|(_, exported)| exported.identity.as_ref()));
    let states = || there.iter().map(|(_, exported)| exported.state);
    let state =
        if states().any(|state| state == TraitState::Ok) { Some(TraitState::Ok) } else { majority(states()) };
    let wanted = there.len() * 2 >= exports.len();
    let expected = if wanted { Expected { identity, state } } else { Expected::default() };
    let mut there = there.iter().peekable();
    for (at, export) in exports.iter().enumerate() {
        let here = there.next_if(|(host, _)| *host == at).map(|(_, exported)| *exported);
        if let Some(kind) = expected.kind(here) {
            differences.push(expected.difference(name, export, here, kind));
        }
    }
}

/// What is expected of a trait on every host.
#[derive(Default)]
struct Expected<'a> {
    identity: Option<&'a TypeIdentity>,
    /// `None` if the trait is not expected.
    state: Option<TraitState>,
}

impl Expected<'_> {
    fn kind(&self, here: Option<&Exported>) -> Option<DifferenceKind> {
        let (here, state) = match (here, self.state) {
            (Some(here), Some(state)) => (here, state),
            (Some(_), None) => return Some(DifferenceKind::Extra),
            (None, Some(_)) => return Some(DifferenceKind::Missing),
            (None, None) => return None,
        };
        let other = here.identity.as_ref() != self.identity;
        if other && here.identity.is_some() {
            Some(DifferenceKind::Identity)
        } else if here.state != state {
            Some(DifferenceKind::State)
        } else {
            other.then_some(DifferenceKind::Identity)
        }
    }

    fn difference(
        &self,
        name: &TraitName,
        export: &Export,
        here: Option<&Exported>,
        kind: DifferenceKind,
    ) -> Difference {
        let identity = here.and_then(|here| here.identity.as_ref());
        let label = |identity: &TypeIdentity| identity.label().to_owned();
        Difference {
            type_name: identity.map(label),
            expected: self.identity.map(label),
            identity: identity.cloned(),
            expected_identity: self.identity.cloned(),
            state: here.map(|here| here.state),
            expected_state: self.state,
            ..Difference::new(Some(name), export, kind)
        }
    }
}

impl Difference {
    fn new(name: Option<&TraitName>, export: &Export, kind: DifferenceKind) -> Self {
        Self {
            trait_name: name.cloned(),
            host: export.host.clone(),
            kind,
            type_name: None,
            expected: None,
            identity: None,
            expected_identity: None,
            state: None,
            expected_state: None,
            lock: None,
            expected_lock: None,
        }
    }
}

fn written<S: Serializer>(identity: &Option<TypeIdentity>, serializer: S) -> Result<S::Ok, S::Error> {
    identity.as_ref().map(IdentityForm::of).serialize(serializer)
}

#[cfg(test)]
mod tests;
