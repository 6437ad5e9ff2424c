//! What would change between two states of the host's providers and traits; nothing is touched.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::resolve::Resolution;
use crate::model::InventoryRecord;

/// What can be seen of the host, as `NAME -> FIELD -> VALUE`, of one kind each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts(BTreeMap<(Kind, String), BTreeMap<&'static str, String>>);

/// What a fact is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A resource provider.
    Provider,
    /// A trait of `traits.toml`.
    Trait,
}

impl Kind {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Trait => "trait",
        }
    }
}

/// One difference; see `service::api::PlanChange`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// About what.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Which field; empty when all of it comes or goes.
    pub field: &'static str,
    /// `None` for what comes.
    pub from: Option<String>,
    /// `None` for what goes.
    pub to: Option<String>,
}

impl Facts {
    /// Takes down providers and traits.
    pub fn new(inventory: &[InventoryRecord], resolution: &Resolution) -> Self {
        let providers =
            inventory.iter().map(|record| ((Kind::Provider, record.provider.clone()), provider(record)));
        let traits = resolution.iter().map(|(name, resolved)| {
            let local: BTreeSet<String> =
                resolved.local.iter().map(|(p, id)| format!("{id} on {p}")).collect();
            let fields = [
                ("state", format!("{:?}", resolved.state).to_lowercase()),
                ("identity", resolved.identity.as_ref().map(ToString::to_string).unwrap_or_default()),
                ("local_types", joined(&local)),
            ];
            ((Kind::Trait, name.to_string()), fields.into())
        });
        Self(providers.chain(traits).collect())
    }

    /// Everything that is not the same in `other`, in the order of kind and name.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let keys: BTreeSet<&(Kind, String)> = self.0.keys().chain(other.0.keys()).collect();
        keys.into_iter().flat_map(|key| one(key, self.0.get(key), other.0.get(key))).collect()
    }
}

fn provider(record: &InventoryRecord) -> BTreeMap<&'static str, String> {
    let InventoryRecord { resource_class, mdev_type, type_name, total, reserved, max_unit, traits, .. } =
        record;
    [
        ("resource_class", resource_class.to_string()),
        ("mdev_type", mdev_type.to_string()),
        ("type_name", type_name.clone()),
        ("total", total.to_string()),
        ("reserved", reserved.to_string()),
        ("max_unit", max_unit.to_string()),
        ("traits", joined(&traits.iter().map(ToString::to_string).collect())),
    ]
    .into()
}

fn one(
    (kind, name): &(Kind, String),
    from: Option<&BTreeMap<&'static str, String>>,
    to: Option<&BTreeMap<&'static str, String>>,
) -> Vec<Difference> {
    let all = |fields: &BTreeMap<&str, String>| {
        let filled = fields.iter().filter(|(_, value)| !value.is_empty());
        filled.map(|(field, value)| format!("{field} {value}")).collect::<Vec<_>>().join(", ")
    };
    let line = |field, from, to| Difference { kind: *kind, name: name.clone(), field, from, to };
    match (from, to) {
        (Some(from), Some(to)) => {
            let moved = from.iter().filter_map(|(field, was)| Some((field, was, to.get(field)?)));
            moved
                .filter(|(_, was, now)| was != now)
                .map(|(field, was, now)| line(field, Some(was.clone()), Some(now.clone())))
                .collect()
        }
        (from, to) => vec![line("", from.map(all), to.map(all))],
    }
}

fn joined(words: &BTreeSet<String>) -> String {
    words.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
}
