//! The start of an element: its name and its attributes.

use std::borrow::Cow;
use std::ops::Range;

use quick_xml::XmlVersion;
use quick_xml::events::BytesStart;

use super::error::{XmlError, shown};
use super::reader::Reader;

/// Attributes of one element; libvirt's longest has about twenty. Also bounds the parser's search for doubles.
const MAX_ATTRIBUTES: usize = 128;

/// The start of an element.
pub(super) struct Tag<'a> {
    pub(super) start: BytesStart<'a>,
    pub(super) name: &'a str,
    /// `<x/>`.
    pub(super) empty: bool,
    /// From `<` to behind `>`, in bytes of the document.
    pub(super) span: Range<usize>,
}

impl<'a> Tag<'a> {
    /// The element's name; empty for an element of a namespace, which is none of libvirt's.
    pub(super) fn name(&self) -> &'a str {
        self.name
    }

    /// The value of the attribute that has exactly this name.
    pub(super) fn attr(&self, name: &str) -> Option<Cow<'_, str>> {
        // Doubles were looked for when the element was entered.
        let mut all = self.start.attributes();
        let attribute = all.with_checks(false).flatten().find(|a| a.key.as_ref() == name)?;
        attribute.normalized_value(XmlVersion::Explicit1_0).ok()
    }

    /// Whether the element or one of its attributes belongs to a namespace.
    pub(super) fn has_namespace(&self) -> bool {
        let prefixed = |key: &str| key.contains(':') && !key.starts_with("xmlns:");
        self.name.is_empty() || self.start.attributes().flatten().any(|a| prefixed(a.key.as_ref()))
    }
}

/// Checks the attributes of an element; what `xmlns` says if it is there.
pub(super) fn attributes(reader: &Reader<'_>, start: &BytesStart<'_>) -> Result<Option<bool>, XmlError> {
    if start.attributes_raw().is_empty() {
        return Ok(None);
    }
    let broken = |err: &dyn std::fmt::Display| reader.malformed(shown(&err.to_string()));
    let mut default_namespace = None;
    for (count, attribute) in start.attributes().enumerate() {
        if count == MAX_ATTRIBUTES {
            return Err(XmlError::LimitExceeded { what: "attributes of one element", limit: MAX_ATTRIBUTES });
        }
        let attribute = attribute.map_err(|err| broken(&err))?;
        if !is_name(attribute.key.as_ref()) || attribute.value.contains('<') {
            return Err(reader.malformed("an attribute is not well-formed"));
        }
        if attribute.value.contains('&') {
            let value = attribute.normalized_value(XmlVersion::Explicit1_0).map_err(|err| broken(&err))?;
            reader.check_characters(&value)?;
        }
        if attribute.key.as_ref() == "xmlns" {
            default_namespace = Some(!attribute.value.is_empty());
        }
    }
    Ok(default_namespace)
}

/// A rough form of XML's `Name`: enough that what is a name here is one to libxml2, or an error there.
pub(super) fn is_name(text: &str) -> bool {
    let first = text.bytes().next().is_some_and(|b| !b.is_ascii_digit() && !matches!(b, b'-' | b'.'));
    first
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':') || !b.is_ascii())
}
