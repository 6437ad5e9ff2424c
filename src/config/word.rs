//! Single words that only this configuration has.

use std::path::PathBuf;

use crate::model::InvalidName;

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
