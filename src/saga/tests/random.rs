//! Whatever goes wrong, in whatever order: the saga ends, and what it leaves is explained.

use proptest::prelude::*;

use super::house::*;
use super::world::*;
use crate::model::{ClaimState, SagaState};
use crate::saga::{Action, Interrupted};

const MOMENTS: [&str; 6] =
    ["before_effect", "after_effect", "before_undo", "after_undo", "before_commit", "after_commit"];

fn mishap() -> impl Strategy<Value = (String, Action)> {
    let action = prop_oneof![Just(Action::Error), Just(Action::Unknown), Just(Action::Pause)];
    (prop::sample::select(&STEPS), prop::sample::select(&MOMENTS), action)
        .prop_map(|(step, moment, action)| (format!("spawn.{step}.{moment}"), action))
}

/// Runs to the end, over crashes (pauses that are never released) and a store that fails.
async fn live_through(house: &mut House, mishaps: &[(String, Action)]) {
    let points = std::sync::Arc::clone(&house.points);
    for (point, action) in mishaps {
        points.arm(point, *action, Some(1));
    }
    let mut resume = false;
    while house.saga().state.is_open() {
        let crash = futures_util::future::select_all(
            mishaps
                .iter()
                .filter(|(_, action)| *action == Action::Pause)
                .map(|(point, _)| point.as_str())
                .chain(["never"])
                .map(|point| Box::pin(points.reached(point))),
        );
        let work = async { if resume { house.resume().await } else { house.run().await } };
        let crashed = tokio::select! {
            end = work => match end {
                Ok(_) | Err(Interrupted::Injected(_)) => false,
                Err(other) => panic!("{other}"),
            },
            _ = crash => true,
        };
        if crashed {
            house.restart();
            house.points = std::sync::Arc::clone(&points);
            mishaps.iter().for_each(|(point, _)| points.release(point));
        }
        resume = true;
    }
}

fn check(house: &House) {
    let saga = house.saga();
    let books = house.store().books();
    match saga.state {
        SagaState::Done => house.assert_complete(),
        SagaState::Failed => house.assert_untouched(),
        SagaState::Stuck => {
            let result = saga.result.unwrap();
            let left: Vec<&serde_json::Value> =
                result["details"]["left"].as_array().unwrap().iter().collect();
            let effects = house.world.effects();
            if left[0]["fault"].is_null() {
                // Past the point of no return: all but the last step is there, and the claims say so.
                assert_eq!(effects[..POINT + 1], STEPS[..POINT + 1]);
                assert!(books.claims().all(|c| c.state == ClaimState::InUse));
                return;
            }
            // Every effect that is left is named, and no claim went whose device is there.
            let labels: Vec<&str> = left.iter().map(|l| l["step"].as_str().unwrap()).collect();
            for effect in &effects {
                let label = effect.replace(".0", " 1/2").replace(".1", " 2/2");
                assert!(labels.contains(&label.as_str()), "{effect} is not in {labels:?}");
            }
            assert_eq!(books.claims().len(), 2);
        }
        SagaState::Running | SagaState::Unwinding => panic!("it has not ended"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_life_ends_well(mishaps in prop::collection::vec(mishap(), 0..7)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let mut house = House::begun();
        house.seen.bell = Some(std::sync::Arc::clone(&house.wake));
        runtime.block_on(live_through(&mut house, &mishaps));
        check(&house);
    }
}
