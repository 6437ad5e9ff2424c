//! What to do with a saga that a crash left open: a pure function of its journal and its script.

use serde_json::Value;

use super::script::Script;
use super::walk::number;
use crate::model::{Fault, SagaEventRow, SagaRow, SagaState, StepStatus};
use crate::store::{Ledger, StepRecord};

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    /// Nothing of this step happened; all before it are done.
    ContinueAt(usize),
    /// This step may have happened; ask, then go on.
    AskSeen(usize),
    /// All steps are done, only the end is not written.
    Finish,
    /// Go on undoing these, newest first, asking before each; empty if only the end is not written.
    UndoFrom {
        /// Indexes of the steps.
        steps: Vec<usize>,
        /// The failure that began it.
        cause: Fault,
    },
    /// The journal cannot be followed: nothing is done, an operator has to look.
    Corrupt(String),
}

/// A plan, and what is known of the steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovery {
    /// What to do.
    pub plan: Plan,
    /// What each step returned that was done and is not undone.
    pub outs: Vec<Option<Value>>,
}

/// Reads the journal against the script.
pub fn plan(saga: &SagaRow, events: &[SagaEventRow], script: &Script) -> Recovery {
    let found = check(saga, events, script).and_then(|steps| {
        let plan = match saga.state {
            SagaState::Running => forward(&steps),
            SagaState::Unwinding => back(&steps, script),
            SagaState::Done | SagaState::Failed | SagaState::Stuck => Err("it has ended already".to_owned()),
        };
        let outs = steps.iter().map(|step| standing(step.as_ref())).collect();
        plan.map(|plan| Recovery { plan, outs })
    });
    found.unwrap_or_else(|why| Recovery { plan: Plan::Corrupt(why), outs: vec![None; script.steps.len()] })
}

type Steps = Vec<Option<StepRecord>>;

/// The record of every step of the script; an error if the journal is of another script.
fn check(saga: &SagaRow, events: &[SagaEventRow], script: &Script) -> Result<Steps, String> {
    if (saga.op, saga.version) != (script.op, script.version) {
        return Err(format!(
            "it is {} version {}, the script is {} version {}",
            saga.op, saga.version, script.op, script.version
        ));
    }
    let ledger = Ledger::read(events).map_err(|err| text_of(&err))?;
    for (index, record) in ledger.steps() {
        let place = usize::try_from(index).unwrap_or(usize::MAX);
        if record.name != script.key(place) {
            return Err(format!("step {index} is {:?}, not {:?}", record.name, script.key(place)));
        }
    }
    Ok((0..script.steps.len()).map(|index| ledger.step(number(index)).cloned()).collect())
}

fn status(step: Option<&StepRecord>) -> StepStatus {
    step.map_or(StepStatus::Never, |record| record.status)
}

fn standing(step: Option<&StepRecord>) -> Option<Value> {
    step.filter(|record| record.status != StepStatus::Undone)?.out.clone()
}

/// Done, done, ..., then one that may be at work, then nothing.
fn forward(steps: &[Option<StepRecord>]) -> Result<Plan, String> {
    let done = steps.iter().take_while(|step| status(step.as_ref()) == StepStatus::Done).count();
    let behind = steps.get(done + 1..).unwrap_or_default();
    if let Some(step) = behind.iter().flatten().next() {
        return Err(format!("step {:?} began before the one before it was done", step.name));
    }
    match steps.get(done) {
        None => Ok(Plan::Finish),
        Some(step) => match status(step.as_ref()) {
            StepStatus::Never => Ok(Plan::ContinueAt(done)),
            StepStatus::Running => Ok(Plan::AskSeen(done)),
            other @ (StepStatus::Done | StepStatus::Failed | StepStatus::Undoing | StepStatus::Undone) => {
                Err(format!("step {done} is {other:?} in a saga that goes forward"))
            }
        },
    }
}

/// Done, done, ..., then being undone or undone up to the one that failed, then nothing.
fn back(steps: &[Option<StepRecord>], script: &Script) -> Result<Plan, String> {
    let failed = steps.iter().position(|step| step.as_ref().is_some_and(|record| record.failure.is_some()));
    let failed = failed.ok_or("it unwinds and no step failed")?;
    if script.is_past_return(failed) {
        return Err(format!("it unwinds past its point of no return, from step {failed}"));
    }
    let (before, behind) = steps.split_at(failed + 1);
    if let Some(step) = behind.iter().flatten().next() {
        return Err(format!("step {:?} began after one that failed", step.name));
    }
    let done = before.iter().take_while(|step| status(step.as_ref()) == StepStatus::Done).count();
    let touched = before[done..].iter().enumerate().all(|(place, step)| match status(step.as_ref()) {
        StepStatus::Undoing | StepStatus::Undone => true,
        StepStatus::Failed => done + place == failed,
        StepStatus::Never | StepStatus::Running | StepStatus::Done => false,
    });
    if !touched {
        return Err("its steps are not undone newest first".to_owned());
    }
    let open = |index: &usize| status(steps[*index].as_ref()) != StepStatus::Undone;
    Ok(Plan::UndoFrom { steps: (0..=failed).rev().filter(open).collect(), cause: cause(&before[failed])? })
}

fn cause(step: &Option<StepRecord>) -> Result<Fault, String> {
    let failure = step.as_ref().and_then(|record| record.failure.clone()).unwrap_or_default();
    serde_json::from_value(failure).map_err(|err| format!("the failure it unwinds for cannot be read: {err}"))
}

fn text_of(err: &dyn std::error::Error) -> String {
    err.source().map_or_else(|| err.to_string(), |inner| format!("{err}: {}", text_of(inner)))
}
