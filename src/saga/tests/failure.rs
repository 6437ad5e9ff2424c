//! Definite failures: before the point of no return everything goes, after it the saga is stuck.

use serde_json::json;

use super::house::*;
use super::world::*;
use crate::model::{FaultKind, SagaState, StepEvent};
use crate::saga::{Action, Ending, Seen};
use crate::store::{Begin, Change};

#[tokio::test]
async fn all_goes_well() {
    let house = House::begun();
    assert_eq!(house.run().await.unwrap(), Ending::Done(json!({ "made": STEPS })));
    house.assert_complete();
    // n steps, n + 1 commits: `done`, the claims and the next `started` share one.
    assert_eq!(house.store().commits(), STEPS.len() as u64 + 1);
    let shown: Vec<_> = house.seen.all().into_iter().map(|p| (p.steps_done, p.step)).collect();
    let want = [
        (0, "create_device 1/2"),
        (1, "create_device 2/2"),
        (2, "define"),
        (3, "start"),
        (4, "publish"),
        (5, ""),
    ];
    assert_eq!(shown, want.map(|(n, step)| (n, step.to_owned())));
}

#[tokio::test]
async fn every_step_fails() {
    for (index, step) in STEPS.iter().enumerate() {
        let house = House::begun();
        house.points.arm(&format!("spawn.{step}.before_effect"), Action::Error, None);
        let end = house.run().await.unwrap();
        if index > POINT {
            let Ending::Stuck(fault) = end else { panic!("{step}: {end:?}") };
            assert_eq!(fault.details["left"], json!([{ "step": "publish", "fault": null }]));
            assert_eq!(house.world.effects(), STEPS[..POINT + 1]);
            continue;
        }
        let Ending::Failed(fault) = end else { panic!("{step}: {end:?}") };
        assert!(fault.message.contains(step), "{fault}");
        assert_eq!(house.saga().result, Some(serde_json::to_value(&fault).unwrap()));
        house.assert_untouched();
        // What was undone was undone newest first.
        let log = house.world.log.lock().unwrap().clone();
        let undone: Vec<_> = log.iter().filter_map(|line| line.strip_prefix("undo ")).collect();
        assert_eq!(undone, STEPS[..index].iter().rev().copied().collect::<Vec<_>>());
        // begin, a commit per done step, failed + undo-started, one per undo.
        assert_eq!(house.store().commits(), 1 + index as u64 + 1 + index as u64 + 1);
    }
}

#[tokio::test]
async fn a_step_that_failed_half_way_is_undone_too() {
    for step in &STEPS[..POINT] {
        let house = House::begun();
        house.points.arm(&format!("spawn.{step}.after_effect"), Action::Error, None);
        assert!(matches!(house.run().await.unwrap(), Ending::Failed(_)), "{step}");
        assert_eq!(house.world.count(&format!("undo {step}")), 1);
        house.assert_untouched();
    }
}

#[tokio::test]
async fn the_point_of_no_return_is_passed_if_its_effect_is_there() {
    let house = House::begun();
    house.points.arm("spawn.start.after_effect", Action::Error, None);
    house.run().await.unwrap();
    house.assert_complete();
}

#[tokio::test]
async fn all_undos_that_fail_are_collected() {
    let house = House::begun();
    for point in ["start.before_effect", "define.before_undo", "create_device.0.before_undo"] {
        house.points.arm(&format!("spawn.{point}"), Action::Error, None);
    }
    let Ending::Stuck(fault) = house.run().await.unwrap() else { panic!("not stuck") };
    assert_eq!(fault.kind, FaultKind::OperationStuck);
    assert!(fault.message.contains("could not be undone: define, create_device 1/2"), "{fault}");
    assert_eq!(fault.details["cause"]["message"], "fail point spawn.start.before_effect");
    let left: Vec<_> = fault.details["left"].as_array().unwrap().iter().map(|l| &l["step"]).collect();
    assert_eq!(left, ["define", "create_device 1/2"]);
    // The second device was undone in spite of the first failure, and its claim went back with it.
    assert_eq!(house.world.effects(), ["create_device.0", "define"]);
    let states: Vec<_> = house.store().books().claims().map(|c| c.state.as_str()).collect();
    assert_eq!(states, ["ready", "reserved"]);
}

