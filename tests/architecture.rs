//! Rules of the house that no compiler checks. Each law is proven on planted violations beside it.

#![expect(clippy::unwrap_used, reason = "a tree that cannot be read is a failed test")]

#[path = "architecture/imports.rs"]
mod imports;
#[path = "architecture/laws.rs"]
mod laws;
#[path = "architecture/rooms.rs"]
mod rooms;
#[path = "architecture/source.rs"]
mod source;
#[path = "architecture/tokens.rs"]
mod tokens;

use source::{Source, text_files};

/// Runs a law over what it is about, and prints each violation on a line of its own.
fn obeyed(law: fn(&[Source]) -> Vec<String>, files: &[Source]) {
    assert!(files.len() > 10, "only {} files were found, that cannot be all", files.len());
    let found = law(files);
    assert!(found.is_empty(), "{} violations:\n{}", found.len(), found.join("\n"));
}

fn rust_sources() -> Vec<Source> {
    let mut files = text_files("src");
    files.retain(|file| file.path.ends_with(".rs"));
    files
}

#[test]
fn nobody_imports_upwards() {
    obeyed(rooms::climbs, &rust_sources());
}

#[test]
fn no_rooms_import_each_other_in_a_circle() {
    obeyed(rooms::cycles, &rust_sources());
}

#[test]
fn one_room_alone_uses_sqlite_libvirt_and_zbus() {
    obeyed(laws::foreign_crates, &rust_sources());
}

#[test]
fn unsafe_is_in_one_place_and_each_block_has_its_note() {
    obeyed(laws::unsafe_code, &rust_sources());
}

#[test]
fn no_file_is_too_long() {
    obeyed(laws::long_files, &rust_sources());
}

#[test]
fn names_say_something() {
    obeyed(laws::empty_names, &rust_sources());
}

#[test]
fn nothing_is_left_for_later() {
    obeyed(laws::unfinished, &rust_sources());
}

#[test]
fn no_machine_is_in_the_text() {
    obeyed(laws::forbidden_text, &text_files("."));
}
