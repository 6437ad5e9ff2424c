//! Which local types each trait means on this host, and what is wrong where it means none.
//!
//! The identity of a trait is the lock's, else what it meant before, else what `traits.toml` fits now. What is known wins over
//! the file's words while these still name it, or name nothing that is here: so a driver changes nothing in silence. Words
//! that name another type of this host are an operator's: without a lock they are taken, against a lock they are drift.

use std::collections::{BTreeMap, BTreeSet};

use super::memory::Memory;
use super::sense::{Sense, first_meaning, learn};
use super::{Binding, Catalog, TraitState};
use crate::model::{
    HostScan, Lesson, MdevType, NewShift, Parent, ParentAddr, ShiftKind, TraitName, TypeId, TypeIdentity,
    Word,
};

/// One trait on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// Where it stands.
    pub state: TraitState,
    /// What it is bound to; `None` while that is not known, or not one.
    pub identity: Option<TypeIdentity>,
    /// The types that are it, by parent.
    pub local: BTreeMap<ParentAddr, TypeId>,
    /// What was found in place of it, by parent: types under its id, or that the file's words fit.
    pub instead: BTreeMap<ParentAddr, TypeIdentity>,
    /// Why it is not `Ok`, and what to do; of an `Ok` one, what makes it less safe than others. Empty otherwise.
    pub reason: String,
}

/// All traits of a host.
pub type Resolution = BTreeMap<TraitName, Resolved>;

/// Resolves every trait, and adds what is new to the lesson.
pub fn resolve(
    catalog: &Catalog,
    locked: &BTreeMap<TraitName, TypeIdentity>,
    memory: &Memory,
    scan: &HostScan,
    lesson: &mut Lesson,
) -> Resolution {
    let one = |(name, binding): (&TraitName, &Binding)| {
        let look = Look { name, word: Word::of_trait(name), binding, memory, scan };
        let resolved = match look.expected(locked.get(name)) {
            Ok(Some(identity)) if !locked.contains_key(name) && look.words_differ(&identity) => {
                look.rebound(&identity, lesson)
            }
            Ok(None) => look.by_words(lesson),
            Ok(Some(identity)) => look.by_identity(identity, locked.contains_key(name), lesson),
            Err(two) => look.ambiguous(&two[0], &two[1], BTreeMap::new()),
        };
        (name.clone(), resolved)
    };
    catalog.bindings.iter().map(one).collect()
}

struct Look<'a> {
    name: &'a TraitName,
    word: Word,
    binding: &'a Binding,
    memory: &'a Memory,
    scan: &'a HostScan,
}

