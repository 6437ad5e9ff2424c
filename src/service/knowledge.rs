//! What the operator's words meant so far: read once, written when a look at the host teaches something.
//!
//! 1. A look is taken at the start, when node devices change, on reload and before each booking.
//! 2. What is new is durable before anything is booked on it.
//! 3. A shift is logged, and a drift signalled, when it is written: once.

use std::sync::{Arc, PoisonError};

use super::Service;
use super::api::Change;
use super::observe::Observation;
use super::picture::Picture;
use super::settings::Settings;
use crate::catalog::memory::Memory;
use crate::model::{Fault, Lesson, NewShift, ShiftKind};

impl Service {
    /// What is known now.
    pub(super) fn memory(&self) -> Result<Arc<Memory>, Fault> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(memory) = &*known {
            return Ok(Arc::clone(memory));
        }
        let memory = Arc::new(Memory::new(self.store.meanings()?));
        *known = Some(Arc::clone(&memory));
        Ok(memory)
    }

    /// Looks at the host and keeps what that teaches. A look that fails teaches nothing: the next event looks again.
    pub(super) async fn look_and_learn(&self) -> Option<Observation> {
        let settings = self.settings.now();
        let warn = |fault: Fault| tracing::warn!("look at what the types of this host mean: {fault}");
        let seen = self.observe().await.map_err(warn).ok()?;
        if let Err(fault) = self.learn(&seen, &settings, &seen.picture(&settings)) {
            warn(fault);
        }
        Some(seen)
    }

    /// Keeps what a picture taught, unless another look or other settings came in between: the next one teaches it again.
    pub(super) fn learn(
        &self,
        seen: &Observation,
        settings: &Settings,
        picture: &Picture<'_>,
    ) -> Result<(), Fault> {
        let current = || *self.settings.now() == *settings;
        if picture.lesson.is_empty() || !current() {
            return Ok(());
        }
        self.keep(&picture.lesson, &seen.memory).map(drop)
    }

    /// Writes what follows from `memory`, and tells it. False if that is not what is known any more.
    pub(super) fn keep(&self, lesson: &Lesson, memory: &Arc<Memory>) -> Result<bool, Fault> {
        {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if !known.as_ref().is_some_and(|known| Arc::ptr_eq(known, memory)) {
                return Ok(false);
            }
            self.store.learn(lesson.clone())?;
            *known = Some(Arc::new(memory.after(lesson)));
        }
        lesson.shifts.iter().for_each(|shift| self.tell_shift(shift));
        Ok(true)
    }

    fn tell_shift(&self, shift: &NewShift) {
        let NewShift { of, kind, was, now, reason } = shift;
        let (word, parent) = (&of.word, &of.parent);
        match kind {
            ShiftKind::Drifted => {
                tracing::error!(%word, %parent, was, now, "drift: the local type has become another one");
                self.tell(Change::Drift {
                    word: word.clone(),
                    parent: parent.clone(),
                    was: was.clone(),
                    now: now.clone(),
                });
                self.tell(Change::Inventory);
            }
            ShiftKind::Renumbered => {
                tracing::info!(%word, %parent, was, now, "the type has another local id");
            }
            ShiftKind::Renamed => {
                tracing::info!(%word, %parent, was, now, "the vendor calls the type by another brand");
            }
            ShiftKind::Accepted => {
                tracing::info!(%word, %parent, was, now, reason, "another identity is accepted");
            }
        }
    }
}
