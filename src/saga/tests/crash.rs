//! Crashes: at every point, twice in a row, on the way back; and shutdown, which is one with manners.

use super::house::*;
use super::world::*;
use crate::model::SagaState;
use crate::saga::{Action, Interrupted};

fn forward_points() -> Vec<String> {
    let points = script(&House::begun().world).points();
    assert_eq!(points.len(), STEPS.len() * 6 - 2, "the step after the point of no return has no undo");
    points.into_iter().filter(|point| !point.ends_with("_undo")).collect()
}

#[tokio::test]
async fn at_every_point_forward() {
    for point in forward_points() {
        let mut house = House::begun();
        assert!(house.die_at(&point, false).await, "{point}");
        if house.saga().state == SagaState::Running {
            house.resume().await.unwrap();
        }
        house.assert_complete();
        // Law 4: what was found done is not done again.
        let runs = house.world.log.lock().unwrap().iter().filter(|line| line.starts_with("run")).count();
        assert_eq!(runs, STEPS.len(), "{point}");
    }
}

#[tokio::test]
async fn twice_in_a_row() {
    let points = forward_points();
    for (place, first) in points.iter().enumerate() {
        for second in points.iter().skip(place).take(2) {
            let mut house = House::begun();
            house.die_at(first, false).await;
            if house.saga().state == SagaState::Running {
                house.die_at(second, true).await;
            }
            if house.saga().state == SagaState::Running {
                house.resume().await.unwrap();
            }
            house.assert_complete();
        }
    }
}

#[tokio::test]
async fn at_every_point_back() {
    for failing in 0..=POINT {
        for step in &STEPS[..failing] {
            for moment in ["before_undo", "after_undo"] {
                let mut house = House::begun();
                let fail = format!("spawn.{}.before_effect", STEPS[failing]);
                house.points.arm(&fail, Action::Error, None);
                assert!(house.die_at(&format!("spawn.{step}.{moment}"), false).await, "{failing} {step}");
                assert_eq!(house.saga().state, SagaState::Unwinding);
                // The second crash is at the same place, if it comes there again.
                house.die_at(&format!("spawn.{step}.before_undo"), true).await;
                if house.saga().state == SagaState::Unwinding {
                    house.resume().await.unwrap();
                }
                house.assert_untouched();
                assert!(house.saga().result.unwrap()["message"].as_str().unwrap().contains(&fail));
            }
        }
    }
}

#[tokio::test]
async fn around_the_commit_of_a_failure() {
    for step in &STEPS[..=POINT] {
        let mut house = House::begun();
        house.points.arm(&format!("spawn.{step}.before_effect"), Action::Error, None);
        assert!(house.die_at(&format!("spawn.{step}.before_commit"), false).await);
        // The failure is not on disk: the step is tried again, and goes well this time.
        house.resume().await.unwrap();
        house.assert_complete();

        let mut house = House::begun();
        house.points.arm(&format!("spawn.{step}.before_effect"), Action::Error, None);
        assert!(house.die_at(&format!("spawn.{step}.after_commit"), false).await);
        house.resume().await.unwrap();
        house.assert_untouched();
    }
}

#[tokio::test]
async fn an_undo_that_failed_is_tried_again_after_a_crash() {
    let mut house = House::begun();
    house.points.arm("spawn.start.before_effect", Action::Error, None);
    house.points.arm("spawn.define.before_undo", Action::Error, None);
    assert!(house.die_at("spawn.create_device.0.before_undo", false).await);
    assert_eq!(house.world.effects(), ["create_device.0", "define"]);
    house.resume().await.unwrap();
    house.assert_untouched();
}

#[tokio::test]
async fn a_stop_leaves_the_saga_open() {
    let mut house = House::begun();
    house.stop.stop();
    assert!(matches!(house.run().await, Err(Interrupted::Stopped)));
    assert_eq!((house.world.effects().len(), house.saga().state), (0, SagaState::Running));
    house.stop = std::sync::Arc::default();
    house.resume().await.unwrap();
    house.assert_complete();
}

#[tokio::test]
async fn a_stop_is_heard_between_two_steps() {
    let house = House::begun();
    let point = "spawn.create_device.1.after_effect";
    house.points.arm(point, Action::Pause, None);
    let (end, ()) = tokio::join!(house.run(), async {
        house.points.reached(point).await;
        house.stop.stop();
        house.points.release(point);
    });
    assert!(matches!(end, Err(Interrupted::Stopped)));
    // The step that was at work is booked.
    let states: Vec<_> = house.store().books().claims().map(|c| c.state.as_str()).collect();
    assert_eq!(states, ["ready", "ready"]);
    assert_eq!(house.world.count("run define"), 0);
}

#[tokio::test]
async fn a_store_that_cannot_write_leaves_the_saga_open() {
    let mut house = House::begun();
    house.points.arm("spawn.define.before_commit", Action::Error, Some(1));
    assert!(matches!(house.run().await, Err(Interrupted::Injected(_))));
    house.restart();
    house.resume().await.unwrap();
    house.assert_complete();

    let mut house = House::begun();
    crate::store::tests::fixture::write_protect(house.store());
    assert!(matches!(house.run().await, Err(Interrupted::Store(err)) if err.is_temporary()));
    house.restart();
    house.resume().await.unwrap();
    house.assert_complete();
}
