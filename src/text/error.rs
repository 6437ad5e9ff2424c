//! What is wrong with files that people write: every error at once, each with its place.

use std::fmt;
use std::io;
use std::path::Path;

use serde::Serialize;

use crate::model::{Fault, FaultKind};

use super::place::Spot;

/// Errors of one attempt that are kept; a file of nonsense must not become a message of megabytes.
const MAX_ERRORS: usize = 100;

/// One error and its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ConfigError {
    /// The file as the caller named it; control characters are escaped.
    pub file: String,
    /// Line, counted from 1; `None` if it is about the whole file.
    pub line: Option<u32>,
    /// Table and key as that file spells them, `mdev."nvidia-35".max_instances` or
    /// `mdev_nvidia-35.max_instances`; empty if it is about the file or its syntax.
    pub key: String,
    /// What is wrong, and what is right.
    pub text: String,
}

impl ConfigError {
    /// An error about a whole file.
    pub(crate) fn file(file: &str, text: impl Into<String>) -> Self {
        Self { file: file.escape_debug().to_string(), line: None, key: String::new(), text: text.into() }
    }

    /// The error about a file that is not even looked into.
    pub(crate) fn too_large(file: &str, limit: usize) -> Self {
        Self::file(file, format!("larger than the {limit} bytes that are allowed"))
    }

    /// The error about a file that cannot be read.
    pub(crate) fn unreadable(path: &Path, err: &io::Error) -> Self {
        Self::file(&path.display().to_string(), format!("cannot be read: {err}"))
    }

    /// An error about the value at a place.
    pub(crate) fn at(spot: &Spot, text: impl Into<String>) -> Self {
        Self { line: Some(spot.line), key: spot.name(), ..Self::file(&spot.file, text) }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.text)
    }
}

/// Everything that is wrong with a configuration; none of it was taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    /// In the order of file and line; never empty.
    pub errors: Vec<ConfigError>,
    /// How many more were found and left out.
    pub left_out: usize,
}

impl std::error::Error for ConfigErrors {}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, error) in self.errors.iter().enumerate() {
            let end = if at == 0 { "" } else { "\n" };
            write!(f, "{end}{error}")?;
        }
        match self.left_out {
            0 => Ok(()),
            n => write!(f, "\nand {n} more"),
        }
    }
}

impl From<ConfigErrors> for Fault {
    /// The details are the list of errors.
    fn from(errors: ConfigErrors) -> Self {
        let details = serde_json::json!(errors.errors);
        Fault::new(FaultKind::InvalidMdevConfig, errors.to_string()).with_details(details)
    }
}

/// Collects errors while a configuration is read.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    errors: Vec<ConfigError>,
    left_out: usize,
}

impl Problems {
    /// Takes one down.
    pub(crate) fn push(&mut self, error: ConfigError) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        } else {
            self.left_out += 1;
        }
    }

    /// Whether nothing was wrong so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// `value` if nothing was wrong.
    pub(crate) fn or<T>(mut self, value: T) -> Result<T, ConfigErrors> {
        if self.errors.is_empty() {
            return Ok(value);
        }
        self.errors.sort();
        self.errors.dedup();
        Err(ConfigErrors { errors: self.errors, left_out: self.left_out })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_ordered_bounded_and_machine_readable() {
        let mut problems = Problems::default();
        for line in (1..=120).rev() {
            problems.push(ConfigError {
                line: Some(line),
                key: "k".into(),
                ..ConfigError::file("f\n", "bad")
            });
        }
        let errors = problems.or(()).unwrap_err();
        assert_eq!((errors.errors.len(), errors.left_out), (100, 20));
        let text = errors.to_string();
        assert!(text.starts_with("f\\n:21: k: bad\nf\\n:22:"), "{text}");
        assert!(text.ends_with("and 20 more"), "{text}");
        let fault = Fault::from(errors);
        assert_eq!(fault.kind, FaultKind::InvalidMdevConfig);
        assert_eq!(fault.details[0]["line"], 21);
        assert_eq!(Problems::default().or(7), Ok(7));
    }
}
