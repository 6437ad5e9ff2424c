//! An operation as a list of steps.

use std::fmt;

use serde_json::Value;

use super::failpoint::{Moment, point_name};
use super::step::Step;
use crate::model::OpKind;
use crate::store::Change;

/// Makes the job's result from the results of the steps.
pub type ResultOf = Box<dyn Fn(&[Value]) -> Value + Send + Sync>;

/// What the runner follows. It is made from the saga's params alone, so that a restart makes the same one.
pub struct Script {
    /// The operation.
    pub op: OpKind,
    /// Version of the list of steps.
    pub version: u32,
    /// At least one.
    pub steps: Vec<Box<dyn Step>>,
    /// Once this step is done nothing is undone any more; if it fails it is looked at, and passed if its effect is
    /// there. `None`: everything can be undone until the end.
    pub point_of_no_return: Option<usize>,
    /// What changes in the books with the last `Done`.
    pub on_done: Vec<Change>,
    /// What changes in the books when all is undone.
    pub on_failed: Vec<Change>,
    /// The job's result from the results of the steps.
    pub result: ResultOf,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("op", &self.op)
            .field("version", &self.version)
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

impl Script {
    /// A script without changes of its own, that can be undone until its end and has `null` as its result.
    pub fn new(op: OpKind, version: u32, steps: Vec<Box<dyn Step>>) -> Self {
        Self {
            op,
            version,
            steps,
            point_of_no_return: None,
            on_done: Vec::new(),
            on_failed: Vec::new(),
            result: Box::new(|_| Value::Null),
        }
    }

    /// The step's name in the journal and in fail points, `create_device.1`; empty past the end.
    pub fn key(&self, index: usize) -> String {
        self.named(index, |name, part| format!("{name}.{}", part.index))
    }

    /// The step's name for people, `create_device 2/3`; empty past the end.
    pub fn label(&self, index: usize) -> String {
        self.named(index, |name, part| format!("{name} {}/{}", part.index.saturating_add(1), part.of))
    }

    /// Every fail point that a run of this script can come to.
    pub fn points(&self) -> Vec<String> {
        let last_undone = self.point_of_no_return.unwrap_or(usize::MAX);
        (0..self.steps.len())
            .flat_map(|index| Moment::ALL.iter().map(move |moment| (index, *moment)))
            .filter(|(index, moment)| *index <= last_undone || !moment.is_undo())
            .map(|(index, moment)| point_name(self.op, &self.key(index), moment))
            .collect()
    }

    /// Whether a failure of this step is after the point of no return.
    pub(super) fn is_past_return(&self, index: usize) -> bool {
        self.point_of_no_return.is_some_and(|point| index > point)
    }

    fn named(&self, index: usize, with_part: impl Fn(&str, super::Part) -> String) -> String {
        let Some(step) = self.steps.get(index) else { return String::new() };
        step.part().map_or_else(|| step.name().to_owned(), |part| with_part(step.name(), part))
    }
}
