//! The xml room against the cases, golden files and hostile input.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on shall stop")]

mod domain;
mod exchange;
mod golden;
mod hostile;
mod nodedev;
mod render;
mod write;

use std::path::Path;

/// The bytes of an input file below `tests/cases`.
fn case(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name);
    std::fs::read(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()))
}

/// The same as text.
fn case_text(name: &str) -> String {
    String::from_utf8(case(name)).unwrap()
}
