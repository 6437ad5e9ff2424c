//! What a word of the operator's (a trait, an enabled type) meant on a parent, and what became of it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::address::ParentAddr;
use super::claim::text_enum;
use super::id::{InvalidName, Usec};
use super::identity::TypeIdentity;
use super::mdev_type::TypeId;

text_enum!(
    /// Where a word stands.
    WordKind, "kind of word" {
        /// A key of `enabled_mdev_types`.
        Type = "type",
        /// A trait of `traits.toml`.
        Trait = "trait",
    }
);

/// A word whose meaning is kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Word {
    /// Where it stands.
    pub kind: WordKind,
    /// As written.
    pub text: String,
}

impl Word {
    /// A key of `enabled_mdev_types`.
    pub fn mdev_type(key: &str) -> Self {
        Self { kind: WordKind::Type, text: key.to_owned() }
    }

    /// A trait.
    pub fn of_trait(name: &super::vocab::TraitName) -> Self {
        Self { kind: WordKind::Trait, text: name.to_string() }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.text.escape_debug())
    }
}

/// What a word means on one parent. It stays until an operator accepts another identity or drops the word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meaning {
    /// The word.
    pub word: Word,
    /// Where.
    pub parent: ParentAddr,
    /// What is meant.
    pub identity: TypeIdentity,
    /// The local id under which it was last seen.
    pub type_id: TypeId,
    /// What had that id at the last look, so that a change is told once.
    pub seen: TypeIdentity,
}

text_enum!(
    /// What became of a meaning.
    ShiftKind, "kind of shift" {
        /// The identity has another local id.
        Renumbered = "renumbered",
        /// The vendor's name has another first word; the identity stays.
        Renamed = "renamed",
        /// The local id is another type now.
        Drifted = "drifted",
        /// An operator took another identity.
        Accepted = "accepted",
    }
);

/// One line of a word's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shift {
    /// When it was noticed.
    pub at_usec: Usec,
    /// The word.
    pub word: Word,
    /// Where.
    pub parent: ParentAddr,
    /// What happened.
    pub kind: ShiftKind,
    /// What it was: a local id, a name, an identity.
    pub was: String,
    /// What it is.
    pub now: String,
    /// The operator's reason, empty otherwise.
    pub reason: String,
}

/// What one look at the host taught.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lesson {
    /// Meanings that are new, or not what they were.
    pub meanings: Vec<Meaning>,
    /// What became of earlier ones.
    pub shifts: Vec<NewShift>,
    /// Words that nothing names any more; their meanings are dropped, their history stays.
    pub forgotten: Vec<Word>,
}

impl Lesson {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.meanings.is_empty() && self.shifts.is_empty() && self.forgotten.is_empty()
    }
}

/// A [`Shift`] that has no time yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewShift {
    /// The meaning before it.
    pub of: Meaning,
    /// What happened.
    pub kind: ShiftKind,
    /// What it was.
    pub was: String,
    /// What it is.
    pub now: String,
    /// The operator's reason.
    pub reason: String,
}
