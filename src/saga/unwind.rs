//! The way back.

use serde_json::Value;

use super::failpoint::Moment;
use super::runner::Ending;
use super::step::{Seen, StepError};
use super::walk::{Halt, Outcome, Walk};
use crate::model::{Fault, StepEvent};
use crate::store::Entry;

impl Walk<'_> {
    /// Undoes these steps in their order, newest first; `UndoStarted` of the first one is on disk. `ask`: after a
    /// crash, each may be undone already. Without one, only a step that is not known to be done is looked at.
    pub(super) async fn unwind(mut self, steps: Vec<usize>, ask: bool, cause: Fault) -> Result<Ending, Halt> {
        let mut left = Vec::new();
        let mut entry = Entry::new();
        for (place, index) in steps.iter().copied().enumerate() {
            self.report(format!("undo {}", self.script.label(index)), None);
            self.check_stop()?;
            match self.take_back(index, ask || self.outs[index].is_none()).await? {
                Ok(()) => entry = self.undone(index, entry),
                // One that fails does not stop the others.
                Err(fault) => left.push((self.script.label(index), Some(fault))),
            }
            if let Some(next) = steps.get(place + 1) {
                self.commit(self.line(entry, *next, StepEvent::UndoStarted, None)).await?;
                entry = Entry::new();
            }
        }
        let (entry, ending) = if left.is_empty() {
            (entry.changes(self.script.on_failed.clone()), Ending::Failed(cause))
        } else {
            (entry, Ending::stuck(&cause, &left))
        };
        self.commit(ending.write(entry)).await?;
        Ok(self.ended(ending))
    }

    /// Goes on undoing after a crash: the journal shows that the undo began once more.
    pub(super) async fn undo_again(self, steps: Vec<usize>, cause: Fault) -> Result<Ending, Halt> {
        if let Some(first) = steps.first() {
            self.commit(self.line(Entry::new(), *first, StepEvent::UndoStarted, None)).await?;
        }
        self.unwind(steps, true, cause).await
    }

    fn undone(&mut self, index: usize, entry: Entry) -> Entry {
        let entry = self.line(entry, index, StepEvent::Undone, None);
        // The books have something to take back only if the step was booked.
        match self.outs[index].take() {
            Some(_) => entry.changes(self.step(index).undone_changes()),
            None => entry,
        }
    }

    /// Brings the undo to a known outcome.
    async fn take_back(&self, index: usize, mut ask: bool) -> Result<Outcome<()>, Halt> {
        let mut ear = self.runner.wake.listen();
        let mut tried = false;
        let mut out = self.outs[index].clone();
        loop {
            if ask {
                match self.look(index, &mut ear).await? {
                    Seen::Absent => return Ok(Ok(())),
                    Seen::Partial => {}
                    Seen::Done(seen) => out = out.or(Some(seen)),
                    // Ours was there and is not; whoever replaced it is for an operator to find out.
                    Seen::Foreign(what) if self.outs[index].is_some() => {
                        return Ok(Err(self.foreign(index, &what)));
                    }
                    Seen::Foreign(_) => return Ok(Ok(())),
                }
            }
            match self.try_undo(index, out.as_ref()).await {
                Ok(()) => return Ok(Ok(())),
                Err(StepError::Fault(fault)) => return Ok(Err(fault)),
                Err(StepError::Unknown(why)) if tried => self.wait(index, &why, &mut ear).await?,
                Err(StepError::Unknown(_)) => tried = true,
            }
            ask = true;
        }
    }

    async fn try_undo(&self, index: usize, out: Option<&Value>) -> Result<(), StepError> {
        self.point(index, Moment::BeforeUndo).await?;
        let gone = self.step(index).undo(out).await;
        self.point(index, Moment::AfterUndo).await?;
        gone
    }
}
