//! Changes of a text by place: everything between them stays byte for byte.

use std::ops::Range;

/// One change.
pub(super) struct Edit {
    /// The bytes it replaces.
    pub(super) at: Range<usize>,
    /// What comes there.
    pub(super) with: String,
}

impl Edit {
    pub(super) fn insert(at: usize, with: String) -> Self {
        Self { at: at..at, with }
    }

    pub(super) fn remove(at: Range<usize>) -> Self {
        Self { at, with: String::new() }
    }
}

/// The text with all changes made. They must not overlap; two at one place keep their order.
pub(super) fn apply(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| edit.at.start);
    let mut out = String::with_capacity(text.len() + edits.iter().map(|e| e.with.len()).sum::<usize>());
    let mut done = 0;
    for edit in edits {
        out.push_str(text.get(done..edit.at.start).unwrap_or_default());
        out.push_str(&edit.with);
        done = edit.at.end;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

/// The line break and the blanks right before this place; empty if something else stands before it on its line.
pub(super) fn lead(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or_default();
    let line = before.trim_end_matches([' ', '\t']).len();
    let begin = match before.get(..line) {
        Some(head) if head.ends_with("\r\n") => line - 2,
        Some(head) if head.ends_with('\n') => line - 1,
        Some(_) | None => return "",
    };
    before.get(begin..).unwrap_or_default()
}

/// One step of indentation where the document shows none.
const STEP: &str = "  ";

/// One step further in than a [`lead`]; on one line stays on one line.
pub(super) fn deeper(outer: &str) -> String {
    if outer.is_empty() {
        return String::new();
    }
    let step = if blanks(outer).is_empty() { STEP } else { blanks(outer) };
    format!("{outer}{step}")
}

/// The blanks of a [`lead`].
fn blanks(lead: &str) -> &str {
    lead.trim_start_matches(['\r', '\n'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_keep_what_is_between_them() {
        let edits = vec![Edit::insert(5, "X".into()), Edit::remove(1..3), Edit::insert(5, "Y".into())];
        assert_eq!(apply("abcdefg", edits), "adeXYfg");
        assert_eq!(apply("abc", vec![]), "abc");
    }

    #[test]
    fn a_lead_is_a_whole_line_start() {
        assert_eq!(lead("a\n  <b>", 4), "\n  ");
        assert_eq!(lead("a\r\n\t<b>", 4), "\r\n\t");
        assert_eq!(lead("a  <b>", 3), "");
        assert_eq!(lead("  <b>", 2), "");
        assert_eq!(blanks("\r\n\t "), "\t ");
    }
}
