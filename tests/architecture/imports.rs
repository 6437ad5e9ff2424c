//! Which paths a file names: `crate::..`, `super::..` out of its room, and other crates.

use crate::source::Source;
use crate::tokens::{Token, is_word, tokens};

/// A path that a file names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Import {
    /// `["host", "libvirt", "open"]` for `crate::host::libvirt::open`; with the crate's name first if it is another one.
    pub(crate) path: Vec<String>,
    /// Line, from 1.
    pub(crate) line: usize,
    /// It stands in code that only tests compile.
    pub(crate) in_test: bool,
}

/// Paths of this crate, however spelled (`crate`, `mdevirt`, `self`, `super`), as they are from the crate's root.
pub(crate) fn of_this_crate(source: &Source) -> Vec<Import> {
    let code = source.code();
    let tokens = tokens(&code, source.is_test_file());
    let module = module_of(&source.path);
    let mut found = Vec::new();
    for at in (0..tokens.len()).filter(|at| starts_path(&tokens, *at)) {
        let (start, mut prefix) = base(&tokens, at, &module);
        collect(&tokens, start, &mut prefix, &mut found);
    }
    found.retain(|import| !import.path.is_empty());
    found
}

/// Places where a file names one of `crates` at the head of a path.
pub(crate) fn of_crates(source: &Source, crates: &[&str]) -> Vec<Import> {
    let code = source.code();
    let tokens = tokens(&code, source.is_test_file());
    let is_path = |at: usize| {
        let head = at == 0 || !matches!(tokens[at - 1].text, "::" | ".");
        let used = at > 0 && matches!(tokens[at - 1].text, "use" | "crate_name");
        head && (used || tokens.get(at + 1).is_some_and(|next| next.text == "::"))
    };
    (0..tokens.len())
        .filter(|at| crates.contains(&tokens[*at].text) && is_path(*at))
        .map(|at| import(&[tokens[at].text.to_owned()], &tokens[at]))
        .collect()
}

fn import(path: &[String], token: &Token<'_>) -> Import {
    Import { path: path.to_vec(), line: token.line, in_test: token.in_test }
}

