//! The text form: parts to keys and values, and a request back to text.

use std::borrow::Cow;

use super::super::id::InvalidName;
use super::{NumaPolicy, Request};

/// Bytes of one flavor; a real one has some hundred.
const MAX_BYTES: usize = 64 * 1024;
/// Keys of one flavor.
const MAX_KEYS: usize = 1000;

/// The key of a list of traits, before its suffix.
pub(super) const LIST: &str = "required";

/// Checks the lengths of all keys with their values.
pub(super) fn check_size(mut lengths: impl Iterator<Item = usize>) -> Result<(), InvalidName> {
    let mut bytes = 0;
    let small = lengths.by_ref().take(MAX_KEYS).all(|length| {
        bytes += length;
        bytes <= MAX_BYTES
    });
    if !small {
        return Err(InvalidName::new("flavor", "", "it is longer than 64 KiB"));
    }
    if lengths.next().is_some() {
        return Err(InvalidName::new("flavor", "", "it has more than 1000 keys"));
    }
    Ok(())
}

/// Splits a text into keys and values; a key may come several times.
pub(super) fn pairs(flavor: &str) -> Result<Vec<(&str, Cow<'_, str>)>, InvalidName> {
    check_size(std::iter::once(flavor.len()))?;
    let mut pairs: Vec<(&str, Cow<'_, str>)> = Vec::new();
    for part in flavor.split([',', '\n']).map(str::trim).filter(|part| !part.is_empty()) {
        match (part.split_once('='), pairs.last_mut()) {
            (Some((key, value)), _) => pairs.push((key.trim(), Cow::Borrowed(value.trim()))),
            (None, Some((key, value))) if key.starts_with(LIST) => {
                let list = value.to_mut();
                list.push(',');
                list.push_str(part);
            }
            (None, _) => {
                return Err(InvalidName::new("flavor extra spec", part, "expected key=value"));
            }
        }
    }
    check_size(pairs.iter().map(|_| 0))?;
    Ok(pairs)
}

/// The one text of a request: suffixes in order, traits by name, and nothing that is the default.
pub(super) fn canonical(request: &Request) -> String {
    let mut parts = Vec::new();
    for group in request.groups.chunk_by(|a, b| a.suffix == b.suffix) {
        let [first, ..] = group else { continue };
        let suffix = &first.suffix;
        parts.extend(group.iter().map(|g| format!("resources{suffix}:{}={}", g.class, g.count)));
        parts.extend(first.required.iter().map(|name| format!("trait{suffix}:{name}=required")));
        parts.extend(first.forbidden.iter().map(|name| format!("trait{suffix}:{name}=forbidden")));
        for list in &first.any_of {
            let names: Vec<&str> = list.iter().map(|name| name.as_str()).collect();
            parts.push(format!("{LIST}{suffix}=in:{}", names.join(",")));
        }
    }
    if request.isolate {
        parts.push("group_policy=isolate".to_owned());
    }
    if request.numa != NumaPolicy::default() {
        parts.push(format!("numa={}", request.numa));
    }
    parts.join(",")
}
