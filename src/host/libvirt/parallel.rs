//! Many small calls in flight on one connection: a round trip is mostly waiting for the other side to wake up.

use std::thread;

use virt::error::Error;

/// libvirtd works on at most five calls of a client at once by default, and somebody else may need one.
const IN_FLIGHT: usize = 4;
/// Below this a thread costs more than it saves.
const WORTH_A_THREAD: usize = 8;

/// Does `call` for each item, keeps the order, and ends with the first failure.
pub(super) fn each<I, T, F>(items: &[I], call: F) -> Result<Vec<T>, Error>
where
    I: Sync,
    T: Send,
    F: Fn(&I) -> Result<T, Error> + Sync,
{
    let threads = (items.len() / WORTH_A_THREAD).clamp(1, IN_FLIGHT);
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
    use super::*;

    #[test]
    fn every_item_in_order_and_the_failure_of_any() {
        for count in [0, 1, 7, 8, 31, 32, 384] {
            let items: Vec<usize> = (0..count).collect();
            assert_eq!(each(&items, |n| Ok(n * 2)).unwrap(), (0..count).map(|n| n * 2).collect::<Vec<_>>());
        }
        let items: Vec<usize> = (0..100).collect();
        let failed = each(&items, |n| match n {
            99 => std::ffi::CString::new("\0").map(|_| 0).map_err(Error::from),
            n => Ok(*n),
        });
        assert!(failed.is_err());
    }
}
