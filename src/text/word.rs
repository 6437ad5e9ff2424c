//! Single words of such files: type keys, what an unknown word was meant to be, and the quoted form.

use std::fmt::Write;

use crate::model::InvalidName;

/// Longest key of a type in bytes, as for type ids.
const MAX_KEY: usize = 128;

/// Reads the key of a type: a type id, or a vendor type name such as `I/O subchannel (Non-QDIO)`.
///
/// Blanks at the ends are dropped, as they are from the names that drivers print. Vendor names contain blanks,
/// brackets and slashes, so the form is wide: printable, with a letter or digit somewhere. A slash may stand between
/// two words only: nothing that could be read as an absolute path, or has a part that is empty, `.` or `..`. The rule
/// is a second fence: a key is only ever compared with what parents offer, and the id that is used is the parent's own.
///
/// # Errors
/// Says which of these is not so.
pub(crate) fn type_key(text: &str) -> Result<String, InvalidName> {
    let key = text.trim();
    let fault = if key.is_empty() || key.len() > MAX_KEY {
        Some("expected a type id or vendor type name of 1 to 128 bytes")
    } else if !key.chars().all(is_printable) {
        Some("it has a character that is not printable")
    } else if !key.chars().any(char::is_alphanumeric) {
        Some("it has no letter or digit")
    } else if key.split(['/', '\\']).any(|part| matches!(part, "" | "." | "..")) {
        Some("it looks like a path")
    } else {
        None
    };
    match fault {
        Some(reason) => Err(InvalidName::new("mdev type", text, reason)),
        None => Ok(key.to_owned()),
    }
}

/// ASCII, or a letter, digit or mark of ownership in another script: leaves out controls, and those invisible and
/// direction-changing characters that make one name look like another.
fn is_printable(c: char) -> bool {
    c == ' ' || c.is_ascii_graphic() || matches!(c, '®' | '™') || (!c.is_ascii() && c.is_alphanumeric())
}

/// A TOML basic string, the one form that is legal for keys and for values alike.
///
/// # Source
/// TOML 1.0, "String" and "Keys".
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// What to say about a word that is not one of `known`.
pub(crate) fn unknown(kind: &str, word: &str, known: &[&str]) -> String {
    let shown: String = word.chars().take(80).collect();
    match nearest(word, known) {
        Some(near) => format!("unknown {kind} {shown:?}; did you mean {near}?"),
        None => format!("unknown {kind} {shown:?}; expected {}", known.join(", ")),
    }
}

/// The known word with the fewest edits, if that is less than about a third of it.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    if word.len() > 64 {
        return None;
    }
    let scored = known.iter().map(|k| (edits(word, k), *k));
    scored.min().filter(|(edits, near)| *edits <= near.len().div_ceil(3)).map(|(_, near)| near)
}

/// Edit distance (Levenshtein) in bytes, one row at a time.
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.bytes()) {
            let cost = diagonal + usize::from(x != y);
            diagonal = *cell;
            left = cost.min(left + 1).min(*cell + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(a.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_name_and_never_a_path() {
        for good in
            ["nvidia-231", "1150", "GRID M60-2Q", "Demo v1.5/x+me", "I/O subchannel (Non-QDIO)", "a...b"]
        {
            assert_eq!(type_key(&format!(" {good}\t")).unwrap(), good);
        }
        let long = "x".repeat(129);
        for bad in [
            "",
            " ",
            "../../x",
            "nvidia-231/../nvidia-234",
            "/etc",
            ".",
            "..",
            "a//b",
            "a/",
            "..\\x",
            "-",
            "a\nb",
            "a\0",
            "a\u{202e}b",
            "a\u{200b}b",
            &long,
        ] {
            let err = type_key(bad).unwrap_err().to_string();
            assert!(err.contains("mdev type"), "{err}");
        }
    }

    #[test]
    fn the_nearest_word_is_named() {
        let known = ["enabled_mdev_types", "unlisted"];
        assert!(unknown("key", "enabled_mdev_typs", &known).ends_with("did you mean enabled_mdev_types?"));
        assert!(unknown("key", "enabled_vgpu_types", &known).ends_with("did you mean enabled_mdev_types?"));
        assert_eq!(
            unknown("key", "colour", &known),
            "unknown key \"colour\"; expected enabled_mdev_types, unlisted"
        );
        assert_eq!((edits("", "abc"), edits("abc", ""), edits("saturday", "sunday")), (3, 3, 3));
    }
}
