//! Outcomes that are not known: they are asked for and waited for, never guessed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::house::*;
use super::world::*;
use crate::model::SagaState;
use crate::saga::{Action, Ending, Interrupted};

#[tokio::test]
async fn a_lost_answer_is_looked_up() {
    for step in STEPS {
        for (moment, runs) in [("before_effect", 1), ("after_effect", 1)] {
            let house = House::begun();
            house.points.arm(&format!("spawn.{step}.{moment}"), Action::Unknown, Some(1));
            house.run().await.unwrap();
            house.assert_complete();
            assert_eq!(house.world.count(&format!("run {step}")), runs, "{step} {moment}");
            assert_eq!(house.world.count(&format!("seen {step}")), 1, "{step} {moment}");
        }
    }
}

#[tokio::test]
async fn a_lost_answer_of_an_undo_is_looked_up() {
    for step in &STEPS[..POINT] {
        for (moment, undos) in [("before_undo", 1), ("after_undo", 1)] {
            let house = House::begun();
            house.points.arm("spawn.start.before_effect", Action::Error, None);
            house.points.arm(&format!("spawn.{step}.{moment}"), Action::Unknown, Some(1));
            house.run().await.unwrap();
            house.assert_untouched();
            assert_eq!(house.world.count(&format!("undo {step}")), undos, "{step} {moment}");
        }
    }
}

#[tokio::test]
async fn a_host_that_is_away_is_waited_for() {
    let house = House::begun();
    house.world.away.store(true, Ordering::Relaxed);
    let (end, ()) = tokio::join!(house.run(), async {
        house.seen.until_waiting().await;
        house.world.away.store(false, Ordering::Relaxed);
        house.wake.ring();
    });
    end.unwrap();
    house.assert_complete();
    let waiting = house.seen.all().into_iter().find(|p| p.step.contains("waiting")).unwrap();
    assert_eq!(waiting.step, "create_device 1/2: waiting, the host is away");
    assert_eq!(waiting.state, SagaState::Running);
}

#[tokio::test]
async fn an_undo_waits_too() {
    let house = House::begun();
    house.points.arm("spawn.define.before_effect", Action::Error, None);
    let point = "spawn.define.after_commit";
    house.points.arm(point, Action::Pause, None);
    let (end, ()) = tokio::join!(house.run(), async {
        house.points.reached(point).await;
        house.world.away.store(true, Ordering::Relaxed);
        house.points.release(point);
        house.seen.until_waiting().await;
        house.world.away.store(false, Ordering::Relaxed);
        house.wake.ring();
    });
    assert!(matches!(end.unwrap(), Ending::Failed(_)));
    house.assert_untouched();
}

/// A host that never gives an answer is asked once for each time it moves, not in a loop.
#[tokio::test]
async fn doubt_does_not_spin() {
    let house = House::begun();
    house.points.arm("spawn.define.before_effect", Action::Unknown, None);
    let (end, ()) = tokio::join!(house.run(), async {
        house.seen.until_waiting().await;
        house.stop.stop();
    });
    assert!(matches!(end, Err(Interrupted::Stopped)));
    assert_eq!(house.world.count("seen define"), 1);
    assert_eq!(house.saga().state, SagaState::Running);
}

#[tokio::test]
async fn a_bell_before_the_wait_is_not_lost() {
    let house = House::begun();
    house.points.arm("spawn.define.before_effect", Action::Unknown, Some(1));
    // Both tries are lost; the host moves while the second one is at work.
    let point = "spawn.define.after_effect";
    house.points.arm(point, Action::Pause, Some(1));
    house.world.next_seen.lock().unwrap().insert("define".into(), crate::saga::Seen::Absent);
    let (end, ()) = tokio::join!(house.run(), async {
        house.points.reached(point).await;
        house.wake.ring();
        house.points.arm(point, Action::Unknown, Some(1));
        house.points.release(point);
    });
    end.unwrap();
    house.assert_complete();
}

#[tokio::test]
async fn a_crash_in_doubt_asks_again() {
    let mut house = House::begun();
    house.die_at("spawn.create_device.1.after_effect", false).await;
    house.world.away.store(true, Ordering::Relaxed);
    house.stop = Arc::default();
    let (end, ()) = tokio::join!(house.resume(), async {
        house.seen.until_waiting().await;
        assert_eq!(house.world.count("run create_device.1"), 1, "nothing is done in doubt");
        house.world.away.store(false, Ordering::Relaxed);
        house.wake.ring();
    });
    end.unwrap();
    house.assert_complete();
}

#[tokio::test]
async fn what_others_put_there_meanwhile_is_left_alone() {
    // Not known whether ours: the step fails, nothing of it is undone.
    let mut house = House::begun();
    house.die_at("spawn.define.before_effect", false).await;
    house.world.put("define", "others");
    let Ending::Failed(fault) = house.resume().await.unwrap() else { panic!("not failed") };
    assert!(fault.message.contains("define belongs to others; it is not ours"), "{fault}");
    assert_eq!(house.world.effects(), ["define"]);

    // Known to have been ours: an operator has to look.
    let mut house = House::begun();
    house.points.arm("spawn.start.before_effect", Action::Error, None);
    house.die_at("spawn.define.before_undo", false).await;
    house.world.put("define", "others");
    let Ending::Stuck(fault) = house.resume().await.unwrap() else { panic!("not stuck") };
    assert_eq!(fault.details["left"][0]["step"], "define");
    assert_eq!(house.world.effects(), ["define"]);
}
