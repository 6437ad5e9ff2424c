//! A device of which only the definition is there: its making or its removal was cut off in the middle.

use mdevirt::host::NodeDevices;
use mdevirt::host::sim::Change;
use mdevirt::model::{Claim, NewMdev, OpKind, SagaState};
use mdevirt::saga::Action;

use crate::case::{Case, Given, claims};
use crate::run::{Course, Run};

/// Where the devices are, in their order.
const CARDS: [&str; 2] = ["0000:84:00.0", "0000:85:00.0"];

fn half_way(run: &Run, on_card: usize) {
    run.on(async |world| {
        let card = CARDS[on_card].parse().unwrap();
        let claim = claims(world).into_iter().find(|c| c.parent == card).unwrap();
        let Claim { uuid, parent, mdev_type: type_id, device_api, .. } = claim;
        // No more than a look where it is made already.
        world.sim.create(&NewMdev { uuid, parent, type_id, device_api }).await.unwrap();
        world.sim.change(Change::MdevLost(uuid)).await.unwrap();
    });
}

fn each_device(op: OpKind, step: &str, visit: impl Fn(&Course, &str, usize)) {
    let course = Course::of(Case::of(op, 2, Given::Fresh));
    for device in 0..2 {
        visit(&course, &format!("{op}.{step}.{device}.before_effect"), device);
    }
}

#[test]
fn half_made_is_made_whole_or_taken_away() {
    for op in [OpKind::Spawn, OpKind::Claim] {
        each_device(op, "make_device", |course, point, device| {
            let run = Run::up_to(course.case, "half made", point, |_| ());
            half_way(&run, device);
            run.release(point);
            run.settles(course, &[SagaState::Done]);
            for (action, end) in [(Action::Unknown, SagaState::Done), (Action::Error, SagaState::Failed)] {
                let mut run = Run::up_to(course.case, &format!("half made, crash, {action}"), point, |_| ());
                half_way(&run, device);
                run.crash(|points| points.arm(point, action, Some(1)));
                run.settles(course, &[end]);
            }
        });
    }
}

#[test]
fn half_removed_is_removed() {
    for op in [OpKind::Destroy, OpKind::Release] {
        each_device(op, "remove_device", |course, point, device| {
            for crash in [false, true] {
                let mut run = Run::up_to(course.case, "half removed", point, |_| ());
                half_way(&run, device);
                if crash {
                    run.crash(|_| ());
                } else {
                    run.release(point);
                }
                run.settles(course, &[SagaState::Done]);
            }
        });
    }
}
