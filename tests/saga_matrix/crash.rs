//! The daemon dies on the way forward: at every point, twice, in its recovery, and with a disk that does not write.

use std::collections::BTreeSet;

use mdevirt::model::SagaState;
use mdevirt::saga::Action;

use crate::case::Case;
use crate::run::{Course, Run};
use crate::unwind;

/// Right after it was accepted.
pub fn before_anything(case: Case) {
    let mut run = Run::of(case, "crash before anything", |_| ());
    run.crash(|_| ());
    run.settles(&Course::of(case), &[SagaState::Done]);
}

/// At every point that the script names, forward here and back in [`unwind`].
pub fn at_every_point(case: Case) {
    let course = Course::of(case);
    let mut visited: BTreeSet<String> = unwind::crash_at_points(&course).into_iter().collect();
    visited.extend(unwind::never(&course));
    for point in course.forward() {
        let mut run = Run::up_to(case, "crash", &point, |_| ());
        run.crash(|_| ());
        run.settles(&course, &[SagaState::Done]);
        visited.insert(point);
    }
    assert_eq!(visited.into_iter().collect::<Vec<_>>(), sorted(course.points));
}

fn sorted(mut points: Vec<String>) -> Vec<String> {
    points.sort();
    points
}

/// The next daemon dies too, at the same point or at a later one of the same step and the next, if it comes there.
pub fn twice(case: Case) {
    let course = Course::of(case);
    let points = course.forward();
    for (place, first) in points.iter().enumerate() {
        let near = |second: &&String| course.step_of(second) <= course.step_of(first) + 1;
        for second in points[place..].iter().filter(near) {
            let mut run = Run::up_to(case, &format!("crash, then {second}"), first, |_| ());
            run.crash(|points| points.arm(second, Action::Pause, Some(1)));
            if run.comes_to(second) {
                run.crash(|_| ());
            }
            run.settles(&course, &[SagaState::Done]);
        }
    }
}

/// The next daemon does not come further than its journal line, three times.
pub fn at_once_again(case: Case) {
    let course = Course::of(case);
    for point in course.forward() {
        let mut run = Run::up_to(case, "crash, crash, crash", &point, |_| ());
        run.crash(|_| ());
        let commits = run.world().service().store.commits();
        run.on(async |world| {
            while world.service().jobs_running() > 0 && world.service().store.commits() == commits {
                tokio::task::yield_now().await;
            }
        });
        run.crash(|_| ());
        run.crash(|_| ());
        run.settles(&course, &[SagaState::Done]);
    }
}

/// After the crash the operation fails: at the same step, the next, the last.
pub fn then_failure(case: Case) {
    let course = Course::of(case);
    for point in course.forward() {
        let (here, last) = (course.step_of(&point), course.steps.len() - 1);
        for index in BTreeSet::from([here, (here + 1).min(last), last]) {
            let step = &course.steps[index];
            let failing = format!("{step}.before_effect");
            let mut run = Run::up_to(case, &format!("crash, then failure at {failing}"), &point, |_| ());
            run.crash(|points| points.arm(&failing, Action::Error, Some(1)));
            let failed = if course.is_past_return(index) { SagaState::Stuck } else { SagaState::Failed };
            // What was found done is not done again, so it does not fail either.
            run.settles(&course, &[SagaState::Done, failed]);
        }
    }
}

/// The journal cannot be written: the operation stays open until the next start.
pub fn no_commit(case: Case) {
    let course = Course::of(case);
    for point in course.forward().iter().filter(|point| point.ends_with("_commit")) {
        let mut run =
            Run::of(case, &format!("no {point}"), |points| points.arm(point, Action::Error, Some(1)));
        let (job, _) = run.at_rest();
        let last = point.ends_with("after_commit") && course.points.last() == Some(point);
        assert_eq!(job.state.is_open(), !last, "{point}");
        run.crash(|_| ());
        run.settles(&course, &[SagaState::Done]);
    }
}

/// No crash, but an outcome that is lost: it is looked up, and the step is done once more if need be.
pub fn lost_effect(case: Case) {
    let course = Course::of(case);
    for point in course.forward().iter().filter(|point| point.ends_with("_effect")) {
        let run = Run::of(case, &format!("unknown {point}"), |p| p.arm(point, Action::Unknown, Some(1)));
        run.settles(&course, &[SagaState::Done]);
    }
}

/// A step fails for sure, with and without its effect.
pub fn failed_effect(case: Case) {
    let course = Course::of(case);
    for point in course.forward().iter().filter(|point| point.ends_with("_effect")) {
        let step = course.step_of(point);
        let run = Run::of(case, &format!("failure {point}"), |p| p.arm(point, Action::Error, Some(1)));
        let there = point.ends_with("after_effect") && !Course::is_record(point);
        let there = there || case.is_off_at_return();
        let passed = there && course.point_of_no_return == Some(step);
        let end = match (passed, course.is_past_return(step)) {
            (true, _) => SagaState::Done,
            (false, true) => SagaState::Stuck,
            (false, false) => SagaState::Failed,
        };
        run.settles(&course, &[end]);
    }
}
