//! Which configured type each parent of this host gets, and what of the configuration has no effect here.
//!
//! 1. A parent gets one type or none, and none has a reason.
//! 2. The id is always the parent's own; the configured key is only compared with what is offered.
//! 3. Computed from scratch on every inventory: a card that comes later is taken up, a warning goes with its cause.
//! 4. Nothing is guessed: two types that fit equally well are none.
//! 5. A key that meant a type on a parent means that type there, whatever its id is by now (`catalog::sense`).

mod fit;
mod notice;

use std::collections::{BTreeMap, HashMap};

use crate::catalog::memory::Memory;
use crate::catalog::sense::{Sense, first_meaning, learn};
use crate::config::{Config, EnabledType, Unlisted};
use crate::model::{
    Finding, Framework, HostScan, Lesson, MdevType, Meaning, Parent, ParentAddr, TypeIdentity, Word,
};

use fit::{Fit, Offers};

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
    /// Parents whose type has become another one under its id, with what it was and is; nothing new is given out there.
    pub drifted: BTreeMap<&'a ParentAddr, String>,
    /// What this look taught about the keys of the configuration.
    pub lesson: Lesson,
    /// Warnings of section "configuration": an address no device has, a type a configured parent does not offer (with
    /// what it does offer), two sizes configured on one card.
    pub findings: Vec<Finding>,
}

/// Gives each parent its type.
pub fn assign<'a>(config: &'a Config, scan: &'a HostScan, memory: &Memory) -> Mapping<'a> {
    let rules = Rules::new(config, scan, memory);
    let mut mapping = Mapping::default();
    for parent in &scan.parents {
        match rules.choose(parent) {
            Ok(assigned) => {
                rules.learn(assigned, &mut mapping);
                mapping.assigned.insert(&parent.addr, assigned);
            }
            Err(without) => {
                mapping.findings.extend(without.finding);
                mapping.without.insert(&parent.addr, without.reason);
            }
        }
    }
    mapping.findings.extend(notice::absent(config, scan));
    mapping.findings.extend(notice::unused(config, scan, &mapping.assigned));
    mapping.findings.extend(notice::two_sizes(&mapping.assigned));
    mapping
}

/// Why a parent has no type, and whether an operator should look at it.
struct Without {
    reason: String,
    finding: Option<Finding>,
}

impl Without {
    fn quiet(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), finding: None }
    }

    fn warned(parent: &Parent, reason: String) -> Self {
        let text = format!("{}: {reason}", parent.addr);
        Self { finding: Some(notice::warning(&parent.addr.to_string(), text)), reason }
    }
}

struct Rules<'a, 'm> {
    config: &'a Config,
    scan: &'a HostScan,
    memory: &'m Memory,
    offers: Offers<'a>,
    listed: HashMap<&'a ParentAddr, &'a EnabledType>,
    /// Enabled types that any parent might get, so that a long list costs nothing on a small host.
    offered: Vec<&'a EnabledType>,
}

impl<'a, 'm> Rules<'a, 'm> {
    fn new(config: &'a Config, scan: &'a HostScan, memory: &'m Memory) -> Self {
        let offers = Offers::of(scan);
        let listed =
            config.enabled.iter().flat_map(|rule| rule.addresses.iter().map(move |a| (a, rule))).collect();
        let known = |key: &str| memory.of(&Word::mdev_type(key)).next().is_some();
        let offered =
            config.enabled.iter().filter(|rule| offers.anywhere(&rule.key) || known(&rule.key)).collect();
        Self { config, scan, memory, offers, listed, offered }
    }

