//! oslo.config's INI dialect, which nova.conf is written in, with line numbers.
//!
//! `[group]` lines; `key = value` or `key: value`, whichever sign comes first; a line that begins with a blank goes
//! on with the value before it; an empty line ends a value; `#` and `;` begin a comment at the start of a line only.
//! One pair of quotes around a whole value is dropped. Groups are compared without case, keys with it; a repeated group goes on,
//! and of a repeated key the last one counts.
//!
//! Rejected: the `configparser` crate, which keeps no line numbers, cuts values at `#` and forgets repeated keys.
//!
//! # Source
//! oslo.config 9, `iniparser.BaseParser.parse`, `cfg.ConfigParser` and `cfg._normalize_group_name`.

use std::collections::HashMap;

use crate::text::{ConfigError, Problems};

/// One assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// As written, without the brackets.
    pub(super) group: String,
    /// As written.
    pub(super) key: String,
    /// Lines of the value joined by line feeds.
    pub(super) value: String,
    /// Line of the key, counted from 1.
    pub(super) line: u32,
}

/// What the file holds, in its order.
#[derive(Debug, Default)]
pub(super) struct Ini {
    /// Heads of groups and their lines, also of empty groups.
    pub(super) groups: Vec<(String, u32)>,
    /// Assignments.
    pub(super) entries: Vec<Entry>,
    /// By group (lower case) and key: the assignment that counts.
    last: HashMap<(String, String), usize>,
}

/// Reads a text; lines that cannot be understood go to `problems`.
pub(super) fn read(text: &str, origin: &str, problems: &mut Problems) -> Ini {
    let mut ini = Ini::default();
    // Whether the next indented line belongs to the last entry.
    let mut open = false;
    for (line, number) in text.lines().zip(1u32..) {
        let line = line.trim_end();
        let result = if line.is_empty() {
            open = false;
            Ok(())
        } else if line.starts_with([' ', '\t']) {
            go_on(&mut ini, open, line.trim_start())
        } else {
            open = false;
            match line.chars().next() {
                Some('#' | ';') => Ok(()),
                Some('[') => head(&mut ini, line, number),
                Some(_) | None => {
                    open = true;
                    assignment(&mut ini, line, number)
                }
            }
        };
        if let Err(text) = result {
            open = false;
            problems.push(ConfigError { line: Some(number), ..ConfigError::file(origin, text) });
        }
    }
    for (at, entry) in ini.entries.iter().enumerate() {
        ini.last.insert((entry.group.to_ascii_lowercase(), entry.key.clone()), at);
    }
    ini
}

fn go_on(ini: &mut Ini, open: bool, text: &str) -> Result<(), &'static str> {
    match ini.entries.last_mut() {
        Some(entry) if open => {
            entry.value.push('\n');
            entry.value.push_str(text);
            Ok(())
        }
        Some(_) | None => Err("an indented line with no value before it to go on with"),
    }
}

fn head(ini: &mut Ini, line: &str, number: u32) -> Result<(), &'static str> {
    let name = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match name {
        Some("") => Err("a group without a name"),
        Some(name) => {
            ini.groups.push((name.to_owned(), number));
            Ok(())
        }
        None => Err("a group must end with ]"),
    }
}

fn assignment(ini: &mut Ini, line: &str, number: u32) -> Result<(), &'static str> {
    let at = line.find(['=', ':']).ok_or("neither a group, nor key = value, nor a comment")?;
    let (key, value) = line.split_at(at);
    let (key, value) = (key.trim(), value.get(1..).unwrap_or_default().trim());
    if key.is_empty() {
        return Err("a value without a key");
    }
    let (group, _) = ini.groups.last().ok_or("a value outside of any group")?;
    let entry =
        Entry { group: group.clone(), key: key.to_owned(), value: unquoted(value).to_owned(), line: number };
    ini.entries.push(entry);
    Ok(())
}

fn unquoted(value: &str) -> &str {
    let pair = |quote| value.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
    pair('"').or_else(|| pair('\'')).unwrap_or(value)
}

impl Ini {
    /// The last assignment of a key in a group, as oslo takes it.
    pub(super) fn last(&self, group: &str, key: &str) -> Option<&Entry> {
        let at = self.last.get(&(group.to_ascii_lowercase(), key.to_owned()))?;
        self.entries.get(*at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good(text: &str) -> Ini {
        let mut problems = Problems::default();
        let ini = read(text, "nova.conf", &mut problems);
        problems.or(ini).unwrap()
    }

    #[test]
    fn values_are_read_as_oslo_reads_them() {
        let ini = good(
            "[DEFAULT]\n# note\n; note\na = 1 # no comment\nb: x=y\n\nlist = one,\n  two,\n\tthree\nq = \"x y\"\n[G]\na=\n[g]\na = 2\n",
        );
        let all: Vec<(&str, &str, &str)> =
            ini.entries.iter().map(|e| (e.group.as_str(), e.key.as_str(), e.value.as_str())).collect();
        assert_eq!(
            all,
            [
                ("DEFAULT", "a", "1 # no comment"),
                ("DEFAULT", "b", "x=y"),
                ("DEFAULT", "list", "one,\ntwo,\nthree"),
                ("DEFAULT", "q", "x y"),
                ("G", "a", ""),
                ("g", "a", "2"),
            ]
        );
        assert_eq!(ini.last("G", "a").map(|e| (e.value.as_str(), e.line)), Some(("2", 14)));
        assert_eq!(ini.last("G", "A"), None);
    }

    #[test]
    fn every_bad_line_is_named() {
        let mut problems = Problems::default();
        read("x = 1\n[a]\n\n  lonely\nnothing\n[]\n[b\n= 2\n\nk = v\n\n  late\n", "nova.conf", &mut problems);
        let errors = problems.or(()).unwrap_err().errors;
        assert_eq!(errors.iter().filter_map(|e| e.line).collect::<Vec<_>>(), [1, 4, 5, 6, 7, 8, 12]);
    }
}
