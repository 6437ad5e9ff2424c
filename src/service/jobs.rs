//! Jobs of this daemon's life: progress of those under way, and which ended.
//!
//! Results of ended jobs are read from the journal; here is only what the journal does not hold.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use crate::model::JobId;

/// How many ended jobs are remembered.
const ENDED_MAX: usize = 1000;

/// How far a job is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// Steps done so far.
    pub steps_done: u32,
    /// Steps in all.
    pub steps_total: u32,
    /// The step at work, or what is being waited for.
    pub step: String,
}

#[derive(Debug, Default)]
struct Inner {
    running: HashMap<JobId, Progress>,
    ended: VecDeque<JobId>,
}

/// See the head of the file.
#[derive(Debug, Default)]
pub struct Jobs(Mutex<Inner>);

impl Jobs {
    /// A job begins.
    pub fn begin(&self, id: JobId, steps_total: u32) {
        self.inner().running.insert(id, Progress { steps_total, ..Progress::default() });
    }

    /// A job moves on.
    pub fn update(&self, id: JobId, steps_done: u32, step: &str) {
        if let Some(progress) = self.inner().running.get_mut(&id) {
            progress.steps_done = steps_done;
            step.clone_into(&mut progress.step);
        }
    }

    /// A job ends.
    pub fn end(&self, id: JobId) {
        let mut inner = self.inner();
        inner.running.remove(&id);
        inner.ended.push_back(id);
        if inner.ended.len() > ENDED_MAX {
            inner.ended.pop_front();
        }
    }

    /// Progress of a job under way.
    pub fn progress(&self, id: JobId) -> Option<Progress> {
        self.inner().running.get(&id).cloned()
    }

    /// Ids of jobs under way and ended, in no order.
    pub fn ids(&self) -> Vec<JobId> {
        let inner = self.inner();
        inner.running.keys().chain(&inner.ended).copied().collect()
    }

    /// How many are under way.
    pub fn running(&self) -> usize {
        self.inner().running.len()
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn only_the_last_thousand_ended_jobs_are_remembered() {
        let jobs = Jobs::default();
        for n in 0..1001u128 {
            let id = JobId(Uuid::from_u128(n));
            jobs.begin(id, 3);
            jobs.update(id, 1, "make_device");
            assert_eq!(jobs.progress(id).unwrap().steps_done, 1);
            jobs.end(id);
        }
        assert_eq!(jobs.running(), 0);
        assert_eq!(jobs.ids().len(), ENDED_MAX);
        assert!(!jobs.ids().contains(&JobId(Uuid::from_u128(0))));
    }
}
