//! Which jobs are on the bus, and what was already said about each: pure, so that its laws are tested without a bus.

use std::collections::{HashMap, VecDeque};

use crate::model::JobId;

/// Ended jobs whose objects stay.
pub(super) const KEEP_ENDED: usize = 128;

#[derive(Debug, Default)]
struct Said {
    began: bool,
    ended: bool,
}

/// The jobs on the bus.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    jobs: HashMap<JobId, Said>,
    ended: VecDeque<JobId>,
}

impl Ledger {
    pub(super) fn has(&self, id: JobId) -> bool {
        self.jobs.contains_key(&id)
    }

    pub(super) fn add(&mut self, id: JobId) {
        self.jobs.entry(id).or_default();
    }

    /// Whether `JobNew` is to be sent now.
    pub(super) fn begin(&mut self, id: JobId) -> bool {
        self.jobs.get_mut(&id).is_some_and(|said| !std::mem::replace(&mut said.began, true))
    }

    /// Whether `JobRemoved` is to be sent now.
    pub(super) fn end(&mut self, id: JobId) -> bool {
        let now = self.jobs.get_mut(&id).is_some_and(|said| {
            said.began = true;
            !std::mem::replace(&mut said.ended, true)
        });
        if now {
            self.ended.push_back(id);
        }
        now
    }

    /// Jobs whose objects have to go, oldest first.
    pub(super) fn evict(&mut self) -> Vec<JobId> {
        let too_many = self.ended.len().saturating_sub(KEEP_ENDED);
        let gone: Vec<JobId> = self.ended.drain(..too_many).collect();
        for id in &gone {
            self.jobs.remove(id);
        }
        gone
    }

    /// Jobs on the bus whose end was not said yet.
    pub(super) fn open(&self) -> Vec<JobId> {
        self.jobs.iter().filter(|(_, said)| !said.ended).map(|(id, _)| *id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u32) -> JobId {
        format!("00000000-0000-4000-8000-{n:012}").parse().unwrap()
    }

    #[test]
    fn begin_and_end_are_said_once_and_in_order() {
        let mut ledger = Ledger::default();
        assert!(!ledger.begin(id(1)), "nothing is said of a job that is not there");
        ledger.add(id(1));
        assert!(ledger.begin(id(1)));
        ledger.add(id(1));
        assert!(!ledger.begin(id(1)));
        assert_eq!(ledger.open(), [id(1)]);
        assert!(ledger.end(id(1)));
        assert!(!ledger.end(id(1)));
        assert!(!ledger.begin(id(1)), "no JobNew after JobRemoved");
        assert!(ledger.open().is_empty());
    }

    #[test]
    fn the_oldest_ended_jobs_go_and_open_ones_stay() {
        let mut ledger = Ledger::default();
        ledger.add(id(999));
        for n in 0..=128 {
            ledger.add(id(n));
            assert!(ledger.end(id(n)));
        }
        assert_eq!(ledger.evict(), [id(0)]);
        assert!(!ledger.has(id(0)) && ledger.has(id(1)) && ledger.has(id(999)));
        assert!(ledger.evict().is_empty());
    }
}
