//! On the way back: crashes at every point of every undo, undos that are repeated, lost or fail.

use mdevirt::host::{Hypervisor, NodeDevices, Passage};
use mdevirt::model::{ClaimRole, SagaState};
use mdevirt::saga::Action;

use crate::case::{Case, claims, vm};
use crate::run::{Course, Run};
use crate::world::there_of;

/// A failure that leads to the undo of a step.
struct Way {
    failing: String,
    /// A step that cannot be taken back is undone only if its effect comes by itself behind its failure.
    by_itself: bool,
}

/// All failures that make the operation come to an undo of this step.
fn ways(course: &Course, step: usize) -> Vec<Way> {
    let last = course.point_of_no_return.unwrap_or(course.steps.len() - 1);
    let way = |index: usize, moment: &str, by_itself: bool| Way {
        failing: format!("{}.{moment}", course.steps[index]),
        by_itself,
    };
    let later = (step + 1..=last).map(|later| way(later, "before_effect", false));
    let no_return = course.point_of_no_return == Some(step);
    // A guest that could not be saved with its devices runs on: there is nothing to undo.
    let nothing = course.steps[step].contains(".save_with_devices");
    let its_own = way(step, if no_return { "before_effect" } else { "after_effect" }, no_return);
    later.chain((!nothing).then_some(its_own)).collect()
}

/// Points that nothing leads to: a point of no return is passed, and not undone, where its effect is there before.
pub fn never(course: &Course) -> Vec<String> {
    let last = course.point_of_no_return.filter(|_| course.case.is_off_at_return());
    course.undo().into_iter().filter(|point| Some(course.step_of(point)) == last).collect()
}

/// By the failure of the next step and by its own: how far the operation had come makes no difference to one undo, and
/// [`crash_at_points`] visits all.
fn each(case: Case, visit: impl Fn(&Course, &str, &Way)) {
    let course = Course::of(case);
    each_on(&course, |course, point, way| {
        if course.step_of(&way.failing) <= course.step_of(point) + 1 {
            visit(course, point, way);
        }
    });
}

fn each_on(course: &Course, mut visit: impl FnMut(&Course, &str, &Way)) {
    let never = never(course);
    for point in course.undo().into_iter().filter(|point| !never.contains(point)) {
        for way in ways(course, course.step_of(&point)) {
            visit(course, &point, &way);
        }
    }
}

/// Begins and fails; what happens to the undos is armed besides.
fn undoing(course: &Course, way: &Way, what: &str, arms: &[(&str, Action)]) -> Run {
    let what = format!("failure {}, then {what} {arms:?}", way.failing);
    let step = &course.steps[course.step_of(&way.failing)];
    let written = format!("{step}.after_commit");
    let run = Run::of(course.case, &what, |points| {
        points.arm(&way.failing, Action::Error, Some(1));
        arms.iter().for_each(|(point, action)| points.arm(point, *action, Some(1)));
        if way.by_itself {
            points.arm(&written, Action::Pause, Some(1));
        }
    });
    if way.by_itself {
        run.reach(&written);
        happens(&run, step);
        run.release(&written);
    }
    run
}

/// What cannot be taken back comes about without us: the guest starts, shuts down, somebody removes the device.
fn happens(run: &Run, step: &str) {
    run.on(async |world| match step.split('.').nth(1).unwrap() {
        "start_domain" => world.sim.start(vm()).await.unwrap(),
        "stop_domain" => world.sim.stop(vm()).await.unwrap(),
        "save_domain" => world.sim.save(vm()).await.unwrap(),
        "remove_device" => {
            let all = claims(world);
            let going = all.iter().find(|c| c.role == ClaimRole::Outgoing).unwrap_or(&all[0]);
            world.sim.remove(going.uuid, &going.parent).await.unwrap();
        }
        // Nobody else writes our books.
        "record" | "record_decision" => {}
        // It goes where it was to go.
        "move_guest" => {
            let there = world.beside.get().unwrap().address();
            let devices = claims(world).iter().map(|c| (c.uuid, there_of(c.uuid))).collect();
            let passage = Passage { uri: there, devices, bandwidth_mib: None, downtime_ms: None };
            world.sim.migrate(vm(), &passage).await.unwrap();
        }
        other => panic!("{other} can be taken back"),
    });
}

/// What happened by itself is undone with the rest.
fn goes_back(way: &Way) -> bool {
    ["start_domain", "save_domain", "record"].iter().any(|step| way.failing.contains(&format!(".{step}")))
}

/// All is as it was, but for what happened by itself.
fn ends(course: &Course, way: &Way, run: &Run) {
    if way.by_itself && !goes_back(way) {
        run.fails_and_is_given_back();
    } else {
        run.settles(course, &[SagaState::Failed]);
    }
}

/// At every point, which are returned.
pub fn crash_at_points(course: &Course) -> Vec<String> {
    let mut visited = Vec::new();
    each_on(course, |course, point, way| {
        let mut run = undoing(course, way, "crash", &[(point, Action::Pause)]);
        run.reach(point);
        run.crash(|_| ());
        ends(course, way, &run);
        visited.push(point.to_owned());
    });
    visited
}

/// The next daemon dies too, at the same undo or at the next one.
pub fn crash_in_undo_twice(case: Case) {
    each(case, |course, point, way| {
        let step = course.step_of(point);
        let near = |second: &String| (step.saturating_sub(1)..=step).contains(&course.step_of(second));
        for second in course.undo().into_iter().filter(near) {
            let what = format!("crash, and again at {second}");
            let mut run = undoing(course, way, &what, &[(point, Action::Pause)]);
            run.reach(point);
            run.crash(|points| points.arm(&second, Action::Pause, Some(1)));
            if run.comes_to(&second) {
                run.crash(|_| ());
            }
            ends(course, way, &run);
        }
    });
}

/// The outcome of an undo is lost: it is looked up, and the undo is done once more if need be.
pub fn lost_undo(case: Case) {
    each(case, |course, point, way| {
        let run = undoing(course, way, "unknown", &[(point, Action::Unknown)]);
        ends(course, way, &run);
    });
}

/// An undo fails: the others go on, and what is left is given back later.
pub fn failed_undo(case: Case) {
    each(case, |course, point, way| {
        let run = undoing(course, way, "failure", &[(point, Action::Error)]);
        run.settles(course, &[SagaState::Stuck]);
    });
}

/// An undo fails and the daemon dies before the end: the next one tries it again.
pub fn failed_undo_then_crash(case: Case) {
    each(case, |course, point, way| {
        for second in course.undo().iter().filter(|second| course.step_of(second) < course.step_of(point)) {
            let arms = [(point, Action::Error), (second.as_str(), Action::Pause)];
            let mut run = undoing(course, way, "both", &arms);
            run.reach(second);
            run.crash(|_| ());
            ends(course, way, &run);
        }
    });
}
