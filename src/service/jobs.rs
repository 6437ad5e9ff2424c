//! Jobs of this daemon's life: progress of those under way, and which ended.
//!
//! Results of ended jobs are read from the journal; here is only what the journal does not hold.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use crate::model::JobId;
use crate::saga::Progress;

/// How many ended jobs are remembered.
const ENDED_MAX: usize = 1000;

#[derive(Debug, Default)]
struct Inner {
    running: HashMap<JobId, Progress>,
    ended: VecDeque<JobId>,
}

/// See the head of the file.
#[derive(Debug, Default)]
pub(super) struct Jobs(Mutex<Inner>);

impl Jobs {
    /// A job begins or moves on.
    pub(super) fn note(&self, progress: Progress) {
        self.inner().running.insert(progress.job, progress);
    }

    /// A job ends.
    pub(super) fn end(&self, id: JobId) {
        let mut inner = self.inner();
        inner.running.remove(&id);
        inner.ended.push_back(id);
        if inner.ended.len() > ENDED_MAX {
            inner.ended.pop_front();
        }
    }

    /// Progress of a job under way.
    pub(super) fn progress(&self, id: JobId) -> Option<Progress> {
        self.inner().running.get(&id).cloned()
    }

    /// Ids of jobs under way and ended, in no order.
    pub(super) fn ids(&self) -> Vec<JobId> {
        let inner = self.inner();
        inner.running.keys().chain(&inner.ended).copied().collect()
    }

    /// How many are under way.
    pub(super) fn running(&self) -> usize {
        self.inner().running.len()
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SagaState;
    use uuid::Uuid;

    #[test]
    fn only_the_last_thousand_ended_jobs_are_remembered() {
        let jobs = Jobs::default();
        for n in 0..1001u128 {
            let id = JobId(Uuid::from_u128(n));
            jobs.note(Progress {
                job: id,
                state: SagaState::Running,
                steps_done: 1,
                steps_total: 3,
                step: String::new(),
                result: None,
            });
            assert_eq!(jobs.progress(id).unwrap().steps_done, 1);
            jobs.end(id);
        }
        assert_eq!(jobs.running(), 0);
        assert_eq!(jobs.ids().len(), ENDED_MAX);
        assert!(!jobs.ids().contains(&JobId(Uuid::from_u128(0))));
    }
}