    fn meaning(&self, rule: &EnabledType, parent: &Parent) -> Option<&'m Meaning> {
        self.memory.on(&Word::mdev_type(&rule.key), &parent.addr)
    }

    /// What a key means on a parent: what it meant before, else what it fits.
    fn fit(&self, rule: &EnabledType, parent: &'a Parent) -> Fit<'a> {
        match self.meaning(rule, parent).map(|meaning| Sense::of(meaning, parent)) {
            None => self.offers.fit(&rule.key, parent),
            Some(Sense::Gone) => Fit::None,
            Some(Sense::Same(t) | Sense::Renumbered(t) | Sense::Renamed(t) | Sense::Drifted(t)) => {
                Fit::One(t)
            }
        }
    }

    /// Notes what the assigned type teaches about its key, and what is wrong with it.
    fn learn(&self, assigned: Assigned<'a>, mapping: &mut Mapping<'a>) {
        let Assigned { parent, mdev_type, rule } = assigned;
        let identity = || TypeIdentity::of(parent, mdev_type);
        let Some(meaning) = self.meaning(rule, parent) else {
            let word = Word::mdev_type(&rule.key);
            mapping.lesson.meanings.push(first_meaning(word, identity(), parent, mdev_type));
            return;
        };
        let sense = Sense::of(meaning, parent);
        learn(meaning, parent, sense, &mut mapping.lesson);
        mapping.findings.extend(notice::id_means_another(rule, meaning, assigned));
        if matches!(sense, Sense::Drifted(_)) {
            let reason = notice::drift(meaning, &identity());
            mapping.findings.push(notice::warning(&parent.addr.to_string(), reason.clone()));
            mapping.drifted.insert(&parent.addr, reason);
        }
    }

    fn choose(&self, parent: &'a Parent) -> Result<Assigned<'a>, Without> {
        let listed = self.listed.get(&parent.addr).copied();
        if let Some(reason) = notice::cannot_be_sliced(parent, self.scan) {
            // A full card is no fault of the configuration.
            let full = parent.framework == Some(Framework::VendorVfio);
            return Err(match listed.filter(|_| !full) {
                Some(rule) => {
                    Without::warned(parent, format!("{} is configured for it, but {reason}", rule.key))
                }
                None => Without::quiet(reason),
            });
        }
        match (listed, self.config.unlisted) {
            (Some(rule), _) => self.take(rule, parent).map_err(|reason| Without::warned(parent, reason)),
            (None, _) if self.config.enabled.is_empty() => Err(Without::quiet("no mdev type is enabled")),
            (None, Unlisted::Ignore) => {
                Err(Without::quiet("no enabled type lists it, and unlisted is \"ignore\""))
            }
            (None, Unlisted::First) => self.first(parent),
            (None, Unlisted::Default) => self.default(parent),
        }
    }

    fn take(&self, rule: &'a EnabledType, parent: &'a Parent) -> Result<Assigned<'a>, String> {
        match self.fit(rule, parent) {
            Fit::One(mdev_type) => Ok(Assigned { parent, mdev_type, rule }),
            Fit::None => Err(notice::not_offered(rule, self.meaning(rule, parent), parent)),
            Fit::Several(first, second) => Err(format!(
                "{} fits two of its types, {} and {}; enable one of them by its id",
                rule.key, first.id, second.id
            )),
        }
    }

    fn first(&self, parent: &'a Parent) -> Result<Assigned<'a>, Without> {
        for rule in &self.offered {
            match self.fit(rule, parent) {
                Fit::None => {}
                Fit::One(_) | Fit::Several(..) => {
                    return self.take(rule, parent).map_err(|reason| Without::warned(parent, reason));
                }
            }
        }
        Err(self.near_miss(parent, self.config.enabled.iter(), "it offers none of the enabled types"))
    }

    fn default(&self, parent: &'a Parent) -> Result<Assigned<'a>, Without> {
        let Some(rule) = self.config.enabled.iter().find(|rule| rule.addresses.is_empty()) else {
            return Err(Without::quiet("no enabled type lists it, and every enabled type lists addresses"));
        };
        match self.fit(rule, parent) {
            Fit::None => {
                let reason = format!("it does not offer {}, the default type", rule.key);
                Err(self.near_miss(parent, std::iter::once(rule), &reason))
            }
            Fit::One(_) | Fit::Several(..) => {
                self.take(rule, parent).map_err(|reason| Without::warned(parent, reason))
            }
        }
    }

    /// A parent that offers what may be the wanted type under another prefix must not stay out in silence.
    fn near_miss(
        &self,
        parent: &Parent,
        mut rules: impl Iterator<Item = &'a EnabledType>,
        reason: &str,
    ) -> Without {
        let found = rules.find_map(|rule| Some((rule, self.offers.same_number(&rule.key, parent)?)));
        match found {
            Some((rule, near)) => Without::warned(
                parent,
                format!(
                    "{reason}; {} may be the enabled {} under another prefix, but no name shows that they are one: \
                     enable it by its vendor name or by this id; it offers {}",
                    near.id,
                    rule.key,
                    notice::types(parent)
                ),
            ),
            None => Without::quiet(reason),
        }
    }
}

#[cfg(test)]
mod tests;
