//! Where a value stands, for messages about it.

use std::sync::Arc;

/// Where a value stands.
#[derive(Debug, Clone)]
pub(crate) struct Spot {
    /// The file as the caller named it.
    pub(crate) file: Arc<str>,
    /// Line, counted from 1.
    pub(crate) line: u32,
    /// The table as the file spells it: `devices`, `mdev."nvidia-35"`, `mdev_nvidia-35`.
    pub(crate) table: Arc<str>,
    /// The key; empty for the table itself.
    pub(crate) key: &'static str,
}

impl Spot {
    /// Table and key, as far as there are any.
    pub(crate) fn name(&self) -> String {
        match (&*self.table, self.key) {
            ("", key) => key.to_owned(),
            (table, "") => table.to_owned(),
            (table, key) => format!("{table}.{key}"),
        }
    }

    /// The table with its place, for a message about another place.
    pub(crate) fn table_place(&self) -> String {
        format!("{} ({}:{})", self.table, self.file.escape_debug(), self.line)
    }
}

/// A value and its place.
#[derive(Debug, Clone)]
pub(crate) struct At<T> {
    /// The value.
    pub(crate) value: T,
    /// Its place.
    pub(crate) spot: Spot,
}
