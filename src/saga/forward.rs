//! The way forward.

use serde_json::Value;

use super::failpoint::Moment;
use super::runner::Ending;
use super::signal::Ear;
use super::step::{Seen, StepError};
use super::walk::{Halt, Outcome, Walk};
use crate::model::{Fault, FaultKind, SagaState, StepEvent};
use crate::store::Entry;

impl Walk<'_> {
    /// Goes on at a step whose `Started` is on disk; `ask`: it may have happened already.
    pub(super) async fn forward(mut self, from: usize, mut ask: bool) -> Result<Ending, Halt> {
        for index in from..self.script.steps.len() {
            self.report(self.script.label(index), None);
            self.check_stop()?;
            match self.effect(index, ask).await? {
                Ok(out) => self.done(index, out).await?,
                Err(fault) => return self.failed(index, fault).await,
            }
            ask = false;
        }
        // The last `done` has ended the saga already, but for a journal that lacks just this.
        let (entry, ending) = self.finish(Entry::new());
        self.commit(entry).await?;
        Ok(self.ended(ending))
    }

    /// Goes forward after a crash: the journal shows that the step began once more.
    pub(super) async fn start_again(self, index: usize, ask: bool) -> Result<Ending, Halt> {
        self.commit(self.line(Entry::new(), index, StepEvent::Started, None)).await?;
        self.forward(index, ask).await
    }

    /// Brings the step to a known outcome.
    async fn effect(&self, index: usize, mut ask: bool) -> Result<Outcome<Value>, Halt> {
        // Listening begins before the try, so that a host that comes back in between is heard.
        let mut ear = self.runner.wake.listen();
        let mut tried = false;
        loop {
            if ask {
                match self.look(index, &mut ear).await? {
                    Seen::Done(out) => return Ok(Ok(out)),
                    Seen::Foreign(what) => return Ok(Err(self.foreign(index, &what))),
                    Seen::Absent | Seen::Partial => {}
                }
            }
            match self.try_run(index).await {
                Ok(out) => return Ok(Ok(out)),
                Err(StepError::Fault(fault)) => return self.failed_or_passed(index, fault, &mut ear).await,
                // The first time it is worth asking at once; the host may just have lost one answer.
                Err(StepError::Unknown(why)) if tried => self.wait(index, &why, &mut ear).await?,
                Err(StepError::Unknown(_)) => tried = true,
            }
            ask = true;
        }
    }

    /// A step that failed is undone, also the half of it. Only the point of no return cannot be taken back: if it
    /// has its effect in spite of the failure, it is passed.
    async fn failed_or_passed(
        &self,
        index: usize,
        fault: Fault,
        ear: &mut Ear,
    ) -> Result<Outcome<Value>, Halt> {
        if self.script.point_of_no_return != Some(index) {
            return Ok(Err(fault));
        }
        match self.look(index, ear).await? {
            Seen::Done(out) => Ok(Ok(out)),
            Seen::Absent | Seen::Partial | Seen::Foreign(_) => Ok(Err(fault)),
        }
    }

    async fn try_run(&self, index: usize) -> Result<Value, StepError> {
        self.point(index, Moment::BeforeEffect).await?;
        let out = self.step(index).run().await;
        self.point(index, Moment::AfterEffect).await?;
        out
    }

    /// What is in the way of a step, or in the place of its effect, and is not ours.
    pub(super) fn foreign(&self, index: usize, what: &str) -> Fault {
        let step = self.script.label(index);
        Fault::new(FaultKind::HostRefused, format!("{step}: {what}; it is not ours and was left alone"))
    }

    /// Books a step together with the start of the next one, or with the end.
    async fn done(&mut self, index: usize, out: Value) -> Result<(), Halt> {
        let entry = self
            .line(Entry::new(), index, StepEvent::Done, Some(out.clone()))
            .changes(self.step(index).done_changes(&out));
        self.outs[index] = Some(out);
        let next = index + 1;
        if next < self.script.steps.len() {
            return self.commit_step(index, self.line(entry, next, StepEvent::Started, None)).await;
        }
        let (entry, ending) = self.finish(entry);
        self.commit_step(index, entry).await?;
        Err(Halt::Ended(self.ended(ending)))
    }

    fn finish(&self, entry: Entry) -> (Entry, Ending) {
        let outs: Vec<Value> = self.outs.iter().map(|out| out.clone().unwrap_or_default()).collect();
        let ending = Ending::Done((self.script.result)(&outs));
        (ending.write(entry.changes(self.script.on_done.clone())), ending)
    }

    async fn failed(mut self, index: usize, fault: Fault) -> Result<Ending, Halt> {
        let payload = serde_json::to_value(&fault).ok();
        let entry = self.line(Entry::new(), index, StepEvent::Failed, payload);
        if self.script.is_past_return(index) {
            let left: Vec<_> =
                (index..self.script.steps.len()).map(|k| (self.script.label(k), None)).collect();
            let ending = Ending::stuck(&fault, &left);
            self.commit_step(index, ending.write(entry)).await?;
            return Ok(self.ended(ending));
        }
        let entry = self.line(entry, index, StepEvent::UndoStarted, None).turn(SagaState::Unwinding, None);
        self.commit_step(index, entry).await?;
        self.state = SagaState::Unwinding;
        self.unwind((0..=index).rev().collect(), false, fault).await
    }
}
