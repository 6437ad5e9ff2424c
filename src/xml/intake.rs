//! Bytes to text: the checks that need no parser.

use std::borrow::Cow;

use super::error::XmlError;

/// Greatest size of a document in bytes: 4 MiB. A real domain has some KiB, a real parent under 100.
///
/// # Source
/// libvirt `src/remote/remote_protocol.x`, `REMOTE_STRING_MAX`: longer XML passes no libvirt connection.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Stands for bytes that were not text.
pub(super) const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

const WHOLE: &str = "the document";

/// Text that is taken as it is or not at all.
pub(super) fn strict<'a>(bytes: &'a [u8], what: &'static str) -> Result<&'a str, XmlError> {
    check_size_and_nul(bytes, what)?;
    let text = std::str::from_utf8(bytes).map_err(|err| {
        XmlError::malformed(WHOLE, format!("byte {} begins no UTF-8 character", err.valid_up_to()))
    })?;
    match forbidden_in(text) {
        Some(c) => Err(XmlError::malformed(WHOLE, format!("the character {} is not allowed", name_of(c)))),
        None => Ok(text),
    }
}

/// Text in which what is no XML character became U+FFFD: one card with a broken product string must not hide the card.
/// Who reads an identifier from it has to refuse [`REPLACEMENT`]. NUL is refused all the same.
pub(super) fn lenient<'a>(bytes: &'a [u8], what: &'static str) -> Result<Cow<'a, str>, XmlError> {
    check_size_and_nul(bytes, what)?;
    // Tried first because it is much faster on text that is clean.
    let text = std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed);
    if forbidden_in(&text).is_none() {
        return Ok(text);
    }
    Ok(Cow::Owned(text.chars().map(|c| if is_allowed(c) { c } else { REPLACEMENT }).collect()))
}

fn check_size_and_nul(bytes: &[u8], what: &'static str) -> Result<(), XmlError> {
    if bytes.len() > MAX_BYTES {
        return Err(XmlError::LimitExceeded { what, limit: MAX_BYTES });
    }
    if bytes.contains(&0) {
        return Err(XmlError::malformed(WHOLE, "it contains a NUL byte"));
    }
    Ok(())
}

fn forbidden_in(text: &str) -> Option<char> {
    // Branch-free over all bytes first: nearly every document is clean, and this is vectorised.
    let suspect = text.bytes().fold(false, |found, b| found | (b < 0x20) & !is_blank(b) | (b == 0xef));
    if suspect { text.chars().find(|c| !is_allowed(*c)) } else { None }
}

fn is_blank(b: u8) -> bool {
    (b == b'\t') | (b == b'\n') | (b == b'\r')
}

/// Whether XML 1.0 allows the character in a document.
///
/// # Source
/// XML 1.0, production 2 (`Char`).
pub(super) fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// `U+000C`, for messages.
pub(super) fn name_of(c: char) -> String {
    format!("U+{:04X}", u32::from(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_xml_characters_pass() {
        assert_eq!(strict("a\tb\r\nü\u{1f600}".as_bytes(), "x").unwrap(), "a\tb\r\nü\u{1f600}");
        for (bytes, word) in [
            (&b"a\0b"[..], "NUL"),
            (b"a\x0cb", "U+000C"),
            (b"a\x1bb", "U+001B"),
            (b"a\xffb", "byte 1"),
            (b"a\xef\xbf\xbfb", "U+FFFF"),
        ] {
            let err = strict(bytes, "x").unwrap_err();
            assert!(err.to_string().contains(word), "{err}");
        }
    }

    #[test]
    fn the_lenient_form_replaces_all_but_nul() {
        assert_eq!(lenient(b"a\x0cb\xffc", "x").unwrap(), "a\u{fffd}b\u{fffd}c");
        assert!(lenient(b"a\0b", "x").is_err());
        assert!(matches!(lenient(b"clean", "x").unwrap(), Cow::Borrowed(_)));
    }

    #[test]
    fn size_is_checked_before_anything_is_looked_at() {
        let err = strict(&vec![0xff; MAX_BYTES + 1], "domain XML in bytes").unwrap_err();
        assert_eq!(err.to_string(), "domain XML in bytes: more than 4194304");
    }
}
