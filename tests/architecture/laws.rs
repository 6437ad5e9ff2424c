//! The other rules of the house: who may use which crate, where `unsafe` is, sizes, words.

use crate::imports::of_crates;
use crate::source::Source;

/// Crates that one room alone uses, so that one room alone changes when they do.
const OWNED_CRATES: [(&str, &[&str]); 3] = [
    ("src/store/", &["rusqlite", "rusqlite_migration"]),
    ("src/host/libvirt/", &["virt", "virt_sys"]),
    ("src/dbus/", &["zbus", "zbus_polkit"]),
];

/// The only files with `unsafe`: the calls into libvirt's C library that its crate does not wrap.
const UNSAFE_DIR: &str = "src/host/libvirt/";

/// A file of this many lines is too long to be read in one go.
const LARGEST_FILE: usize = 400;

/// An interface of D-Bus is one block of code.
const INTERFACE: (&str, usize) = ("src/dbus/manager.rs", 480);

/// The programs only call a room.
const LARGEST_PROGRAM: usize = 40;

/// Words that say nothing about the thing, as the last word of a type's name.
const EMPTY_WORDS: [&str; 9] =
    ["Manager", "Util", "Utils", "Helper", "Common", "Data", "Info", "Process", "Profile"];

/// Text that belongs to one machine, or to how the work was organised, never to the repository.
const FORBIDDEN_TEXT: [&str; 6] = [
    concat!("/wo", "rk/"),
    concat!(".lib", "rary/"),
    concat!("/root/.car", "go"),
    concat!("static.crates", ".io"),
    concat!("deb.debian", ".org"),
    concat!("files.python", "hosted.org"),
];

/// Crates used outside the room that owns them.
pub(crate) fn foreign_crates(files: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for (room, crates) in OWNED_CRATES {
        for file in files.iter().filter(|file| !file.path.starts_with(room)) {
            for import in of_crates(file, crates) {
                found.push(format!("{}:{}: {} belongs to {room}", file.path, import.line, import.path[0]));
            }
        }
    }
    found
}

/// `unsafe` outside its place, and places where blocks and `SAFETY:` notes differ in number.
pub(crate) fn unsafe_code(files: &[Source]) -> Vec<String> {
    files.iter().filter_map(unsafe_of).collect()
}

fn unsafe_of(file: &Source) -> Option<String> {
    let code = file.code();
    let words: Vec<&str> = code
        .split(|c: char| !c.is_alphanumeric() && c != '_' && c != '{')
        .filter(|w| !w.is_empty())
        .collect();
    if !words.contains(&"unsafe") {
        return None;
    }
    if !file.path.starts_with(UNSAFE_DIR) {
        return Some(format!("{}: unsafe belongs to {UNSAFE_DIR}", file.path));
    }
    let blocks =
        words.windows(2).filter(|pair| pair[0] == "unsafe" && matches!(pair[1], "{" | "impl")).count();
    let notes = file.text.lines().filter(|line| line.trim_start().starts_with("// SAFETY:")).count();
    (blocks != notes).then(|| format!("{}: {blocks} unsafe blocks, {notes} SAFETY notes", file.path))
}

/// Files that are too long.
pub(crate) fn long_files(files: &[Source]) -> Vec<String> {
    let limit = |path: &str| match path {
        _ if path == INTERFACE.0 => INTERFACE.1,
        _ if path.starts_with("src/bin/") => LARGEST_PROGRAM,
        _ => LARGEST_FILE,
    };
    files
        .iter()
        .map(|file| (file, file.text.lines().count()))
        .filter(|(file, lines)| *lines >= limit(&file.path))
        .map(|(file, lines)| {
            format!("{}: {lines} lines, fewer than {} wanted: split it", file.path, limit(&file.path))
        })
        .collect()
}

/// Types named with a word that says nothing. `Manager` is the D-Bus interface's name.
pub(crate) fn empty_names(files: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        let code = file.code();
        let words: Vec<&str> =
            code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty()).collect();
        for pair in words.windows(2).filter(|pair| matches!(pair[0], "struct" | "enum" | "trait" | "union")) {
            let empty = EMPTY_WORDS.iter().find(|word| pair[1].ends_with(**word));
            let on_the_bus = file.path.starts_with("src/dbus/") && pair[1].contains("Manager");
            if let Some(word) = empty.filter(|_| !on_the_bus) {
                found.push(format!(
                    "{}: {} {}: \"{word}\" says nothing, name what it is",
                    file.path, pair[0], pair[1]
                ));
            }
        }
    }
    found
}

