//! The one writer. The first caller leads; requests that arrive while his commit is being synced wait, and one of them
//! leads next and carries all of them out in one transaction: one sync for many sagas, each alone in its savepoint. The
//! copy of the books follows: it is published after the commit, and put back with the savepoint.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, ErrorCode, TransactionBehavior, ffi};

use super::books::Books;
use super::error::StoreError;
use super::tables::Turn;

#[derive(Debug)]
pub(super) struct Writer {
    conn: Mutex<Connection>,
    queue: Mutex<Queue>,
    books: Mutex<Arc<Books>>,
    commits: AtomicU64,
    /// Held while a commit is in the tables and not yet in the books.
    publishing: Mutex<()>,
}

/// Does the work and keeps its answer; false if it failed and has to be rolled back.
type Work = Box<dyn FnOnce(&mut Turn<'_>) -> bool + Send>;

/// Replaces a good answer, since the transaction as a whole failed.
type Revoke = Box<dyn FnOnce(&StoreError) + Send>;

type Answer<T> = Arc<Mutex<Option<Result<T, StoreError>>>>;

/// A request in the queue.
struct Order {
    work: Work,
    revoke: Revoke,
    ticket: Arc<Ticket>,
}

#[derive(Default)]
struct Queue {
    orders: Vec<Order>,
    led: bool,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("orders", &self.orders.len()).field("led", &self.led).finish()
    }
}

/// What a waiting caller is woken for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Wait,
    Lead,
    Settled,
}

struct Ticket {
    call: Mutex<Call>,
    rang: Condvar,
}

impl Ticket {
    fn new() -> Arc<Self> {
        Arc::new(Self { call: Mutex::new(Call::Wait), rang: Condvar::new() })
    }

    fn ring(&self, call: Call) {
        *lock(&self.call) = call;
        self.rang.notify_one();
    }

    fn wait(&self) -> Call {
        let waiting = |call: &mut Call| *call == Call::Wait;
        *self.rang.wait_while(lock(&self.call), waiting).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    pub(super) fn new(conn: Connection) -> Result<Self, StoreError> {
        let books = Mutex::new(Arc::new(Books::read(&conn)?));
        Ok(Self {
            conn: Mutex::new(conn),
            queue: Mutex::default(),
            books,
            commits: AtomicU64::new(0),
            publishing: Mutex::new(()),
        })
    }

    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Returns once the books show every commit that the tables show.
    pub(super) fn wait_for_books(&self) {
        drop(lock(&self.publishing));
    }

    /// The books as of the last commit.
    pub(super) fn books(&self) -> Arc<Books> {
        Arc::clone(&lock(&self.books))
    }

    /// Runs `work` in a transaction and returns once it is on disk, or once nothing of it is.
    pub(super) fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Turn<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let answer: Answer<T> = Answer::default();
        if self.is_leader(order(&answer, work)) {
            self.lead();
        }
        let given = lock(&answer).take();
        given.unwrap_or_else(|| Err(aborted()))
    }

    /// Queues the order; returns once it is settled (false), or once the caller has to lead (true).
    fn is_leader(&self, order: Order) -> bool {
        let ticket = Arc::clone(&order.ticket);
        let mut queue = lock(&self.queue);
        queue.orders.push(order);
        if !queue.led {
            queue.led = true;
            return true;
        }
        drop(queue);
        ticket.wait() == Call::Lead
    }

    /// Carries out all that is queued, then passes the lead on.
    fn lead(&self) {
        let _pass_on = Lead(self);
        let orders = std::mem::take(&mut lock(&self.queue).orders);
        let mut batch = Batch { given: Vec::with_capacity(orders.len()), verdict: Some(aborted()) };
        let mut works = Vec::with_capacity(orders.len());
        for order in orders {
            works.push(order.work);
            batch.given.push((order.revoke, order.ticket));
        }
        batch.verdict = self.in_one_transaction(&mut lock(&self.conn), works).err();
    }

    /// How many requests wait for the next transaction.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        lock(&self.queue).orders.len()
    }

    /// The connection itself, for tests that break it.
    #[cfg(test)]
    pub(super) fn connection(&self) -> MutexGuard<'_, Connection> {
        lock(&self.conn)
    }

    fn in_one_transaction(&self, conn: &mut Connection, works: Vec<Work>) -> Result<(), StoreError> {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut turn = Turn::new(&tx, self.books());
        let mut any = false;
        for work in works {
            any |= in_savepoint(&mut turn, work)?;
        }
        let books = turn.into_books();
        if !any {
            return Ok(tx.rollback()?);
        }
        let _both = lock(&self.publishing);
        tx.commit()?;
        *lock(&self.books) = books;
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Whether the work stays. An error ends the whole transaction.
fn in_savepoint(turn: &mut Turn<'_>, work: Work) -> Result<bool, StoreError> {
    let before = turn.keep_books();
    turn.conn.execute_batch("SAVEPOINT work")?;
    let good = work(turn);
    // A full disk may have ended the transaction, with the work of the others in it.
    if turn.conn.is_autocommit() {
        return Err(aborted());
    }
    if good {
        turn.conn.execute_batch("RELEASE work")?;
    } else {
        turn.conn.execute_batch("ROLLBACK TO work; RELEASE work")?;
        turn.put_back(before);
    }
    Ok(good)
}

/// The lead; it passes on when this is dropped, also by a panic in one work.
struct Lead<'a>(&'a Writer);

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let mut queue = lock(&self.0.queue);
        match queue.orders.first() {
            Some(next) => next.ticket.ring(Call::Lead),
            None => queue.led = false,
        }
    }
}

/// The orders of one transaction; settled when this is dropped, also by a panic in one work.
struct Batch {
    given: Vec<(Revoke, Arc<Ticket>)>,
    /// The error of the transaction as a whole.
    verdict: Option<StoreError>,
}

impl Drop for Batch {
    fn drop(&mut self) {
        for (revoke, ticket) in self.given.drain(..) {
            if let Some(err) = &self.verdict {
                revoke(err);
            }
            ticket.ring(Call::Settled);
        }
    }
}

fn order<T: Send + 'static>(
    answer: &Answer<T>,
    work: impl FnOnce(&mut Turn<'_>) -> Result<T, StoreError> + Send + 'static,
) -> Order {
    let (to_give, to_revoke) = (Arc::clone(answer), Arc::clone(answer));
    Order {
        ticket: Ticket::new(),
        work: Box::new(move |turn| {
            let result = work(turn);
            let good = result.is_ok();
            *lock(&to_give) = Some(result);
            good
        }),
        revoke: Box::new(move |err| {
            let mut answer = lock(&to_revoke);
            // Whoever failed by himself keeps his own error.
            if !matches!(*answer, Some(Err(_))) {
                *answer = Some(Err(err.clone()));
            }
        }),
    }
}

/// A panic of a holder leaves no half-done work behind: the transaction was rolled back when it was dropped.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn aborted() -> StoreError {
    let code = ffi::Error { code: ErrorCode::OperationAborted, extended_code: ffi::SQLITE_ABORT_ROLLBACK };
    rusqlite::Error::SqliteFailure(code, Some("the transaction was rolled back".to_owned())).into()
}
