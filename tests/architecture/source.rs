//! Reads the tree, and tells code from comments and literals.

use std::fs;
use std::path::{Path, PathBuf};

/// A file of the repository.
pub(crate) struct Source {
    /// Path below the repository, with `/`.
    pub(crate) path: String,
    /// All of it.
    pub(crate) text: String,
}

impl Source {
    #[cfg(test)]
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// Comments, strings and characters blanked out, lines kept.
    pub(crate) fn code(&self) -> String {
        blank(&self.text)
    }

    /// Whether the whole file is compiled for tests only.
    pub(crate) fn is_test_file(&self) -> bool {
        self.path.split('/').any(|part| {
            let stem = part.strip_suffix(".rs").unwrap_or(part);
            stem == "tests" || stem.ends_with("_tests")
        })
    }
}

/// What is never read: build output, and what belongs to git.
const SKIPPED: [&str; 4] = ["target", ".git", "__pycache__", "fuzz-corpus"];

/// All text files below `dir` of the repository, in the order of their paths; binary ones are left out.
pub(crate) fn text_files(dir: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    walk(&root.join(dir), &mut paths);
    paths.sort();
    paths
        .iter()
        .filter_map(|path| {
            let text = String::from_utf8(fs::read(path).unwrap()).ok().filter(|t| !t.contains('\0'))?;
            let path = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            Some(Source { path, text })
        })
        .collect()
}

fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if SKIPPED.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            walk(&entry.path(), found);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
}

/// Replaces what is not code by spaces.
fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let boundary = !out.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let skipped = comment(rest).or_else(|| literal(rest, boundary));
        let (length, keep) =
            skipped.map_or_else(|| (rest.chars().next().map_or(1, char::len_utf8), true), |n| (n, false));
        let (head, tail) = rest.split_at(length);
        if keep {
            out.push_str(head);
        } else {
            out.extend(head.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        }
        rest = tail;
    }
    out
}

/// Length of the comment that `text` begins with.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if !text.starts_with("/*") {
        return None;
    }
    let mut depth = 0_usize;
    let bytes = text.as_bytes();
    let mut at = 0;
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" if depth == 1 => return Some(at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    Some(text.len())
}

/// Length of the string or character that `text` begins with; `boundary` says that no word ends right before it.
fn literal(text: &str, boundary: bool) -> Option<usize> {
    let prefix = if boundary { text.len() - text.trim_start_matches(['b', 'c']).len() } else { 0 };
    let body = &text[prefix..];
    if boundary && body.starts_with('r') {
        let hashes = body[1..].len() - body[1..].trim_start_matches('#').len();
        let end = format!("\"{}", "#".repeat(hashes));
        let open = body[1 + hashes..].starts_with('"').then_some(prefix + 2 + hashes)?;
        return Some(text[open..].find(&end).map_or(text.len(), |n| open + n + end.len()));
    }
    match body.chars().next()? {
        '"' => Some(prefix + quoted(body, '"')),
        // 'a is a lifetime, 'a' a character.
        '\'' if body[1..].starts_with('\\') || body.chars().nth(2) == Some('\'') => {
            Some(prefix + quoted(body, '\''))
        }
        _ => None,
    }
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if !escaped && c == quote {
            return at + c.len_utf8();
        }
        escaped = !escaped && c == '\\';
    }
    text.len()
}

#[test]
fn only_code_is_left() {
    let source = Source::new(
        "x.rs",
        "a /* b /* c */ d */ e // f\n\"g \\\" h\" i r#\"j \" k\"# l b'm' 'n' '\\'' <'o> br\"p\" writer\"q\" // é",
    );
    let words: Vec<String> = source.code().split_whitespace().map(str::to_owned).collect();
    assert_eq!(words, ["a", "e", "i", "l", "<'o>", "writer"]);
    assert_eq!(source.code().lines().count(), 2);
}

#[test]
fn test_files_are_known_by_name() {
    for (path, tests) in [
        ("src/plan/tests.rs", true),
        ("src/plan/tests/pick.rs", true),
        ("src/plan/pick_tests.rs", true),
        ("src/plan/pick.rs", false),
        ("src/plan/attests.rs", false),
    ] {
        assert_eq!(Source::new(path, "").is_test_file(), tests, "{path}");
    }
}
