//! Whether a parent is what a group asks for, however full it is.

use std::collections::BTreeSet;

use crate::model::{Group, TraitName};
use crate::plan::capacity::ParentCapacity;

/// Why this parent can never serve this group, however empty it is.
pub(super) fn misfit(group: &Group, cap: &ParentCapacity<'_>) -> Option<String> {
    let class = &cap.assigned.rule.class;
    if *class != group.class {
        return Some(format!("has {class}, not {}", group.class));
    }
    let label = cap.assigned.mdev_type.label();
    if let Some(missing) = group.required.difference(&cap.traits).next() {
        return Some(format!("{label} does not have trait {missing}"));
    }
    if let Some(list) = group.any_of.iter().find(|list| list.is_disjoint(&cap.traits)) {
        return Some(format!("{label} has none of the traits {}", names(list)));
    }
    let bad = group.forbidden.intersection(&cap.traits).next()?;
    Some(format!("{label} has the forbidden trait {bad}"))
}

/// `CUSTOM_A, CUSTOM_B`.
pub(super) fn names(traits: &BTreeSet<TraitName>) -> String {
    traits.iter().map(TraitName::as_str).collect::<Vec<_>>().join(", ")
}

/// What a group asks for in words: `VGPU, trait CUSTOM_A, one of CUSTOM_B, CUSTOM_C, not CUSTOM_D`.
pub(super) fn wanted(group: &Group) -> String {
    let mut parts = vec![group.class.to_string()];
    parts.extend(group.required.iter().map(|name| format!("trait {name}")));
    parts.extend(group.any_of.iter().map(|list| format!("one of {}", names(list))));
    parts.extend(group.forbidden.iter().map(|name| format!("not {name}")));
    parts.join(", ")
}
