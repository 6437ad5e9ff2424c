//! Names of traits: an operator's own, or a standard one that a type of GPU slice can have.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::model::{InvalidName, TraitName};
use crate::text::nearest;

/// What an operator's own names begin with.
const CUSTOM: &str = "CUSTOM_";

/// # Source
/// os-traits, `os_traits/hw/gpu/`; the first line of the file has the version.
static STANDARD: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| {
    include_str!("standard_traits.txt").lines().filter(|line| !line.starts_with('#')).collect()
});

/// Every standard trait that a type can be bound to, in the order of their letters.
pub fn standard_traits() -> impl Iterator<Item = &'static str> {
    STANDARD.iter().copied()
}

/// Reads the name of a trait: `CUSTOM_[A-Z0-9_]+` or one of [`standard_traits`].
///
/// # Errors
/// What is wrong with it, and the name that may be meant.
pub fn trait_name(text: &str) -> Result<TraitName, String> {
    let name = text.parse::<TraitName>().map_err(|err| with_hint(err.to_string(), text))?;
    let own = text.strip_prefix(CUSTOM).is_some_and(|rest| !rest.is_empty());
    if own || STANDARD.contains(text) {
        return Ok(name);
    }
    if text == CUSTOM {
        let err = InvalidName::new("trait", text, "a name of your own follows CUSTOM_");
        return Err(err.to_string());
    }
    let shown: String = text.chars().take(80).collect();
    let refusal = format!("{shown:?} is no standard trait of GPUs; a name of your own begins with {CUSTOM}");
    Err(with_hint(refusal, text))
}

fn with_hint(refusal: String, text: &str) -> String {
    match meant(text) {
        Some(name) => format!("{refusal}; did you mean {name}?"),
        None => refusal,
    }
}

/// The nearest good name.
fn meant(text: &str) -> Option<String> {
    let upper = normalised(text);
    let known: Vec<&str> = standard_traits().collect();
    if let Some(standard) = nearest(&upper, &known) {
        return Some(standard.to_owned());
    }
    let name = if upper.starts_with(CUSTOM) { upper } else { format!("{CUSTOM}{upper}") };
    let says_something = name.trim_start_matches(CUSTOM).bytes().any(|b| b != b'_');
    (says_something && name.parse::<TraitName>().is_ok()).then_some(name)
}

/// What OpenStack's tools make of a name: capitals, and `_` for each row of other characters. Two traits whose names
/// become the same here are told apart by nobody.
///
/// # Source
/// os-traits, `os_traits.normalize_name`, without the prefix it adds.
pub(super) fn normalised(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            name.push(c.to_ascii_uppercase());
        } else if !name.ends_with('_') {
            name.push('_');
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_each_is_a_trait() {
        let lines: Vec<&str> =
            include_str!("standard_traits.txt").lines().filter(|l| !l.starts_with('#')).collect();
        assert!(lines.len() > 90 && lines.is_sorted(), "{} lines", lines.len());
        assert_eq!(lines.len(), standard_traits().count(), "each once");
        for name in lines {
            assert!(name.starts_with("HW_GPU_") && trait_name(name).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn own_names_and_standard_ones_are_taken() {
        let longest = format!("CUSTOM_{}", "A".repeat(248));
        for good in ["CUSTOM_GOLD", "CUSTOM_1", "CUSTOM__", "HW_GPU_MAX_DISPLAY_HEADS_4", &longest] {
            assert_eq!(trait_name(good).unwrap().as_str(), good);
        }
    }

    #[test]
    fn other_names_are_refused_with_what_may_be_meant() {
        let long = format!("CUSTOM_{}", "A".repeat(249));
        for (bad, hint) in [
            ("custom_gold", Some("CUSTOM_GOLD")),
            ("GOLD", Some("CUSTOM_GOLD")),
            ("CUSTOM_A100-1-5C", Some("CUSTOM_A100_1_5C")),
            ("HW_GPU_RESOLUTION_W1920H1081", Some("HW_GPU_RESOLUTION_W1920H1080")),
            ("HW_GPU_API_VULCAN", Some("HW_GPU_API_VULKAN")),
            ("CUSTOM_\u{c4}", None),
            ("CUSTOM_", None),
            ("", None),
            (" ", None),
            (&long, None),
        ] {
            let refusal = trait_name(bad).unwrap_err();
            let seen = refusal.split_once("; did you mean ").map(|(_, name)| name.trim_end_matches('?'));
            assert_eq!(seen, hint, "{bad}: {refusal}");
        }
    }
}
