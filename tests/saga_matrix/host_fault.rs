//! Every call that a step makes to the host fails in every way, on the way forward and in the undo.

use mdevirt::host::sim::{Call, FailKind, FailRule};
use mdevirt::model::SagaState;
use mdevirt::saga::Action;

use crate::case::Case;
use crate::run::{Course, Run};

const CALLS: [Call; 13] = [
    Call::Scan,
    Call::Find,
    Call::Create,
    Call::Remove,
    Call::Domains,
    Call::Define,
    Call::Undefine,
    Call::Start,
    Call::Stop,
    Call::Save,
    Call::Attach,
    Call::Detach,
    Call::Migrate,
];

/// The effect may be there or not, or libvirt was away for a moment: never a reason to fail.
const DOUBTS: [FailKind; 3] = [FailKind::AnswerLost, FailKind::OutcomeUnknown, FailKind::Unreachable];

const REFUSALS: [FailKind; 7] = [
    FailKind::NotFound,
    FailKind::InUse,
    FailKind::NoRoom,
    FailKind::InvalidXml,
    FailKind::Unreadable,
    FailKind::NotSupported,
    FailKind::Refused,
];

fn rule(call: Call, nth: u32, times: u32, kind: FailKind) -> FailRule {
    FailRule { call, parent: None, instance: None, nth, times, kind }
}

/// Calls that only look.
fn looks(call: Call) -> bool {
    matches!(call, Call::Scan | Call::Find | Call::Domains)
}

/// Lets the operation go on from one point to another with one rule of failure in force; false if no call fell under it.
fn with_rule(run: &Run, from: &str, to: &str, rule: FailRule) -> bool {
    run.idle();
    run.world().points.arm(to, Action::Pause, Some(1));
    run.world().sim.faults().fail(rule);
    run.release(from);
    run.comes_to(to);
    run.idle();
    let fell = run.world().sim.faults().failed_calls() > 0;
    run.world().sim.heal();
    run.release(to);
    fell
}

/// Visits every call of the step that begins at the point, the first of each kind with every failure: `judge` lets one run
/// go on under the rule it is given.
fn each_call(judge: impl Fn(FailRule) -> bool) -> u32 {
    let mut visited = 0;
    for call in CALLS {
        for nth in 1.. {
            if !judge(rule(call, nth, 1, DOUBTS[0])) {
                break;
            }
            // The last of the counted calls may be the one with which the service follows the domain, and then it
            // depends on the moment whether there is one: the outcome is the same.
            let first = nth == 1;
            for kind in
                DOUBTS[1..].iter().chain(&REFUSALS).filter(|kind| first || **kind == FailKind::Refused)
            {
                judge(rule(call, nth, 1, *kind));
            }
            visited += 1;
        }
    }
    visited
}

/// Every call of every step.
pub fn failed_calls(case: Case) {
    let course = Course::of(case);
    for (index, step) in course.steps.iter().enumerate().filter(|(_, step)| !Course::is_record(step)) {
        let (from, to) = (format!("{step}.before_effect"), format!("{step}.after_commit"));
        let visited = each_call(|rule| {
            let run = Run::up_to(case, &format!("{rule:?}"), &from, |_| ());
            let (call, kind) = (rule.call, rule.kind);
            let fell = with_rule(&run, &from, &to, rule);
            let failed = if course.is_past_return(index) { SagaState::Stuck } else { SagaState::Failed };
            let waited = call == Call::Remove && kind == FailKind::InUse;
            // A guest that cannot be saved with its devices is saved without them.
            let passed = step == "suspend.save_with_devices" && kind == FailKind::NotSupported;
            let harmless = !fell || waited || (passed && call == Call::Save) || DOUBTS.contains(&kind);
            if harmless {
                run.settles(&course, &[SagaState::Done]);
            } else if looks(call) {
                run.settles(&course, &[SagaState::Done, failed]);
            } else {
                run.settles(&course, &[failed]);
            }
            fell
        });
        assert!(visited > 0, "{step} calls nobody");
    }
}

/// Every call of every undo, after a failure of the step behind it.
pub fn failed_calls_of_undo(case: Case) {
    let course = Course::of(case);
    let last = course.last_undone();
    for step in course.steps.iter().take(last) {
        let failing = format!("{}.before_effect", course.steps[last]);
        let (from, to) = (format!("{step}.before_undo"), format!("{step}.after_undo"));
        each_call(|rule| {
            let run = Run::up_to(case, &format!("{failing}, {rule:?}"), &from, |points| {
                points.arm(&failing, Action::Error, Some(1));
            });
            let (call, kind) = (rule.call, rule.kind);
            let fell = with_rule(&run, &from, &to, rule);
            let waited = call == Call::Remove && kind == FailKind::InUse;
            let harmless = !fell || waited || looks(call) || DOUBTS.contains(&kind);
            run.settles(&course, &[if harmless { SagaState::Failed } else { SagaState::Stuck }]);
            fell
        });
    }
}

/// A device that stays open is waited for, then reported, and given back once it is closed.
pub fn open_for_ever(case: Case) {
    let course = Course::of(case);
    let mut visited = 0;
    let removals = course.steps.iter().enumerate().filter(|(_, step)| step.contains(".remove_device"));
    for (index, step) in removals {
        let (from, to) = (format!("{step}.before_effect"), format!("{step}.after_commit"));
        let run = Run::up_to(case, "open for ever", &from, |_| ());
        assert!(with_rule(&run, &from, &to, rule(Call::Remove, 1, 0, FailKind::InUse)));
        let job = run.at_rest().0;
        let fault = job.result.as_ref().unwrap();
        let kind = fault["details"]["cause"]["kind"].as_str().or(fault["kind"].as_str());
        assert_eq!(kind, Some("DeviceInUse"), "{job:?}");
        let end = if course.is_past_return(index) { SagaState::Stuck } else { SagaState::Failed };
        run.settles(&course, &[end]);
        visited += 1;
    }
    assert!(visited > 0, "{case:?}");
}