/// `crate`, `mdevirt`, `self` or a first `super`, followed by `::`.
fn starts_path(tokens: &[Token<'_>], at: usize) -> bool {
    let head = matches!(tokens[at].text, "crate" | "mdevirt" | "self" | "super");
    let fresh = at == 0 || tokens[at - 1].text != "::";
    head && fresh && tokens.get(at + 1).is_some_and(|next| next.text == "::")
}

/// Where the path goes on after its head, and what the head stands for.
fn base(tokens: &[Token<'_>], at: usize, module: &[&str]) -> (usize, Vec<String>) {
    if matches!(tokens[at].text, "crate" | "mdevirt") {
        return (at + 2, Vec::new());
    }
    let mut here: Vec<String> = module.iter().map(|part| (*part).to_owned()).collect();
    here.resize(here.len() + tokens[at].inline, "inline".to_owned());
    let mut next = at;
    while tokens.get(next + 1).is_some_and(|after| after.text == "::") {
        match tokens[next].text {
            "super" => drop(here.pop()),
            "self" => {}
            _ => break,
        }
        next += 2;
    }
    (next, here)
}

/// Takes one tree of a `use` (or a plain path) that begins at `at`; returns where it ends.
fn collect(tokens: &[Token<'_>], at: usize, prefix: &mut Vec<String>, found: &mut Vec<Import>) -> usize {
    let Some(token) = tokens.get(at) else { return at };
    if token.text == "{" {
        return collect_group(tokens, at + 1, prefix, found);
    }
    if !is_word(token.text) {
        found.push(import(prefix, token));
        return at + 1;
    }
    prefix.push(token.text.to_owned());
    let more = tokens.get(at + 1).is_some_and(|next| next.text == "::");
    let end = if more {
        collect(tokens, at + 2, prefix, found)
    } else {
        found.push(import(prefix, token));
        at + 1
    };
    prefix.pop();
    end
}

fn collect_group(
    tokens: &[Token<'_>],
    mut at: usize,
    prefix: &mut Vec<String>,
    found: &mut Vec<Import>,
) -> usize {
    while let Some(token) = tokens.get(at) {
        match token.text {
            "}" => return at + 1,
            "as" => at += 2,
            "," => at += 1,
            _ => at = collect(tokens, at, prefix, found),
        }
    }
    at
}

/// The module that a file is: `["plan"]` for `src/plan/mod.rs`, `["plan", "pick"]` for `src/plan/pick.rs`.
fn module_of(path: &str) -> Vec<&str> {
    let inner = path.strip_prefix("src/").unwrap_or(path);
    let inner = inner.strip_suffix("/mod.rs").or_else(|| inner.strip_suffix(".rs")).unwrap_or(inner);
    inner.split('/').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(path: &str, text: &str) -> Vec<String> {
        of_this_crate(&Source::new(path, text)).iter().map(|i| i.path.join("::")).collect()
    }

    #[test]
    fn every_spelling_is_seen() {
        let text = "use crate::model::{self, Claim as C, job::{Job, JobId}, vocab::*};\n\
                    pub(crate) fn f(x: crate::store::Books) { crate::host::libvirt::open(\"crate::dbus::x\"); }\n\
                    // crate::cli::y\n\
                    use crate::{plan, xml::render};";
        assert_eq!(
            paths("src/ops/spawn.rs", text),
            [
                "model::self",
                "model::Claim",
                "model::job::Job",
                "model::job::JobId",
                "model::vocab",
                "store::Books",
                "host::libvirt::open",
                "plan",
                "xml::render"
            ]
        );
        assert_eq!(paths("src/bin/mdevirtd.rs", "fn main() { mdevirt::daemon::main() }"), ["daemon::main"]);
    }

    #[test]
    fn relative_paths_are_followed_to_the_root() {
        let text = "use super::capacity; use super::super::store::X; use self::part::Y;";
        assert_eq!(paths("src/plan/pick.rs", text), ["plan::capacity", "store::X", "plan::pick::part::Y"]);
        assert_eq!(paths("src/plan/mod.rs", "use super::store::X;"), ["store::X"]);
        assert_eq!(paths("src/host/sim/rule.rs", "use super::super::HostError;"), ["host::HostError"]);
        let inline =
            "mod tests { use super::super::capacity; fn f() { super::super::super::store::g(self.x); } }";
        assert_eq!(paths("src/plan/pick.rs", inline), ["plan::capacity", "store::g"]);
    }

    #[test]
    fn test_code_is_told_apart() {
        let text = "use crate::a::X;\n#[cfg(test)]\nmod tests { fn f() { crate::b::y(); } }\nuse crate::c::Z;\n\
                    #[cfg(test)]\nuse crate::d::W;\nuse crate::e::V;";
        let marks: Vec<(String, bool)> = of_this_crate(&Source::new("src/a/b.rs", text))
            .iter()
            .map(|i| (i.path[0].clone(), i.in_test))
            .collect();
        let expected = [("a", false), ("b", true), ("c", false), ("d", true), ("e", false)];
        assert_eq!(marks, expected.map(|(room, test)| (room.to_owned(), test)));
    }

    #[test]
    fn other_crates_are_seen_at_the_head_of_a_path_only() {
        let source = Source::new(
            "src/ops/a.rs",
            "use rusqlite::Row;\nlet rusqlite = x.rusqlite;\nuse zbus;\nfn f(z: zbus::Y) {}",
        );
        let lines: Vec<usize> = of_crates(&source, &["rusqlite", "zbus"]).iter().map(|i| i.line).collect();
        assert_eq!(lines, [1, 3, 4]);
    }
}
