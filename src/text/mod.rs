//! Text files that people and other hosts write: read whole and bounded, each value with its place, and all errors of a
//! file together (rank 0, beside `model`).
//!
//! 1. A value is read in its form or named as wrong with file, line and key; nothing is guessed.
//! 2. One attempt names everything that is wrong, a bounded number of it ([`ConfigErrors`]).
//! 3. A file is written whole or not at all ([`write_file`]).
//!
//! Rejected: deserialising into a struct with serde, which stops at the first error of a file.

mod error;
mod file;
mod place;
mod time;
mod value;
mod word;

pub use error::{ConfigError, ConfigErrors};
pub use file::{read_file, write_file};
pub use time::utc;

pub(crate) use error::Problems;
pub(crate) use place::{At, Spot};
pub(crate) use value::{Reader, Value};
pub(crate) use word::{nearest, quoted, type_key};

/// Greatest size in bytes of a file that people write.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;
