//! `traits.lock`: each trait pinned to one type identity, made on one host and shipped to the rest.
//!
//! TOML, because people read it and keep it under version control: one trait is one block, blocks are sorted, one
//! acceptance is one block below its trait. The file carries the [`digest`] of what it says, so a trait that is changed
//! by hand is noticed; a comment or a reason that is mended is not.

mod read;
mod write;

use std::collections::BTreeMap;

use super::canonical::{Digest, digest};
use crate::model::{Fault, FaultKind, TraitName, TypeIdentity, Usec};
use crate::text::utc;

/// The version of the form that is read and written.
pub(super) const VERSION: u64 = 1;

/// Greatest size of a lock in bytes.
pub const MAX_LOCK_BYTES: usize = 16 * 1024 * 1024;

/// Acceptances that are kept of one trait; the oldest one leaves.
const MAX_HISTORY: usize = 100;

/// Greatest length in bytes of a reason.
const MAX_REASON: usize = 1000;

/// What each trait means, as an operator decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// Counted up with each change, from 1.
    pub revision: u64,
    /// Traits by name.
    pub traits: BTreeMap<TraitName, Locked>,
}

/// One trait of a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locked {
    /// What it means.
    pub identity: TypeIdentity,
    /// What it meant before, oldest first.
    pub history: Vec<Accepted>,
}

/// One acceptance of another identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// When, as `2026-11-30 21:17:33Z`.
    pub at: String,
    /// On which host, if that was said.
    pub by: Option<String>,
    /// Why, one line.
    pub reason: String,
    /// What the trait meant.
    pub was: TypeIdentity,
    /// What it means from then on.
    pub now: TypeIdentity,
}

/// Who accepts another identity, when and why.
#[derive(Debug, Clone, Copy)]
pub struct Acceptance<'a> {
    /// Why, one line of at most 1000 bytes.
    pub reason: &'a str,
    /// When.
    pub at: Usec,
    /// On which host.
    pub by: Option<&'a str>,
}

impl Lock {
    /// The lock that follows `before`: it has the traits of `resolved`. A trait that was locked keeps its identity,
    /// whatever it resolves to now: only [`Lock::accept`] changes that. The revision stays if nothing changes.
    pub fn of(before: Option<&Self>, resolved: &BTreeMap<TraitName, TypeIdentity>) -> Self {
        let locked = |name: &TraitName, identity: &TypeIdentity| {
            let known = before.and_then(|lock| lock.traits.get(name)).cloned();
            known.unwrap_or_else(|| Locked { identity: identity.clone(), history: Vec::new() })
        };
        let traits = resolved.iter().map(|(name, identity)| (name.clone(), locked(name, identity))).collect();
        match before {
            None => Self { revision: 1, traits },
            Some(lock) if lock.traits == traits => lock.clone(),
            Some(lock) => Self { revision: next(lock.revision), traits },
        }
    }

    /// The next lock, in which `name` means `identity`, with the change in its history.
    ///
    /// # Errors
    /// `TraitUnmapped`: the trait is not locked. `InvalidRequest`: it means that already, or the reason or host is empty,
    /// too long or not one line.
    pub fn accept(
        &self,
        name: &TraitName,
        identity: &TypeIdentity,
        how: Acceptance<'_>,
    ) -> Result<Self, Fault> {
        let mut lock = self.clone();
        let Some(locked) = lock.traits.get_mut(name) else {
            let text = format!("{name} is not in the lock; add it with mdevirtctl trait lock");
            return Err(Fault::new(FaultKind::TraitUnmapped, text));
        };
        let invalid = |text: String| Fault::new(FaultKind::InvalidRequest, text);
        if locked.identity == *identity {
            return Err(invalid(format!(
                "{name} is locked to {identity} already; there is nothing to accept"
            )));
        }
        let reason = one_line(how.reason).ok_or_else(|| {
            invalid(format!("accepting {name} needs a reason, one line of at most {MAX_REASON} bytes"))
        })?;
        let by = match how.by {
            Some(host) => Some(one_line(host).ok_or_else(|| invalid(format!("{host:?} is no host name")))?),
            None => None,
        };
        let was = std::mem::replace(&mut locked.identity, identity.clone());
        locked.history.push(Accepted {
            at: utc(how.at.clamp(0, LATEST)),
            by,
            reason,
            was,
            now: identity.clone(),
        });
        let surplus = locked.history.len().saturating_sub(MAX_HISTORY);
        locked.history.drain(..surplus);
        lock.revision = next(self.revision);
        Ok(lock)
    }

    /// What each trait means, for [`digest`] and for resolution.
    pub fn identities(&self) -> BTreeMap<TraitName, TypeIdentity> {
        self.traits.iter().map(|(name, locked)| (name.clone(), locked.identity.clone())).collect()
    }

    /// Of what the traits mean; revision and history do not enter.
    pub fn digest(&self) -> Digest {
        digest(self.traits.iter().map(|(name, locked)| (name, &locked.identity)))
    }
}

/// The last moment whose year has four digits.
const LATEST: Usec = 253_402_300_799_999_999;

/// Greatest revision: TOML has signed numbers of 64 bits.
const MAX_REVISION: u64 = i64::MAX.unsigned_abs();

fn next(revision: u64) -> u64 {
    revision.saturating_add(1).min(MAX_REVISION)
}

/// A text without blanks at its ends, if that is one line that says something.
fn one_line(text: &str) -> Option<String> {
    let text = text.trim();
    let good = (1..=MAX_REASON).contains(&text.len()) && !text.chars().any(char::is_control);
    good.then(|| text.to_owned())
}

#[cfg(test)]
mod tests;
