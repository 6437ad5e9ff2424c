//! Steps and undos that are done twice, by hand: what a restart may do in the worst case.

use mdevirt::model::SagaState;
use mdevirt::saga::Seen;

use crate::case::{Case, Given};
use crate::run::{Course, Run, picture};

/// The operation of that case, held before its first step.
fn held(course: &Course, what: &str) -> Run {
    Run::up_to(course.case, what, &format!("{}.before_effect", course.steps[0]), |_| ())
}

/// Each step twice; the next daemon finds all of them done.
pub fn steps_repeated(case: Case) {
    let course = Course::of(case);
    let mut run = held(&course, "each step twice");
    let script = run.script();
    run.on(async |_| {
        for step in &script.steps {
            let first = step.run().await.unwrap();
            assert_eq!(step.run().await.unwrap(), first, "{step:?}");
            let seen = step.seen().await.unwrap();
            match step.name() {
                // libvirt writes a definition in its own words; books are not seen on the host.
                "redefine_domain" | "record" | "record_decision" => assert_eq!(seen, Seen::Partial),
                "save_with_devices" => assert_eq!(seen, Seen::Absent),
                _ => assert_eq!(seen, Seen::Done(first), "{step:?}"),
            }
        }
    });
    run.crash(|_| ());
    run.settles(&course, &[SagaState::Done]);
}

/// Each undo twice; then the host is as it was, and the operation can be carried out all the same.
pub fn undos_repeated(case: Case) {
    let course = Course::of(case);
    let mut run = held(&course, "each undo twice");
    let script = run.script();
    let before = run.before.clone();
    run.on(async |world| {
        let mut outs = Vec::new();
        let reach = &script.steps[..=course.last_undone()];
        // A device that is removed stays so.
        let back: Vec<_> = reach.iter().filter(|step| step.name() != "remove_device").collect();
        for step in &back {
            outs.push(step.run().await.unwrap());
        }
        for (step, out) in back.iter().zip(&outs).rev() {
            step.undo(Some(out)).await.unwrap();
            step.undo(None).await.unwrap();
        }
        let end = picture(world).await;
        assert_eq!((&end.domains, &end.saved), (&before.domains, &before.saved));
        // A device that was made again stays.
        if case.given != Given::Lost {
            assert_eq!(end.scan, before.scan);
        }
    });
    run.crash(|_| ());
    run.settles(&course, &[SagaState::Done]);
}
