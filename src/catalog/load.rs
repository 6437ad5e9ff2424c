//! The two files of traits; one that is not there is no error.

use std::path::Path;

use super::{Catalog, Lock, MAX_LOCK_BYTES};
use crate::text::{ConfigErrors, MAX_FILE_BYTES, Problems, read_file};

impl Catalog {
    /// Reads `traits.toml`; without one no trait is bound.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(path: &Path) -> Result<Self, ConfigErrors> {
        let parsed = read(path, MAX_FILE_BYTES, Self::parse)?;
        Ok(parsed.unwrap_or_default())
    }
}

impl Lock {
    /// Reads `traits.lock`; `None` without one.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(path: &Path) -> Result<Option<Self>, ConfigErrors> {
        read(path, MAX_LOCK_BYTES, Self::parse)
    }
}

fn read<T>(
    path: &Path,
    limit: usize,
    parse: impl FnOnce(&str, &str) -> Result<T, ConfigErrors>,
) -> Result<Option<T>, ConfigErrors> {
    let mut problems = Problems::default();
    match read_file(path, limit) {
        Ok(Some(text)) => parse(&text, &path.display().to_string()).map(Some),
        Ok(None) => Ok(None),
        Err(error) => {
            problems.push(error);
            problems.or(None)
        }
    }
}
