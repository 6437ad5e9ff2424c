//! libvirt goes away in the middle of a step and stays away: the operation waits, says so, and goes on when it is back.

use mdevirt::host::sim::{Call, FailKind, FailRule};
use mdevirt::model::{FaultKind, OpKind, SagaState};
use mdevirt::saga::Action;

use crate::case::{Case, Given};
use crate::run::{Course, Run, fresh, life, picture};

fn gone_from(nth: u32) -> FailRule {
    FailRule { call: Call::Any, parent: None, instance: None, nth, times: 0, kind: FailKind::Unreachable }
}

fn goes_away(run: &Run, nth: u32) {
    run.world().sim.faults().fail(gone_from(nth));
}

/// From each call of each step on, with and without a crash meanwhile.
pub fn away_in_a_step(case: Case) {
    let course = Course::of(case);
    for step in course.steps.iter().filter(|step| !Course::is_record(step)) {
        let point = format!("{step}.before_effect");
        for nth in 1.. {
            let mut run = Run::up_to(case, &format!("away from call {nth} on"), &point, |_| ());
            run.idle();
            goes_away(&run, nth);
            run.release(&point);
            let waited = run.waits();
            if waited && nth % 2 == 0 {
                run.crash(|_| ());
                assert!(run.waits(), "{step} {nth}");
            }
            run.world().sim.heal();
            run.settles(&course, &[SagaState::Done]);
            if !waited {
                assert!(nth > 1, "{step} needs no libvirt");
                break;
            }
        }
    }
}

/// From the beginning of each undo on.
pub fn away_in_an_undo(case: Case) {
    let course = Course::of(case);
    let last = course.last_undone();
    for step in course.steps.iter().take(last) {
        let (failing, point) =
            (format!("{}.before_effect", course.steps[last]), format!("{step}.before_undo"));
        let mut run = Run::up_to(case, &format!("{failing}, away"), &point, |points| {
            points.arm(&failing, Action::Error, Some(1));
        });
        goes_away(&run, 1);
        run.release(&point);
        if run.waits() {
            run.crash(|_| ());
            assert!(run.waits(), "{step}");
        }
        run.world().sim.heal();
        run.settles(&course, &[SagaState::Failed]);
    }
}

/// Before it begins. What has to look at the host is refused, and nothing is booked; everything else is in the books, so it
/// is accepted, waits, and goes on when libvirt is back.
pub fn away_before(case: Case) {
    use OpKind as O;
    match case.op {
        O::Spawn | O::Claim | O::Attach | O::Detach | O::Suspend | O::Resume | O::Rescue | O::Unrescue => {
            refused_before(case);
        }
        O::Start | O::Reboot | O::Rebuild | O::ResizePrepare | O::ResizeFinish => refused_before(case),
        O::MigrateBegin | O::MigratePrepare | O::LivePrepare | O::LiveCommit => refused_before(case),
        O::ResizeRevert if case.given != Given::Prepared => refused_before(case),
        _ => waits_from_the_beginning(case),
    }
}

fn waits_from_the_beginning(case: Case) {
    let course = Course::of(case);
    let Some(first) =
        course.steps.iter().find(|step| !Course::is_record(step)).map(|step| format!("{step}.before_effect"))
    else {
        // It is all in the books.
        let run = Run::of(case, "away before it begins", |_| ());
        goes_away(&run, 1);
        run.rest();
        run.world().sim.heal();
        run.settles(&course, &[SagaState::Done]);
        return;
    };
    let run = Run::up_to(case, "away before it begins", &first, |_| ());
    goes_away(&run, 1);
    run.release(&first);
    assert!(run.waits(), "{case:?}");
    run.world().sim.heal();
    run.settles(&course, &[SagaState::Done]);
}

fn refused_before(case: Case) {
    life().block_on(async {
        let world = fresh(case).await;
        let before = picture(&world).await;
        world.sim.faults().fail(gone_from(1));
        let fault = case.begin(&world).await.unwrap_err();
        world.sim.heal();
        assert_eq!(fault.kind, FaultKind::HostUnreachable, "{fault}");
        assert_eq!(picture(&world).await, before);
    });
}
