//! Single words that only this configuration has.

use std::path::PathBuf;

use crate::model::{InvalidName, TraitName};

/// Reads a path.
///
/// # Errors
/// It is not absolute, or not printable.
pub(super) fn absolute_path(text: &str) -> Result<PathBuf, InvalidName> {
    if text.starts_with('/') && !text.chars().any(char::is_control) {
        return Ok(PathBuf::from(text));
    }
    Err(InvalidName::new("path", text, "expected an absolute path"))
}

/// Checks the outer form only: libvirt itself knows which drivers it has.
///
/// # Errors
/// The text is no URI.
pub(super) fn libvirt_uri(text: &str) -> Result<String, InvalidName> {
    let parts = text.split_once(':').is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty());
    if parts && text.bytes().all(|b| b.is_ascii_graphic()) {
        return Ok(text.to_owned());
    }
    Err(InvalidName::new("libvirt URI", text, "expected a form like qemu:///system"))
}

/// Beginnings of standard traits.
///
/// # Source
/// os-traits 3: its top-level modules.
const STANDARD_TRAITS: [&str; 5] = ["COMPUTE_", "HW_", "MISC_", "OWNER_", "STORAGE_"];

/// Reads a trait that an operator gives to a type: one of their own, or one that stands where standard ones do.
/// Placement knows which standard traits there are and refuses others.
///
/// # Errors
/// It is neither.
pub(super) fn trait_name(text: &str) -> Result<TraitName, InvalidName> {
    let name: TraitName = text.parse()?;
    let begins = |front: &str| text.strip_prefix(front).is_some_and(|rest| !rest.is_empty());
    if begins("CUSTOM_") || STANDARD_TRAITS.into_iter().any(begins) {
        return Ok(name);
    }
    Err(InvalidName::new("trait", text, "expected CUSTOM_[A-Z0-9_]+ or a standard trait"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operators_traits_are_custom_or_standard() {
        for good in ["CUSTOM_GOLD", "HW_GPU_API_VULKAN", "CUSTOM__"] {
            assert_eq!(trait_name(good).unwrap().as_str(), good);
        }
        for bad in ["GOLD", "CUSTOM_", "custom_gold", "HW_", "CUSTOM-GOLD", ""] {
            assert!(trait_name(bad).unwrap_err().to_string().contains("or a standard trait"), "{bad}");
        }
    }
}