impl Look<'_> {
    /// The identity that is known already.
    fn expected(
        &self,
        locked: Option<&TypeIdentity>,
    ) -> Result<Option<TypeIdentity>, Box<[TypeIdentity; 2]>> {
        if let Some(identity) = locked {
            return Ok(Some(identity.clone()));
        }
        let known: BTreeSet<&TypeIdentity> = self.memory.of(&self.word).map(|m| &m.identity).collect();
        let mut known = known.into_iter().cloned();
        match (known.next(), known.next()) {
            (Some(one), Some(other)) => Err(Box::new([one, other])),
            (one, _) => Ok(one),
        }
    }

    /// Every type of the host that the file's words fit.
    fn fitting(&self) -> impl Iterator<Item = (&Parent, &MdevType)> {
        let types = self.scan.parents.iter().flat_map(|p| p.types.iter().map(move |t| (p, t)));
        types.filter(|(p, t)| self.binding.fits(p, t))
    }

    /// Whether the file's words name a type of this host, and it is not this one.
    fn words_differ(&self, identity: &TypeIdentity) -> bool {
        !self.binding.names(identity) && self.fitting().next().is_some()
    }

    /// The operator's words name another type than before: what was meant is history.
    fn rebound(&self, was: &TypeIdentity, lesson: &mut Lesson) -> Resolved {
        let afresh = Look { word: self.word.clone(), memory: &Memory::default(), ..*self };
        let mut fresh = Lesson::default();
        let resolved = afresh.by_words(&mut fresh);
        if resolved.state == TraitState::Ok {
            lesson.forgotten.push(self.word.clone());
            lesson.shifts.extend(fresh.meanings.iter().map(|meaning| NewShift {
                of: meaning.clone(),
                kind: ShiftKind::Accepted,
                was: was.to_string(),
                now: meaning.identity.to_string(),
                reason: "traits.toml names it".to_owned(),
            }));
            lesson.meanings.extend(fresh.meanings);
        }
        resolved
    }

    fn by_words(&self, lesson: &mut Lesson) -> Resolved {
        let identities: BTreeSet<TypeIdentity> =
            self.fitting().map(|(p, t)| self.binding.identity(p, t)).collect();
        let mut each = identities.into_iter();
        match (each.next(), each.next()) {
            (None, _) => self.unavailable(None, &self.binding.type_key),
            (Some(one), None) => self.by_identity(one, false, lesson),
            (Some(one), Some(other)) => {
                let all = self.fitting().map(|(p, t)| (p.addr.clone(), self.binding.identity(p, t)));
                self.ambiguous(&one, &other, all.collect())
            }
        }
    }

    fn by_identity(&self, identity: TypeIdentity, locked: bool, lesson: &mut Lesson) -> Resolved {
        let (mut local, mut instead, mut strays) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for parent in self.scan.parents.iter().filter(|p| self.binding.is_about(p)) {
            match self.sense(&identity, parent, lesson) {
                Sense::Same(t) | Sense::Renumbered(t) | Sense::Renamed(t) => {
                    local.insert(parent.addr.clone(), t.id.clone());
                }
                Sense::Drifted(t) => {
                    instead.insert(parent.addr.clone(), TypeIdentity::of(parent, t));
                }
                Sense::Gone => {
                    let stray = parent.types.iter().find(|t| self.binding.fits(parent, t));
                    strays.extend(stray.map(|t| (parent.addr.clone(), self.binding.identity(parent, t))));
                }
            }
        }
        if locked && self.words_differ(&identity) {
            let named = self.fitting().map(|(p, t)| (p.addr.clone(), self.binding.identity(p, t)));
            instead.extend(named);
        }
        if local.is_empty() {
            instead.append(&mut strays);
        }
        match (instead.first_key_value(), strays.first_key_value()) {
            (Some((parent, now)), _) => {
                let reason = format!(
                    "{} was {identity}, and on {parent} it is {now} now; no new claims until \
                     `mdevirtctl trait accept {} --reason ...`",
                    self.name, self.name
                );
                Resolved { state: TraitState::Drift, identity: Some(identity), local, instead, reason }
            }
            (None, Some((_, stray))) if !locked => {
                let stray = stray.clone();
                self.ambiguous(&identity, &stray, strays)
            }
            (None, _) if local.is_empty() => self.unavailable(Some(identity.clone()), &identity.to_string()),
            (None, _) => {
                let reason = self.unnamed(&identity);
                Resolved { state: TraitState::Ok, identity: Some(identity), local, instead, reason }
            }
        }
    }

    /// What the identity is on one parent, by what is remembered there, else by a first look.
    fn sense<'p>(&self, identity: &TypeIdentity, parent: &'p Parent, lesson: &mut Lesson) -> Sense<'p> {
        let remembered = self.memory.on(&self.word, &parent.addr);
        if let Some(meaning) = remembered {
            let meaning = crate::model::Meaning { identity: identity.clone(), ..meaning.clone() };
            let sense = Sense::of(&meaning, parent);
            learn(&meaning, parent, sense, lesson);
            return sense;
        }
        match parent.types.iter().find(|t| identity.fits(parent, t)) {
            Some(found) => {
                lesson.meanings.push(first_meaning(self.word.clone(), identity.clone(), parent, found));
                Sense::Same(found)
            }
            None => Sense::Gone,
        }
    }

    /// What is to be said of a type that its driver gives no name; empty otherwise.
    fn unnamed(&self, identity: &TypeIdentity) -> String {
        let Some(id) = &identity.type_id else { return String::new() };
        format!(
            "{} is bound to the id {id} on this kind of device, for the driver names no types: less safe, an id may mean \
             another type after an update",
            self.name
        )
    }

    fn unavailable(&self, identity: Option<TypeIdentity>, wanted: &str) -> Resolved {
        let reason = format!("no parent of this host offers {wanted}, which {} is bound to", self.name);
        let (local, instead) = Default::default();
        Resolved { state: TraitState::Unavailable, identity, local, instead, reason }
    }

    fn ambiguous(
        &self,
        one: &TypeIdentity,
        other: &TypeIdentity,
        instead: BTreeMap<ParentAddr, TypeIdentity>,
    ) -> Resolved {
        let reason = format!(
            "{} fits two types of this host, {one} and {other}; narrow it in traits.toml (vendor_id, device_id, framework, \
             framebuffer_mib)",
            self.name
        );
        Resolved { state: TraitState::Ambiguous, identity: None, local: BTreeMap::new(), instead, reason }
    }
}

#[cfg(test)]
mod tests;
