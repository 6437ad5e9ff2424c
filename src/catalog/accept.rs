//! An operator takes what a word means now for what it shall mean: `mdevirtctl trait accept`.

use std::collections::BTreeSet;

use super::memory::Memory;
use super::resolve::Resolved;
use super::sense::{Sense, first_meaning};
use super::{Binding, TraitState};
use crate::model::{
    HostScan, Lesson, MdevType, Meaning, NewShift, Parent, ParentAddr, ShiftKind, TraitName, TypeIdentity,
    Word,
};

/// Why there is nothing to accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AcceptError {
    /// The word has not drifted.
    #[error("accept {0}: it has not drifted: {1}")]
    NotDrifted(String, String),
    /// Its parents show different types.
    #[error("accept {word}: its parents show different types, {}; name the one to take with --parent", .found.join(", "))]
    Several {
        /// The word.
        word: String,
        /// Each with its parent.
        found: Vec<String>,
    },
    /// The given parent shows nothing in its place.
    #[error("accept {word}: {parent} does not show another type for it")]
    NotThere {
        /// The word.
        word: String,
        /// As given.
        parent: ParentAddr,
    },
}

/// What an operator accepts.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'a> {
    /// The parent whose type is taken, where parents differ.
    pub parent: Option<&'a ParentAddr>,
    /// Why, for the history.
    pub reason: &'a str,
}

/// Binds a drifted trait to what is found in its place. Enabled types that drifted with it on the same parents follow.
///
/// # Errors
/// See [`AcceptError`]; nothing is changed.
pub fn accept_trait(
    name: &TraitName,
    binding: &Binding,
    resolved: &Resolved,
    wish: Wish<'_>,
    (memory, scan): (&Memory, &HostScan),
) -> Result<(TypeIdentity, Lesson), AcceptError> {
    if resolved.state != TraitState::Drift {
        let why = if resolved.reason.is_empty() { "it is as it was bound" } else { &resolved.reason };
        return Err(AcceptError::NotDrifted(name.to_string(), why.to_owned()));
    }
    let identity = chosen(name, resolved, wish.parent)?;
    let word = Word::of_trait(name);
    let mut lesson = Lesson { forgotten: vec![word.clone()], ..Lesson::default() };
    for parent in scan.parents.iter().filter(|p| binding.is_about(p)) {
        let Some(now) = parent.types.iter().find(|t| identity.fits(parent, t)) else { continue };
        let fresh = first_meaning(word.clone(), identity.clone(), parent, now);
        let was = resolved.identity.as_ref().map(ToString::to_string).unwrap_or_default();
        lesson.shifts.push(accepted(&fresh, was, wish.reason));
        lesson.meanings.push(fresh);
        follow(parent, now, memory, wish.reason, &mut lesson);
    }
    Ok((identity, lesson))
}

/// Takes the type that an enabled key has drifted to, on every parent where it has.
///
/// # Errors
/// See [`AcceptError`]; nothing is changed.
pub fn accept_type(
    key: &str,
    wish: Wish<'_>,
    memory: &Memory,
    scan: &HostScan,
) -> Result<Lesson, AcceptError> {
    let mut lesson = Lesson::default();
    for meaning in memory.of(&Word::mdev_type(key)) {
        let Some(parent) = scan.parent(&meaning.parent) else { continue };
        if wish.parent.is_none_or(|only| *only == parent.addr)
            && let Sense::Drifted(now) = Sense::of(meaning, parent)
        {
            take(meaning, parent, now, wish.reason, &mut lesson);
        }
    }
    match (lesson.meanings.is_empty(), wish.parent) {
        (false, _) => Ok(lesson),
        (true, Some(parent)) => Err(AcceptError::NotThere { word: key.to_owned(), parent: parent.clone() }),
        (true, None) => {
            Err(AcceptError::NotDrifted(key.to_owned(), "each parent has what was enabled".to_owned()))
        }
    }
}

fn chosen(
    name: &TraitName,
    resolved: &Resolved,
    parent: Option<&ParentAddr>,
) -> Result<TypeIdentity, AcceptError> {
    let word = name.to_string();
    if let Some(parent) = parent {
        let found = resolved.instead.get(parent).cloned();
        return found.ok_or_else(|| AcceptError::NotThere { word, parent: parent.clone() });
    }
    let all: BTreeSet<&TypeIdentity> = resolved.instead.values().collect();
    match all.first() {
        Some(one) if all.len() == 1 => Ok((*one).clone()),
        Some(_) | None => {
            let found = resolved.instead.iter().map(|(parent, identity)| format!("{identity} on {parent}"));
            Err(AcceptError::Several { word, found: found.collect() })
        }
    }
}

/// Enabled types that have drifted to the same type on this parent.
fn follow(parent: &Parent, now: &MdevType, memory: &Memory, reason: &str, lesson: &mut Lesson) {
    for word in memory.words().filter(|word| word.kind == crate::model::WordKind::Type) {
        let Some(meaning) = memory.on(word, &parent.addr) else { continue };
        if matches!(Sense::of(meaning, parent), Sense::Drifted(found) if found.id == now.id) {
            take(meaning, parent, now, reason, lesson);
        }
    }
}

fn take(was: &Meaning, parent: &Parent, now: &MdevType, reason: &str, lesson: &mut Lesson) {
    let fresh = first_meaning(was.word.clone(), TypeIdentity::of(parent, now), parent, now);
    lesson.shifts.push(accepted(&fresh, was.identity.to_string(), reason));
    lesson.meanings.push(fresh);
}

fn accepted(fresh: &Meaning, was: String, reason: &str) -> NewShift {
    let now = fresh.identity.to_string();
    NewShift { of: fresh.clone(), kind: ShiftKind::Accepted, was, now, reason: reason.to_owned() }
}
