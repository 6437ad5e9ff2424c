//! What is wanted of one group while a flavor is read.

use std::collections::{BTreeMap, BTreeSet};

use super::super::id::InvalidName;
use super::super::vocab::{ResourceClass, TraitName};
use super::{Group, MAX_DEVICES};

/// `in:` lists of one group; each is looked at for each parent.
const MAX_LISTS: usize = 32;

/// What the keys of one suffix say.
#[derive(Default)]
pub(super) struct GroupDraft {
    classes: BTreeMap<ResourceClass, u32>,
    required: BTreeSet<TraitName>,
    forbidden: BTreeSet<TraitName>,
    any_of: BTreeSet<BTreeSet<TraitName>>,
    /// Keys of its traits, as written.
    trait_keys: Vec<String>,
    /// It asks for resources of others.
    foreign: bool,
}

impl GroupDraft {
    /// `resources{S}:CLASS`. None of a class is the same as not asking for it.
    pub(super) fn resource(&mut self, class: &str, count: &str) -> Result<(), InvalidName> {
        let number = count.parse::<u32>().ok().filter(|n| *n <= MAX_DEVICES);
        let number = number
            .ok_or_else(|| InvalidName::new("device count", count, "expected a number from 0 to 64"))?;
        let class = class.parse()?;
        if number > 0 {
            self.classes.insert(class, number);
        }
        Ok(())
    }

    /// Notes that another service has to do with this group.
    pub(super) fn foreign_resource(&mut self) {
        self.foreign = true;
    }

    /// `trait{S}:NAME`.
    pub(super) fn wish(&mut self, key: &str, name: &str, value: &str) -> Result<(), InvalidName> {
        let set = match value {
            "required" => &mut self.required,
            "forbidden" => &mut self.forbidden,
            _ => return Err(InvalidName::new("trait value", value, "expected required or forbidden")),
        };
        set.insert(name.parse()?);
        self.trait_keys.push(key.to_owned());
        Ok(())
    }

    /// `required{S}`: `A,!B`, then lists that begin with `in:`. A list of one trait requires it.
    pub(super) fn list(&mut self, key: &str, value: &str) -> Result<(), InvalidName> {
        let mut open: Option<BTreeSet<TraitName>> = None;
        for item in value.split(',').map(str::trim) {
            let (begins, name) = item.strip_prefix("in:").map_or((false, item), |rest| (true, rest.trim()));
            if name.is_empty() || name == "!" {
                return Err(InvalidName::new("list of traits", value, "a name is missing in it"));
            }
            if begins {
                self.close(open.replace(BTreeSet::new()))?;
            }
            match (open.as_mut(), name.strip_prefix('!')) {
                (Some(_), Some(_)) => {
                    return Err(InvalidName::new("list of traits", value, "a list of in: cannot forbid (!)"));
                }
                (Some(list), None) => list.insert(name.parse()?),
                (None, Some(name)) => self.forbidden.insert(name.parse()?),
                (None, None) => self.required.insert(name.parse()?),
            };
        }
        self.trait_keys.push(key.to_owned());
        self.close(open)
    }

    fn close(&mut self, list: Option<BTreeSet<TraitName>>) -> Result<(), InvalidName> {
        let Some(list) = list else { return Ok(()) };
        if list.len() > 1 {
            self.any_of.insert(list);
        } else {
            self.required.extend(list);
        }
        if self.any_of.len() > MAX_LISTS {
            return Err(InvalidName::new("list of traits", "in:", "one group has more than 32 of them"));
        }
        Ok(())
    }

    /// The groups of this suffix, one for each class. Keys of traits that concern no device of ours go to `ignored`
    /// if there `may` be any.
    pub(super) fn finish(
        self,
        suffix: &str,
        may_be_foreign: bool,
        ignored: &mut Vec<String>,
    ) -> Result<Vec<Group>, InvalidName> {
        self.check()?;
        if self.classes.is_empty() && !self.trait_keys.is_empty() {
            if may_be_foreign && (self.foreign || suffix.is_empty()) {
                ignored.extend(self.trait_keys);
                return Ok(Vec::new());
            }
            let why = "the group has traits but asks for no resources";
            return Err(InvalidName::new("trait group", suffix, why));
        }
        let group = |(class, count): (&ResourceClass, &u32)| Group {
            suffix: suffix.to_owned(),
            class: class.clone(),
            count: *count,
            required: self.required.clone(),
            forbidden: self.forbidden.clone(),
            any_of: self.any_of.iter().cloned().collect(),
        };
        Ok(self.classes.iter().map(group).collect())
    }

    /// Contradictions within the group.
    fn check(&self) -> Result<(), InvalidName> {
        if let Some(both) = self.required.intersection(&self.forbidden).next() {
            let why = "one group both requires and forbids it";
            return Err(InvalidName::new("trait wish", both.as_str(), why));
        }
        if let Some(list) = self.any_of.iter().find(|list| list.is_subset(&self.forbidden)) {
            let names: Vec<&str> = list.iter().map(TraitName::as_str).collect();
            let why = "the group forbids every trait of it";
            return Err(InvalidName::new("list of traits", &format!("in:{}", names.join(",")), why));
        }
        Ok(())
    }
}
