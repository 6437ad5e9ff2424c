//! A template: text with `{{slots}}`, cut up once and filled often.

use quick_xml::escape::escape;

use super::error::{XmlError, shown};
use super::intake::strict;
use super::reader::Reader;

/// Greatest size in bytes.
pub(super) const MAX_TEMPLATE: usize = 64 * 1024;

/// A text with slots, known to be well-formed.
#[derive(Debug, Clone)]
pub(super) struct Template {
    /// Where it comes from, for messages.
    pub(super) file: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// A value.
    Slot(&'static str),
    /// A blank, an attribute and its value; nothing at all without a value.
    Attribute {
        slot: &'static str,
        open: String,
        close: char,
    },
}

impl Template {
    /// Cuts up a template. What stands around its root element (comments, an XML declaration) is not part of it.
    ///
    /// # Errors
    /// Names the file: not well-formed, another root, a slot that is unknown, missing or not closed.
    pub(super) fn parse(
        file: &str,
        text: &[u8],
        root: &str,
        slots: &[&'static str],
    ) -> Result<Self, XmlError> {
        let broken = |why: String| XmlError::Template { file: file.to_owned(), why };
        if text.len() > MAX_TEMPLATE {
            return Err(broken(format!("longer than {MAX_TEMPLATE} bytes")));
        }
        let body = element(text, root).map_err(|err| broken(err.to_string()))?;
        let parts = cut(body, slots).map_err(broken)?;
        let filled = |slot: &str| {
            parts.iter().any(|part| match part {
                Part::Text(_) => false,
                Part::Slot(name) | Part::Attribute { slot: name, .. } => *name == slot,
            })
        };
        match slots.iter().find(|slot| !filled(slot)) {
            Some(missing) => Err(broken(format!("the slot {{{{{missing}}}}} is missing"))),
            None => Ok(Self { file: file.to_owned(), parts }),
        }
    }

    /// Fills the slots; values are escaped. A slot that is an attribute's whole value may be without one.
    pub(super) fn fill(&self, values: &[(&'static str, Option<&str>)]) -> Result<String, XmlError> {
        let value = |slot: &str| values.iter().find(|(name, _)| *name == slot).and_then(|(_, value)| *value);
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Slot(slot) => {
                    let why = format!("the slot {{{{{slot}}}}} has to be the whole value of an attribute");
                    let none = || XmlError::Template { file: self.file.clone(), why };
                    out.push_str(&escape(value(slot).ok_or_else(none)?));
                }
                Part::Attribute { slot, open, close } => {
                    if let Some(value) = value(slot) {
                        out.push_str(open);
                        out.push_str(&escape(value));
                        out.push(*close);
                    }
                }
            }
        }
        Ok(out)
    }
}

/// The text of the root element.
fn element<'a>(text: &'a [u8], root: &str) -> Result<&'a str, XmlError> {
    let text = strict(text, "bytes of a template")?;
    let (mut reader, tag) = Reader::open(text, root)?;
    let end = reader.skip()?.end;
    reader.finish()?;
    Ok(text.get(tag.span.start..end).unwrap_or_default())
}

fn cut(body: &str, slots: &[&'static str]) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut rest = body;
    while let Some((before, tail)) = rest.split_once("{{") {
        let (name, after) = tail.split_once("}}").ok_or("a slot that is not closed by }}")?;
        let slot = slots.iter().find(|slot| **slot == name);
        let slot = slot.ok_or_else(|| {
            format!("the slot {{{{{}}}}} is unknown (there are: {})", shown(name), slots.join(", "))
        })?;
        match attribute(before, after) {
            Some((head, open, close)) => {
                parts.push(Part::Text(head.to_owned()));
                parts.push(Part::Attribute { slot, open: open.to_owned(), close });
                rest = after.get(close.len_utf8()..).unwrap_or_default();
            }
            None => {
                parts.push(Part::Text(before.to_owned()));
                parts.push(Part::Slot(slot));
                rest = after;
            }
        }
    }
    parts.push(Part::Text(rest.to_owned()));
    Ok(parts)
}

/// If the slot is the whole value of an attribute: what stands before the attribute, ` name='`, and the quote.
fn attribute<'a>(before: &'a str, after: &str) -> Option<(&'a str, &'a str, char)> {
    let quote = before.chars().next_back().filter(|c| matches!(c, '\'' | '"'))?;
    let name = before.strip_suffix(quote)?.strip_suffix('=')?;
    if !after.starts_with(quote) {
        return None;
    }
    let head =
        name.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).trim_end();
    Some((head, before.get(head.len()..)?, quote))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> Result<Template, XmlError> {
        Template::parse("t.xml", text.as_bytes(), "a", &["x", "y"])
    }

    #[test]
    fn slots_are_filled_and_escaped() {
        let t =
            template("<?xml version='1.0'?><!-- {{z}} --><a b='{{x}}'\n   c=\"{{y}}\">{{x}}</a>\n").unwrap();
        let all = t.fill(&[("x", Some("<'&\">")), ("y", Some("2"))]).unwrap();
        assert_eq!(all, "<a b='&lt;&apos;&amp;&quot;&gt;'\n   c=\"2\">&lt;&apos;&amp;&quot;&gt;</a>");
        assert_eq!(t.fill(&[("x", Some("1")), ("y", None)]).unwrap(), "<a b='1'>1</a>");
        let err = t.fill(&[("x", None), ("y", None)]).unwrap_err();
        assert!(err.to_string().contains("t.xml") && err.to_string().contains("{{x}}"), "{err}");
    }

    #[test]
    fn broken_templates_are_named() {
        for (text, word) in [
            ("<a b='{{x}}'/>", "{{y}} is missing"),
            ("<a b='{{x}}' c='{{z}}'/>", "{{z}} is unknown (there are: x, y)"),
            ("<a b='{{x}}' c='{{y'/>", "not closed"),
            ("<a b='{{x}}' c='{{y}}'>", "ends inside"),
            ("<b b='{{x}}' c='{{y}}'/>", "root element <a>"),
            ("<a b={{x}} c='{{y}}'/>", "malformed"),
            ("<{{x}} c='{{y}}'/>", "malformed"),
            ("", "no element"),
        ] {
            let err = template(text).unwrap_err();
            assert!(matches!(err, XmlError::Template { .. }));
            assert!(err.to_string().starts_with("template t.xml: "), "{err}");
            assert!(err.to_string().contains(word), "{text}: {err}");
        }
        let long = format!("<a b='{{{{x}}}}' c='{{{{y}}}}'>{}</a>", " ".repeat(MAX_TEMPLATE));
        assert!(template(&long).unwrap_err().to_string().contains("longer than"));
    }
}
