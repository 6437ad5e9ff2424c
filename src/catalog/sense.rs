//! What a word that had a meaning on a parent means there now, and what is learned from it.
//!
//! | the parent offers | outcome |
//! |---|---|
//! | the identity, under the same id | `Same` |
//! | the identity, under another id | `Renumbered` |
//! | under the same id, a type that differs in the brand word of its name alone | `Renamed`: the identity stays |
//! | under the same id, anything else | `Drifted` |
//! | none of these | `Gone` |

use crate::model::{Lesson, MdevType, Meaning, NewShift, Parent, ShiftKind, TypeId, TypeIdentity, Word};

/// See the head of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sense<'a> {
    /// As it was.
    Same(&'a MdevType),
    /// The identity has another local id.
    Renumbered(&'a MdevType),
    /// The vendor has another brand; the identity stays.
    Renamed(&'a MdevType),
    /// What has the id now is something else.
    Drifted(&'a MdevType),
    /// Neither the identity nor the id is offered.
    Gone,
}

impl<'a> Sense<'a> {
    /// Looks a meaning up on its parent.
    pub fn of(meaning: &Meaning, parent: &'a Parent) -> Self {
        Self::look(&meaning.identity, &meaning.type_id, parent)
    }

    /// Looks up what had this id. A type is looked for by its identity first, under whatever id.
    pub fn look(identity: &TypeIdentity, type_id: &TypeId, parent: &'a Parent) -> Self {
        let under_id = parent.mdev_type(type_id);
        let fits = |t: &&MdevType| identity.fits(parent, t);
        match (under_id.filter(fits), parent.types.iter().find(fits), under_id) {
            (Some(same), _, _) => Self::Same(same),
            (None, Some(other), _) => Self::Renumbered(other),
            (None, None, Some(now)) => {
                let found = TypeIdentity::of(parent, now);
                if identity.differs_in_brand_only(&found) { Self::Renamed(now) } else { Self::Drifted(now) }
            }
            (None, None, None) => Self::Gone,
        }
    }
}

/// Adds what follows from a sense to a lesson: a move is written once, when it is first seen.
pub fn learn(meaning: &Meaning, parent: &Parent, sense: Sense<'_>, lesson: &mut Lesson) {
    let (now, shift) = match sense {
        Sense::Gone => return,
        Sense::Same(t) => (t, None),
        Sense::Renumbered(t) => {
            (t, Some((ShiftKind::Renumbered, meaning.type_id.to_string(), t.id.to_string())))
        }
        Sense::Renamed(t) => {
            (t, Some((ShiftKind::Renamed, meaning.identity.label().to_owned(), t.label().to_owned())))
        }
        Sense::Drifted(t) => {
            let found = TypeIdentity::of(parent, t).to_string();
            (t, Some((ShiftKind::Drifted, meaning.identity.to_string(), found)))
        }
    };
    let fresh = Meaning { type_id: now.id.clone(), seen: TypeIdentity::of(parent, now), ..meaning.clone() };
    if fresh == *meaning {
        return;
    }
    lesson.shifts.extend(shift.map(|(kind, was, now)| NewShift {
        of: meaning.clone(),
        kind,
        was,
        now,
        reason: String::new(),
    }));
    lesson.meanings.push(fresh);
}

/// A word means a type for the first time on this parent.
pub fn first_meaning(word: Word, identity: TypeIdentity, parent: &Parent, mdev_type: &MdevType) -> Meaning {
    Meaning {
        word,
        parent: parent.addr.clone(),
        identity,
        type_id: mdev_type.id.clone(),
        seen: TypeIdentity::of(parent, mdev_type),
    }
}
