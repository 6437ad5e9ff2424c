//! Every operation, every step, every way in which it can go wrong.
//!
//! However an operation is disturbed, its instance is whole in the end, or gone, or as it was: books, devices and
//! domains agree, and nothing is there twice. An operation that is stuck is given back by destroy or release.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    unreachable_pub,
    reason = "a test program has no outside and fails by panicking"
)]

use std::collections::BTreeSet;

use mdevirt::model::OpKind;

#[path = "saga_matrix/away.rs"]
mod away;
#[path = "saga_matrix/case.rs"]
mod case;
#[path = "saga_matrix/crash.rs"]
mod crash;
#[path = "saga_matrix/guest.rs"]
mod guest;
#[path = "saga_matrix/half.rs"]
mod half;
#[path = "saga_matrix/held_database.rs"]
mod held_database;
#[path = "saga_matrix/host_fault.rs"]
mod host_fault;
#[path = "saga_matrix/intruder.rs"]
mod intruder;
#[path = "saga_matrix/repeat.rs"]
mod repeat;
#[path = "saga_matrix/run.rs"]
mod run;
#[path = "saga_matrix/unwind.rs"]
mod unwind;
#[path = "world/mod.rs"]
mod world;

/// All disturbances of one operation, each a test.
macro_rules! matrix {
    ($($name:ident: $op:ident of $devices:literal $given:ident: $($group:ident)*;)+) => {
        $(mod $name {
            pub const CASE: crate::case::Case = crate::case::Case {
                op: mdevirt::model::OpKind::$op,
                devices: $devices,
                given: crate::case::Given::$given,
            };
            matrix!(@tests crash: before_anything);
            matrix!(@tests away: away_before);
            $(matrix!(@$group);)*
        })+

        const CASES: &[case::Case] = &[$($name::CASE),+];
    };
    // It has steps.
    (@steps) => {
        matrix!(@tests crash: at_every_point, twice, at_once_again, then_failure, no_commit);
        matrix!(@tests crash: lost_effect, failed_effect);
        matrix!(@tests host_fault: failed_calls);
        matrix!(@tests repeat: steps_repeated);
        matrix!(@tests guest: guest_moves);
        matrix!(@tests away: away_in_a_step);
        matrix!(@tests unwind: crash_in_undo_twice, lost_undo, failed_undo);
    };
    // Several of them can be taken back.
    (@undos) => {
        matrix!(@tests unwind: failed_undo_then_crash);
        matrix!(@tests host_fault: failed_calls_of_undo);
        matrix!(@tests repeat: undos_repeated);
        matrix!(@tests away: away_in_an_undo);
    };
    // It removes devices.
    (@removals) => {
        matrix!(@tests host_fault: open_for_ever);
    };
    (@tests $file:ident: $($test:ident),+) => {
        $(#[test]
        fn $test() {
            crate::$file::$test(CASE);
        })+
    };
}

/// An operation or a step that is new here has to have its rows.
#[test]
fn no_operation_and_no_step_is_missing() {
    let mut ops = BTreeSet::new();
    let mut steps = BTreeSet::new();
    for case in CASES {
        ops.insert(case.op);
        let course = run::Course::of(*case);
        steps.extend(course.steps.iter().map(|step| step.split('.').nth(1).unwrap_or_default().to_owned()));
    }
    assert_eq!(ops.into_iter().collect::<Vec<_>>(), OpKind::ALL);
    let source = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/ops/steps")).unwrap();
    let files = source.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let all: BTreeSet<String> =
        files.filter_map(|file| Some(file.strip_suffix(".rs")?.to_owned())).filter(|f| f != "mod").collect();
    assert_eq!(steps, all);
}

/// Where there is no way back any more is a promise to operators, not a detail of a script.
#[test]
fn there_is_no_way_back_behind_these_steps() {
    let mut found = BTreeSet::new();
    for case in CASES {
        let course = run::Course::of(*case);
        found.extend(course.point_of_no_return.map(|index| course.steps[index].clone()));
    }
    let known = ["destroy.stop_domain", "release.remove_device.0", "spawn.start_domain"];
    assert_eq!(found.into_iter().collect::<Vec<_>>(), known);
}

matrix! {
    spawn: Spawn of 1 Fresh: steps undos;
    spawn_two: Spawn of 2 Fresh: steps undos;
    spawn_idle: Spawn of 2 Keep: steps undos;
    destroy: Destroy of 1 Fresh: steps removals;
    destroy_two: Destroy of 2 Fresh: steps removals;
    destroy_keep: Destroy of 2 Keep: steps;
    start: Start of 1 Fresh: steps undos;
    start_lost: Start of 2 Lost: steps undos;
    stop: Stop of 2 Fresh: steps;
    claim: Claim of 1 Fresh: steps;
    claim_two: Claim of 2 Fresh: steps undos;
    claim_idle: Claim of 2 Keep: steps undos;
    release: Release of 1 Fresh: steps removals;
    release_two: Release of 2 Fresh: steps removals;
    release_keep: Release of 2 Keep: ;
}
