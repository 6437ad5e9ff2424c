//! How many calls one connection has in flight: several, for a round trip is mostly waiting for the other side to wake up,
//! and never too many.
//!
//! libvirtd works on at most five calls of a client at once. With the fifth it stops reading what the client sends, answers
//! to its keepalive among it, and half a minute later takes the client for dead. So there are four lanes: three for changes,
//! which may take minutes each, and one for reads; a read of many things uses lanes of changes as well while they are free.
//!
//! # Source
//! libvirt `libvirtd.conf`: `max_client_requests` (5), `keepalive_interval` (5 s), `keepalive_count` (5).

use std::sync::Arc;
use std::thread;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use virt::error::Error;

const CHANGES: usize = 3;

/// The lanes of one connection.
#[derive(Debug, Clone)]
pub(super) struct Lanes {
    changes: Arc<Semaphore>,
    reads: Arc<Semaphore>,
}

/// A lane that is taken until this is dropped.
pub(super) type Lane = OwnedSemaphorePermit;

impl Lanes {
    /// All free.
    pub(super) fn new() -> Self {
        Self { changes: Arc::new(Semaphore::new(CHANGES)), reads: Arc::new(Semaphore::new(1)) }
    }

    /// Waits for a lane. `None` cannot be: nobody closes them.
    pub(super) async fn enter(&self, changes: bool) -> Option<Lane> {
        let lanes = if changes { &self.changes } else { &self.reads };
        Arc::clone(lanes).acquire_owned().await.ok()
    }

    /// Lanes that nobody uses at this moment, at most `count`.
    fn spare(&self, count: usize) -> Vec<Lane> {
        std::iter::from_fn(|| Arc::clone(&self.changes).try_acquire_owned().ok()).take(count).collect()
    }
}

/// Below this a thread costs more than it saves.
const WORTH_A_THREAD: usize = 8;

/// Does `call` for each item, in the lane of the caller and in spare ones, keeps the order, and ends with the first failure.
pub(super) fn each<I, T, F>(lanes: &Lanes, items: &[I], call: F) -> Result<Vec<T>, Error>
where
    I: Sync,
    T: Send,
    F: Fn(&I) -> Result<T, Error> + Sync,
{
    let spare = lanes.spare((items.len() / WORTH_A_THREAD).saturating_sub(1));
    let threads = spare.len() + 1;
    let share = items.len().div_ceil(threads).max(1);
    let call = &call;
    let shares: Vec<Result<Vec<T>, Error>> = thread::scope(|scope| {
        let mut rest = items.chunks(share);
        let first = rest.next().unwrap_or(&[]);
        let others: Vec<_> =
            rest.map(|share| scope.spawn(move || share.iter().map(call).collect())).collect();
        let first = first.iter().map(call).collect();
        std::iter::once(first).chain(others.into_iter().map(joined)).collect()
    });
    shares.into_iter().try_fold(Vec::with_capacity(items.len()), |mut all, share| {
        all.extend(share?);
        Ok(all)
    })
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panicked| std::panic::resume_unwind(panicked))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn every_item_in_order_and_the_failure_of_any() {
        let lanes = Lanes::new();
        for count in [0, 1, 7, 8, 31, 32, 384] {
            let items: Vec<usize> = (0..count).collect();
            assert_eq!(
                each(&lanes, &items, |n| Ok(n * 2)).unwrap(),
                (0..count).map(|n| n * 2).collect::<Vec<_>>()
            );
        }
        let items: Vec<usize> = (0..100).collect();
        let failed = each(&lanes, &items, |n| match n {
            99 => std::ffi::CString::new("\0").map(|_| 0).map_err(Error::from),
            n => Ok(*n),
        });
        assert!(failed.is_err());
    }

    #[tokio::test]
    async fn never_more_than_four_calls_and_always_one_read() {
        let lanes = Lanes::new();
        let changes = [lanes.enter(true).await, lanes.enter(true).await, lanes.enter(true).await];
        assert!(lanes.enter(true).now_or_never().is_none());
        let read = lanes.enter(false).await;
        assert!(read.is_some() && lanes.spare(9).is_empty());
        drop(changes);
        assert_eq!(lanes.spare(9).len(), CHANGES);
    }
}
