//! The plan of a recovery, as a table: the lines of the journal against what is to be done.

use std::sync::Arc;

use serde_json::{Value, json};

use super::world::*;
use crate::model::{Fault, FaultKind, OpKind, SagaEventRow, SagaState};
use crate::saga::{Plan, plan};
use crate::store::tests::fixture::saga;

fn fault() -> Fault {
    Fault::new(FaultKind::NoCapacity, "the card is full")
}

/// Reads `0 started`, `1 done`; results are numbers, failures are [`fault`].
fn events(text: &str) -> Vec<SagaEventRow> {
    let lines = text.split(", ").filter(|line| !line.is_empty()).enumerate();
    lines
        .map(|(place, line)| {
            let (step, event) = line.split_once(' ').unwrap();
            let step: usize = step.parse().unwrap();
            let payload = match event {
                "done" => Some(json!(step)),
                "failed" => Some(serde_json::to_value(fault()).unwrap()),
                _ => None,
            };
            SagaEventRow {
                seq: u32::try_from(place).unwrap() + 1,
                step: u32::try_from(step).unwrap(),
                name: STEPS[step].to_owned(),
                event: event.parse().unwrap(),
                payload,
                at_usec: 0,
            }
        })
        .collect()
}

fn planned(state: SagaState, lines: &str) -> (Plan, Vec<Option<Value>>) {
    let dir = tempfile::tempdir().unwrap();
    let mut row = saga(OpKind::Spawn, 1, 1);
    row.state = state;
    let found = plan(&row, &events(lines), &script(&Arc::new(World::new(dir.path()))));
    (found.plan, found.outs)
}

const TWO_DONE: &str = "0 started, 0 done, 1 started, 1 done";

#[test]
fn forward() {
    for (lines, want) in [
        (String::new(), Plan::ContinueAt(0)),
        ("0 started".into(), Plan::AskSeen(0)),
        ("0 started, 0 started".into(), Plan::AskSeen(0)),
        ("0 started, 0 done".into(), Plan::ContinueAt(1)),
        (format!("{TWO_DONE}, 2 started"), Plan::AskSeen(2)),
        (format!("{TWO_DONE}, 2 started, 2 done, 3 started, 3 done, 4 started"), Plan::AskSeen(4)),
        (format!("{TWO_DONE}, 2 started, 2 done, 3 started, 3 done, 4 started, 4 done"), Plan::Finish),
    ] {
        assert_eq!(planned(SagaState::Running, &lines).0, want, "{lines}");
    }
    assert_eq!(
        planned(SagaState::Running, &format!("{TWO_DONE}, 2 started")).1,
        [Some(json!(0)), Some(json!(1)), None, None, None]
    );
}

#[test]
fn back() {
    for (more, steps) in [
        ("", vec![2, 1, 0]),
        (", 2 undo-started", vec![2, 1, 0]),
        (", 2 undo-started, 2 undone", vec![1, 0]),
        (", 2 undo-started, 2 undone, 1 undo-started", vec![1, 0]),
        // The undo of 1 failed before the crash: it is tried again.
        (", 2 undo-started, 2 undone, 1 undo-started, 0 undo-started", vec![1, 0]),
        (", 2 undo-started, 2 undone, 1 undo-started, 0 undo-started, 0 undone", vec![1]),
        (", 2 undo-started, 2 undone, 1 undo-started, 1 undone, 0 undo-started, 0 undone", vec![]),
    ] {
        let lines = format!("{TWO_DONE}, 2 started, 2 failed{more}");
        let (got, outs) = planned(SagaState::Unwinding, &lines);
        assert_eq!(got, Plan::UndoFrom { steps: steps.clone(), cause: fault() }, "{lines}");
        let standing: Vec<usize> = (0..5).filter(|index| outs[*index].is_some()).collect();
        assert!(standing.iter().all(|index| steps.contains(index)), "{lines}: {standing:?}");
    }
}

#[test]
fn what_cannot_be_is_named() {
    let all = "0 started, 0 done, 1 started, 1 done, 2 started, 2 done, 3 started, 3 done, 4 started";
    for (state, lines, reason) in [
        (SagaState::Running, "1 started".to_owned(), "\"create_device.1\" began before the one before it"),
        (SagaState::Running, "0 started, 1 started".into(), "began before the one before it was done"),
        (SagaState::Running, "0 started, 0 failed".into(), "step 0 is Failed in a saga that goes forward"),
        (
            SagaState::Running,
            format!("{TWO_DONE}, 1 undo-started"),
            "step 1 is Undoing in a saga that goes forward",
        ),
        (SagaState::Running, "0 done".into(), "event done after Never"),
        (SagaState::Unwinding, TWO_DONE.into(), "no step failed"),
        (SagaState::Unwinding, format!("{all}, 4 failed"), "past its point of no return, from step 4"),
        (SagaState::Unwinding, "0 started, 0 failed, 1 started".into(), "began after one that failed"),
        (
            SagaState::Unwinding,
            format!("{TWO_DONE}, 2 started, 2 failed, 0 undo-started, 0 undone"),
            "not undone newest first",
        ),
        (SagaState::Done, TWO_DONE.into(), "it has ended already"),
    ] {
        let (Plan::Corrupt(why), outs) = planned(state, &lines) else { panic!("{lines}") };
        assert!(why.contains(reason), "{lines}: {why}");
        assert_eq!(outs, vec![None; STEPS.len()]);
    }
}
