//! Flavor extra specs, the request language: text in, groups out.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::id::InvalidName;
use super::vocab::{ResourceClass, TraitName};

/// One granular group: devices of one class that come from one parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// `""` for the unnumbered group, else the suffix (`1`, `_gpu`).
    pub suffix: String,
    /// What is wanted.
    pub class: ResourceClass,
    /// How many of it.
    pub count: u32,
    /// Traits the parent's type must have.
    pub required: BTreeSet<TraitName>,
    /// Traits it must not have.
    pub forbidden: BTreeSet<TraitName>,
}

/// A parsed request for virtual devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Groups in the order of their suffixes.
    pub groups: Vec<Group>,
    /// `group_policy=isolate`: groups go to different parents.
    pub isolate: bool,
}

/// More devices than any VM can take; a bound against nonsense, not a hardware fact.
const MAX_DEVICES: u32 = 64;

impl Request {
    /// Reads `resources:VGPU=1,trait:CUSTOM_X=required`, the form of the command line and of domain metadata.
    ///
    /// # Source
    /// nova "Flavors / extra specs": `resources{N}:CLASS`, `trait{N}:NAME`, `group_policy`. The `in:` list of traits
    /// is not a nova form; it is refused here.
    ///
    /// # Errors
    /// Names the part that is not understood.
    pub fn parse(flavor: &str) -> Result<Self, InvalidName> {
        let pairs = flavor.split([',', '\n']).map(str::trim).filter(|part| !part.is_empty());
        let mut specs = BTreeMap::new();
        for part in pairs {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| InvalidName::new("flavor extra spec", part, "expected key=value"))?;
            if specs.insert(key.trim().to_owned(), value.trim().to_owned()).is_some() {
                return Err(InvalidName::new("flavor extra spec", part, "the key is given twice"));
            }
        }
        Self::from_specs(&specs)
    }

    /// Reads extra specs as a map, the form of an orchestrator.
    ///
    /// # Errors
    /// Names the key that is not understood.
    pub fn from_specs(specs: &BTreeMap<String, String>) -> Result<Self, InvalidName> {
        let mut draft = Draft::default();
        for (key, value) in specs {
            draft.take(key, value)?;
        }
        draft.finish()
    }

    /// How many devices are wanted in all.
    pub fn device_count(&self) -> u32 {
        self.groups.iter().map(|g| g.count).sum()
    }
}

#[derive(Default)]
struct Draft {
    resources: BTreeMap<String, BTreeMap<ResourceClass, u32>>,
    required: BTreeMap<String, BTreeSet<TraitName>>,
    forbidden: BTreeMap<String, BTreeSet<TraitName>>,
    isolate: bool,
}

impl Draft {
    fn take(&mut self, key: &str, value: &str) -> Result<(), InvalidName> {
        if key == "group_policy" {
            self.isolate = match value {
                "isolate" => true,
                "none" => false,
                _ => return Err(InvalidName::new("group_policy", value, "expected isolate or none")),
            };
            return Ok(());
        }
        let (front, word) = key.split_once(':').ok_or_else(|| {
            InvalidName::new("flavor extra spec", key, "expected resources:, trait: or group_policy")
        })?;
        if let Some(suffix) = front.strip_prefix("resources") {
            self.resource(suffix, word, value)
        } else if let Some(suffix) = front.strip_prefix("trait") {
            self.trait_wish(suffix, word, value)
        } else {
            Err(InvalidName::new("flavor extra spec", key, "expected resources:, trait: or group_policy"))
        }
    }

    fn resource(&mut self, suffix: &str, class: &str, count: &str) -> Result<(), InvalidName> {
        check_suffix(suffix)?;
        let count = count
            .parse::<u32>()
            .ok()
            .filter(|n| *n <= MAX_DEVICES)
            .ok_or_else(|| InvalidName::new("device count", count, "expected a number from 0 to 64"))?;
        if count > 0 {
            self.resources.entry(suffix.to_owned()).or_default().insert(class.parse()?, count);
        }
        Ok(())
    }

