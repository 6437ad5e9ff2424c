//! The books and the journal on disk: the only SQL of the house (rank 1).
//!
//! 1. One writer per directory, kept by a lock file; requests that meet share one transaction and one sync (writer.rs).
//! 2. A call that returned `Ok` is on disk; a call that returned an error changed nothing.
//! 3. Claim states move only through [`ClaimState::after`], steps only through [`StepStatus::after`], sagas only
//!    through [`SagaState::after`]; an illegal move aborts the transaction.
//! 4. One live saga per instance, one saga per operation id, one claim per device: checked, and unique indexes besides.
//! 5. A word, number or JSON text that cannot be is [`StoreError::Corrupt`], never a default.
//! 6. The schema only moves forward; a newer one than known is refused.
//! 7. Books are one snapshot ([`Store::books`]), kept in memory in step with the tables.
//!
//! The calls are synchronous; async callers use a blocking thread. Nothing here is held across a host call.
//!
//! [`ClaimState::after`]: crate::model::ClaimState::after
//! [`StepStatus::after`]: crate::model::StepStatus::after
//! [`SagaState::after`]: crate::model::SagaState::after

mod begin;
mod books;
mod change;
mod connection;
mod error;
mod journal;
mod ledger;
mod meanings;
mod reads;
mod rows;
mod schema;
mod tables;
mod writer;

#[cfg(test)]
pub(crate) mod tests;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

pub use begin::{Begin, Recheck};
pub use books::Books;
pub use change::Change;
pub use error::{Missing, StoreError};
pub use journal::Entry;
pub use ledger::{Ledger, LedgerError, Line, StepRecord};

use crate::model::Clock;
use connection::Purpose;
use writer::Writer;

/// Reading connections that are kept; more are opened while more readers read at once.
const IDLE_READERS: usize = 4;

/// The state database.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    writer: Writer,
    idle_readers: Mutex<Vec<Connection>>,
    clock: Arc<dyn Clock>,
    /// Held as long as the store lives; the kernel lets it go whatever way the daemon ends.
    _lock: File,
}

impl Store {
    /// Opens `state.db` in the directory, which is made if it is missing, and brings its schema up to date.
    ///
    /// # Errors
    /// `Open`, `Locked`, `Unavailable`, `Corrupt`, `SchemaTooNew`; an existing database is then as it was.
    pub fn open(dir: &Path, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let lock = lock_directory(dir)?;
        let path = dir.join("state.db");
        let mut conn = connection::open(&path, Purpose::Write)?;
        schema::bring_up_to_date(&mut conn)?;
        let writer = Writer::new(conn)?;
        Ok(Self { path, writer, idle_readers: Mutex::default(), clock, _lock: lock })
    }

    /// Instances, claims and devices as of the last commit.
    pub fn books(&self) -> Arc<Books> {
        self.writer.books()
    }

    /// How many transactions were committed since the store was opened.
    pub fn commits(&self) -> u64 {
        self.writer.commits()
    }

    /// Reads in one snapshot, on a connection of its own.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let pooled = self.idle_readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut conn = match pooled {
            Some(conn) => conn,
            None => connection::open(&self.path, Purpose::Read)?,
        };
        let tx = conn.transaction()?;
        let out = work(&tx)?;
        tx.rollback()?;
        // Who learns of a commit here and looks at the books then has to find it there.
        self.writer.wait_for_books();
        let mut idle = self.idle_readers.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_READERS {
            idle.push(conn);
        }
        Ok(out)
    }
}

fn lock_directory(dir: &Path) -> Result<File, StoreError> {
    let failed = |path: &Path, err| StoreError::Open { path: path.to_owned(), err: Arc::new(err) };
    std::fs::create_dir_all(dir).map_err(|err| failed(dir, err))?;
    let path = dir.join("state.lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|err| failed(&path, err))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked { path }),
        Err(TryLockError::Error(err)) => Err(failed(&path, err)),
    }
}
