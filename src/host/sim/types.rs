//! What a driver's `description` says of a type: libvirt's node-device XML has none, so `types.tsv` stands in for it.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::model::{Parent, TypeFacts};

static FACTS: LazyLock<HashMap<&'static str, TypeFacts>> = LazyLock::new(|| {
    let lines = include_str!("types.tsv").lines().filter(|line| !line.starts_with('#'));
    let described = lines.filter_map(|line| line.split_once('\t'));
    described.map(|(name, description)| (name, TypeFacts::parse(description))).collect()
});

/// Gives each type of the parent the facts of the table, unless it has facts already or the table does not know it.
pub(super) fn add_facts(parent: &mut Parent) {
    for mdev_type in &mut parent.types {
        let known = mdev_type.name.as_deref().and_then(|name| FACTS.get(without_brand(name)));
        if let Some(facts) = known.filter(|_| mdev_type.facts == TypeFacts::default()) {
            mdev_type.facts = facts.clone();
        }
    }
}

/// A driver update may change the brand word (GRID T4-2Q, NVIDIA T4-2Q) and nothing else.
fn without_brand(name: &str) -> &str {
    ["GRID ", "NVIDIA "].iter().find_map(|brand| name.strip_prefix(brand)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_states_size_heads_resolution_and_limit() {
        let lines = include_str!("types.tsv").lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(FACTS.len(), lines, "a line is malformed or a name is there twice");
        for (name, facts) in FACTS.iter() {
            assert!(facts.framebuffer_mib.is_some() && facts.heads.is_some(), "{name}");
            assert!(facts.max_resolution.is_some() && facts.max_instances.is_some(), "{name}");
        }
    }

    #[test]
    fn both_brand_words_find_the_line() {
        for name in ["GRID T4-2Q", "NVIDIA T4-2Q"] {
            let facts = &FACTS[without_brand(name)];
            assert_eq!((facts.framebuffer_mib, facts.max_instances), (Some(2048), Some(8)));
        }
        assert!(!FACTS.contains_key(without_brand("Dual port serial")));
    }
}