    fn trait_wish(&mut self, suffix: &str, name: &str, value: &str) -> Result<(), InvalidName> {
        check_suffix(suffix)?;
        let set = match value {
            "required" => &mut self.required,
            "forbidden" => &mut self.forbidden,
            _ => return Err(InvalidName::new("trait value", value, "expected required or forbidden")),
        };
        set.entry(suffix.to_owned()).or_default().insert(name.parse()?);
        Ok(())
    }

    fn finish(self) -> Result<Request, InvalidName> {
        let lonely =
            self.required.keys().chain(self.forbidden.keys()).find(|s| !self.resources.contains_key(*s));
        if let Some(suffix) = lonely {
            return Err(InvalidName::new(
                "trait group",
                suffix,
                "the group has traits but asks for no resources",
            ));
        }
        let mut groups = Vec::new();
        for (suffix, classes) in &self.resources {
            for (class, count) in classes {
                groups.push(Group {
                    suffix: suffix.clone(),
                    class: class.clone(),
                    count: *count,
                    required: self.required.get(suffix).cloned().unwrap_or_default(),
                    forbidden: self.forbidden.get(suffix).cloned().unwrap_or_default(),
                });
            }
        }
        let request = Request { groups, isolate: self.isolate };
        match request.device_count() {
            0 => Err(InvalidName::new(
                "flavor",
                "",
                "it asks for no virtual device (resources:VGPU=1, for example)",
            )),
            n if n > MAX_DEVICES => {
                Err(InvalidName::new("flavor", &n.to_string(), "more than 64 devices for one VM"))
            }
            _ => Ok(request),
        }
    }
}

/// Placement's group suffix: up to 64 of letters, digits, `_`, `-`.
fn check_suffix(suffix: &str) -> Result<(), InvalidName> {
    let plain =
        suffix.len() <= 64 && suffix.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if plain { Ok(()) } else { Err(InvalidName::new("group suffix", suffix, "expected [A-Za-z0-9_-]{0,64}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_flavor() {
        let request = Request::parse("resources:VGPU=1,trait:CUSTOM_X=required").unwrap();
        assert_eq!(request.groups.len(), 1);
        assert_eq!(request.groups[0].count, 1);
        assert!(request.groups[0].required.contains(&"CUSTOM_X".parse().unwrap()));
        assert!(!request.isolate);
    }

    #[test]
    fn numbered_groups_and_policy() {
        let request = Request::parse(
            "resources1:VGPU=1, resources2:CUSTOM_T4=2, trait2:CUSTOM_A=forbidden, group_policy=isolate",
        )
        .unwrap();
        assert_eq!(request.groups.iter().map(|g| g.suffix.as_str()).collect::<Vec<_>>(), ["1", "2"]);
        assert!(request.isolate);
        assert_eq!(request.device_count(), 3);
    }

    #[test]
    fn nonsense_is_named() {
        for (bad, word) in [
            ("", "no virtual device"),
            ("resources:VGPU=0", "no virtual device"),
            ("VGPU=1", "flavor extra spec"),
            ("resources:VGPU", "key=value"),
            ("resources:VGPU=-1", "device count"),
            ("resources:VGPU=65", "device count"),
            ("resources:vgpu=1", "resource class"),
            ("resources:VGPU=1,trait:CUSTOM_X=maybe", "required or forbidden"),
            ("resources:VGPU=1,trait1:CUSTOM_X=required", "asks for no resources"),
            ("resources:VGPU=1,resources:VGPU=2", "twice"),
            ("resources:VGPU=1,group_policy=x", "group_policy"),
            ("resources/:VGPU=1", "group suffix"),
        ] {
            let err = Request::parse(bad).unwrap_err().to_string();
            assert!(err.contains(word), "{bad}: {err}");
        }
    }
}