#[tokio::test]
async fn a_stuck_saga_holds_nobody_up() {
    let house = House::begun();
    house.points.arm("spawn.publish.before_effect", Action::Error, None);
    house.run().await.unwrap();
    assert_eq!(house.store().stuck_sagas().unwrap().len(), 1);
    let again = crate::store::tests::fixture::saga(crate::model::OpKind::Destroy, 1, 2);
    let job = again.id;
    house.store().begin(Begin::new(again, STEPS[0])).unwrap();
    let mut script = script(&house.world);
    script.op = crate::model::OpKind::Destroy;
    script.steps.truncate(1);
    script.steps[0] = Box::new(FakeStep {
        world: std::sync::Arc::clone(&house.world),
        name: "create_device",
        part: Some(crate::saga::Part { index: 0, of: 1 }),
        done: vec![],
        undone: vec![],
    });
    script.on_done = [0, 1].into_iter().flat_map(release).collect();
    script.on_done.push(Change::InstanceGone(crate::store::tests::fixture::instance_uuid(1)));
    house.runner().run(job, &script, &house.seen).await.unwrap();
    assert_eq!(house.store().stuck_sagas().unwrap(), []);
    assert_eq!(house.saga().state, SagaState::Stuck, "its row stays");
    assert_eq!(*house.store().books(), crate::store::Books::default());
}

#[tokio::test]
async fn what_is_not_ours_is_left_alone() {
    let house = House::begun();
    house.world.put("define", "others");
    let Ending::Failed(fault) = house.run().await.unwrap() else { panic!("not failed") };
    assert_eq!(fault.message, "define is taken");
    assert_eq!(house.world.effects(), ["define"]);
    assert_eq!(house.world.count("undo define"), 0);
}

#[tokio::test]
async fn a_step_may_run_twice_and_an_undo_too() {
    for step in STEPS {
        let house = House::begun();
        house.points.arm(&format!("spawn.{step}.after_effect"), Action::Unknown, Some(1));
        // The look is too early to see the effect, so the step is repeated.
        house.world.next_seen.lock().unwrap().insert(step.into(), Seen::Absent);
        house.run().await.unwrap();
        assert_eq!(house.world.count(&format!("run {step}")), 2, "{step}");
        house.assert_complete();
    }
    for step in &STEPS[..POINT] {
        let house = House::begun();
        house.points.arm("spawn.start.before_effect", Action::Error, None);
        house.points.arm(&format!("spawn.{step}.after_undo"), Action::Unknown, Some(1));
        house.world.next_seen.lock().unwrap().insert((*step).into(), Seen::Done(json!(step)));
        house.run().await.unwrap();
        assert_eq!(house.world.count(&format!("undo {step}")), 2, "{step}");
        house.assert_untouched();
    }
}

#[tokio::test]
async fn books_that_refuse_end_in_stuck() {
    let house = House::begun();
    let mut script = script(&house.world);
    script.steps[2] = Box::new(FakeStep {
        world: std::sync::Arc::clone(&house.world),
        name: "define",
        part: None,
        // A claim that is not releasing cannot go.
        done: vec![Change::ClaimGone(crate::store::tests::fixture::claim(1, 0).id)],
        undone: vec![],
    });
    let end = house.runner().run(job(), &script, &house.seen).await.unwrap();
    let Ending::Stuck(fault) = end else { panic!("{end:?}") };
    assert!(fault.message.contains("is ready, not releasing"), "{fault}");
    assert_eq!(house.saga().state, SagaState::Stuck);
    let events = house.store().events(job()).unwrap();
    assert_eq!(events.last().unwrap().event, StepEvent::Started, "nothing of the refused entry is there");
    assert_eq!(house.seen.all().last().unwrap().state, SagaState::Stuck);
}