/// Unfinished work left in the code.
pub(crate) fn unfinished(files: &[Source]) -> Vec<String> {
    lines_with(files, &[concat!("TO", "DO"), concat!("FIX", "ME")])
}

/// Text that must not be in the repository.
pub(crate) fn forbidden_text(files: &[Source]) -> Vec<String> {
    lines_with(files, &FORBIDDEN_TEXT)
}

fn lines_with(files: &[Source], words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            found.extend(
                words
                    .iter()
                    .filter(|word| line.contains(**word))
                    .map(|word| format!("{}:{}: {word}", file.path, index + 1)),
            );
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(law: fn(&[Source]) -> Vec<String>, path: &str, text: &str) -> usize {
        law(&[Source::new(path, text)]).len()
    }

    #[test]
    fn planted_crates_are_found() {
        for (path, text, count) in [
            ("src/ops/spawn.rs", "use rusqlite::Row;", 1),
            ("src/store/mod.rs", "use rusqlite::Row; use rusqlite_migration::M;", 0),
            ("src/host/sim/mod.rs", "fn f(c: virt::connect::Connect) {}", 1),
            ("src/host/libvirt/link.rs", "use virt::connect::Connect;", 0),
            ("src/cli/mod.rs", "use crate::dbus::zbus; use zbus::Proxy;", 1),
            ("src/daemon/mod.rs", "#[cfg(test)] mod tests { use zbus_polkit::X; }", 1),
        ] {
            assert_eq!(one(foreign_crates, path, text), count, "{path}: {text}");
        }
    }

    #[test]
    fn planted_unsafe_is_found() {
        let noted = "// SAFETY: the pointer is ours.\nlet x = unsafe { f() };";
        for (path, text, count) in [
            ("src/host/libvirt/ffi.rs", noted, 0),
            ("src/host/libvirt/ffi.rs", "let x = unsafe { f() };", 1),
            ("src/host/libvirt/ffi.rs", "// SAFETY: x\nunsafe { f() }; unsafe { g() }", 1),
            (
                "src/host/libvirt/ffi.rs",
                "// SAFETY: x\nunsafe impl Send for X {}\nunsafe extern \"C\" fn g() {}",
                0,
            ),
            ("src/host/sysfs.rs", noted, 1),
            ("src/host/sysfs.rs", "// unsafe { f() }\nlet x = \"unsafe {\"; #[deny(unsafe_code)]", 0),
        ] {
            assert_eq!(one(unsafe_code, path, text), count, "{path}: {text}");
        }
    }

    #[test]
    fn planted_length_is_found() {
        for (path, lines, count) in [
            ("src/ops/spawn.rs", LARGEST_FILE - 1, 0),
            ("src/ops/spawn.rs", LARGEST_FILE, 1),
            ("src/bin/mdevirtd.rs", LARGEST_PROGRAM - 1, 0),
            ("src/bin/mdevirtd.rs", LARGEST_PROGRAM, 1),
        ] {
            assert_eq!(one(long_files, path, &"x\n".repeat(lines)), count, "{path} {lines}");
        }
    }

    #[test]
    fn planted_words_are_found() {
        assert_eq!(one(empty_names, "src/ops/a.rs", "pub struct SpawnManager; enum DeviceInfo {}"), 2);
        assert_eq!(
            one(empty_names, "src/ops/a.rs", "struct Claim; // struct ClaimManager\nfn struct_info() {}"),
            0
        );
        assert_eq!(one(empty_names, "src/dbus/manager.rs", "struct Manager; struct ManagerProxy;"), 0);
        assert_eq!(one(unfinished, "src/ops/a.rs", concat!("// TO", "DO: later")), 1);
        assert_eq!(one(forbidden_text, "README.md", concat!("see /wo", "rk/x and .lib", "rary/y\nfine")), 2);
    }
}
