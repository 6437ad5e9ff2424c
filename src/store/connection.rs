//! The one function that opens a connection.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::error::StoreError;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The one writer.
    Write,
    /// Any number of readers.
    Read,
}

/// How long SQLite waits for a lock. Our own threads never wait for one another here (one writer, and WAL readers take
/// no lock that matters), so this bounds how long a backup tool may hold us up before the caller is told.
const BUSY: Duration = Duration::from_secs(5);

/// After a checkpoint the WAL is cut to this, so that one large batch does not keep its size on a small `/var`.
const WAL_LIMIT_BYTES: i64 = 4 << 20;

/// Opens the database, made if it is missing.
///
/// # Errors
/// `Open`, `Unavailable`, `Corrupt`.
pub(super) fn open(path: &Path, purpose: Purpose) -> Result<Connection, StoreError> {
    if purpose == Purpose::Write {
        make_private(path)?;
    }
    // NO_MUTEX: each connection is behind a Mutex of ours. No URI: a path is a path, whatever it contains.
    let conn = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    conn.busy_timeout(BUSY)?;
    // Readers see the last commit while the writer works, and a commit is one append and one sync.
    let mode: String = conn.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(StoreError::Corrupt(format!("journal mode {mode:?} instead of WAL (a network disk?)")));
    }
    // FULL syncs at every commit. With NORMAL a power cut may lose the last commits, and `Started` must not be lost.
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "journal_size_limit", WAL_LIMIT_BYTES)?;
    // A damaged file cannot make us run functions it names.
    conn.pragma_update(None, "trusted_schema", false)?;
    if purpose == Purpose::Read {
        conn.pragma_update(None, "query_only", true)?;
    }
    // All statements of the room stay prepared.
    conn.set_prepared_statement_cache_capacity(64);
    Ok(conn)
}

/// Creates the file for us alone: domain XML in the journal may hold a console password. SQLite gives its WAL the same
/// mode.
fn make_private(path: &Path) -> Result<(), StoreError> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
        .map(drop)
        .map_err(|err| StoreError::Open { path: path.to_owned(), err: Arc::new(err) })
}
