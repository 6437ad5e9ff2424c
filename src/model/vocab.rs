//! Words shared with OpenStack Placement: resource classes and traits.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::id::InvalidName;

macro_rules! word {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $check:path, $form:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The word.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl FromStr for $name {
            type Err = InvalidName;
            fn from_str(text: &str) -> Result<Self, InvalidName> {
                if $check(text) { Ok(Self(text.to_owned())) } else { Err(InvalidName::new($kind, text, $form)) }
            }
        }
        impl TryFrom<String> for $name {
            type Error = InvalidName;
            fn try_from(text: String) -> Result<Self, InvalidName> {
                text.parse()
            }
        }
        impl From<$name> for String {
            fn from(word: $name) -> Self {
                word.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

word!(
    /// A Placement resource class that mdevirt publishes: `VGPU` or `CUSTOM_[A-Z0-9_]+`, at most 255 characters.
    ///
    /// # Source
    /// nova `conf/devices.py`, `mdev_class`.
    ResourceClass,
    "resource class",
    is_class,
    "expected VGPU or CUSTOM_[A-Z0-9_]+"
);

word!(
    /// A Placement trait: `[A-Z0-9_]+`, at most 255 characters; an operator's own begin with `CUSTOM_`.
    ///
    /// # Source
    /// OpenStack Placement API, `PUT /traits/{name}`.
    TraitName,
    "trait",
    is_upper_word,
    "expected CUSTOM_[A-Z0-9_]+ or a standard trait"
);

impl TraitName {
    /// A name of an operator's own for a vendor's type name, `CUSTOM_NVIDIA_A100_1_5CME`: upper case, one `_` for each
    /// row of other characters. Two names can give one trait.
    ///
    /// `None` for a name without letters or digits, and for one that is too long.
    pub fn for_type_name(name: &str) -> Option<Self> {
        let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let words: Vec<String> = words.map(str::to_ascii_uppercase).collect();
        (!words.is_empty()).then(|| format!("CUSTOM_{}", words.join("_")).parse().ok()).flatten()
    }
}

impl ResourceClass {
    /// Placement's standard class for slices of a GPU.
    pub fn vgpu() -> Self {
        Self("VGPU".to_owned())
    }
}

fn is_upper_word(text: &str) -> bool {
    (1..=255).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        && text.bytes().any(|b| b != b'_')
}

fn is_class(text: &str) -> bool {
    text == "VGPU"
        || (is_upper_word(text) && text.strip_prefix("CUSTOM_").is_some_and(|rest| !rest.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_become_traits() {
        let name = |text: &str| TraitName::for_type_name(text).map(String::from);
        assert_eq!(name(" NVIDIA A100-1-5C.ME+ ").as_deref(), Some("CUSTOM_NVIDIA_A100_1_5C_ME"));
        assert_eq!(name("I/O subchannel (Non-QDIO)").as_deref(), Some("CUSTOM_I_O_SUBCHANNEL_NON_QDIO"));
        assert_eq!((name("\u{e4} -"), name(&"x".repeat(249))), (None, None));
    }

    #[test]
    fn classes_follow_novas_pattern() {
        for good in ["VGPU", "CUSTOM_T4_2Q"] {
            assert!(good.parse::<ResourceClass>().is_ok(), "{good}");
        }
        for bad in ["T4_2q", "custom_x", "CUSTOM_", "PGPU", "", "CUSTOM_Ä"] {
            assert!(
                bad.parse::<ResourceClass>().unwrap_err().to_string().contains("VGPU or CUSTOM_"),
                "{bad}"
            );
        }
    }
}
