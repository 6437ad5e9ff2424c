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
#[path = "saga_matrix/exact.rs"]
mod exact;
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
    ($($name:ident: $op:ident of $devices:literal $given:ident $(to $to:literal)?: $($group:ident)*;)+) => {
        $(mod $name {
            pub const CASE: crate::case::Case = crate::case::Case {
                $(to: $to,)?
                ..crate::case::Case::of(
                    mdevirt::model::OpKind::$op,
                    $devices,
                    crate::case::Given::$given,
                )
            };
            pub const GROUPS: &[&str] = &[$(stringify!($group)),*];
            matrix!(@tests crash: before_anything);
            matrix!(@tests away: away_before);
            $(matrix!(@$group);)*
        })+

        const CASES: &[case::Case] = &[$($name::CASE),+];
        const GROUPS: &[(OpKind, &[&str])] = &[$((OpKind::$op, $name::GROUPS)),+];
    };
    // It has steps.
    (@steps) => {
        matrix!(@brief);
        matrix!(@tests crash: twice, at_once_again, then_failure, no_commit);
        matrix!(@tests host_fault: failed_calls);
        matrix!(@tests guest: guest_moves);
        matrix!(@tests away: away_in_a_step);
        matrix!(@tests unwind: crash_in_undo_twice, lost_undo, failed_undo);
    };
    // It differs from another row in what its steps find, not in the steps themselves.
    (@brief) => {
        matrix!(@tests crash: at_every_point, lost_effect, failed_effect);
        matrix!(@tests repeat: steps_repeated);
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
        steps.extend(course.steps.iter().map(|step| file_of(step.split('.').nth(1).unwrap()).to_owned()));
    }
    assert_eq!(ops.into_iter().collect::<Vec<_>>(), OpKind::ALL);
    let source = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/ops/steps")).unwrap();
    let files = source.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let all: BTreeSet<String> =
        files.filter_map(|file| Some(file.strip_suffix(".rs")?.to_owned())).filter(|f| f != "mod").collect();
    assert_eq!(steps, all);
}

/// Every operation goes through two crashes in a row, and one in its recovery, in a row of its own.
#[test]
fn every_operation_has_a_row_with_everything() {
    let full = GROUPS.iter().filter(|(_, groups)| groups.contains(&"steps")).map(|(op, _)| *op);
    assert_eq!(full.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>(), OpKind::ALL);
}

/// The file of a step, where it has not the step's name.
fn file_of(step: &str) -> &str {
    match step {
        "attach_live" | "attach_definition" | "detach_live" | "detach_definition" => "plug_device",
        "save_with_devices" => "save_domain",
        "record_decision" => "record",
        step => step,
    }
}

/// Where there is no way back any more is a promise to operators, not a detail of a script.
#[test]
fn there_is_no_way_back_behind_these_steps() {
    let mut found = BTreeSet::new();
    for case in CASES {
        let course = run::Course::of(*case);
        found.extend(course.point_of_no_return.map(|index| course.steps[index].clone()));
    }
    let known = [
        "destroy.stop_domain",
        "detach.remove_device.0",
        "live-commit.move_guest",
        "live-rollback.remove_device.0",
        "migrate-confirm.stop_domain",
        "migrate-revert.stop_domain",
        "release.remove_device.0",
        "resize-confirm.record",
        "resize-confirm.remove_device.0",
        "resize-revert.record_decision",
        "spawn.start_domain",
        "suspend.save_domain",
    ];
    assert_eq!(found.into_iter().collect::<Vec<_>>(), known);
}

matrix! {
    spawn: Spawn of 1 Fresh: steps undos;
    spawn_two: Spawn of 2 Fresh: steps undos;
    spawn_idle: Spawn of 2 Keep: steps undos;
    destroy: Destroy of 1 Fresh: steps removals;
    destroy_two: Destroy of 2 Fresh: steps removals;
    destroy_keep: Destroy of 2 Keep: brief;
    start: Start of 1 Fresh: steps undos;
    start_lost: Start of 2 Lost: steps undos;
    stop: Stop of 2 Fresh: steps;
    claim: Claim of 1 Fresh: steps;
    claim_two: Claim of 2 Fresh: steps undos;
    claim_idle: Claim of 2 Keep: brief;
    release: Release of 1 Fresh: steps removals;
    release_two: Release of 2 Fresh: steps removals;
    release_keep: Release of 2 Keep: ;
    destroy_in_a_resize: Destroy of 1 Finished to 2: brief;
    destroy_in_a_resize_to_none: Destroy of 1 Finished to 0: brief;
    suspend: Suspend of 1 Fresh: steps undos;
    suspend_two: Suspend of 2 Fresh: brief;
    resume: Resume of 1 Fresh: steps undos;
    resume_lost: Resume of 2 Lost: brief;
    reboot: Reboot of 1 Fresh: steps;
    reboot_lost: Reboot of 2 Lost: brief;
    reboot_off: Reboot of 1 Off: brief;
    rescue: Rescue of 1 Fresh: steps undos;
    rescue_off: Rescue of 2 Off: brief;
    unrescue: Unrescue of 1 Fresh: steps undos;
    unrescue_off: Unrescue of 1 Off: brief;
    rebuild: Rebuild of 1 Fresh: steps undos;
    rebuild_off: Rebuild of 2 Off: brief;
    attach: Attach of 1 Fresh: steps undos;
    attach_two: Attach of 0 Fresh to 2: brief;
    attach_first_off: Attach of 0 Off: brief;
    attach_off: Attach of 1 Off: brief;
    attach_idle: Attach of 0 Keep: brief;
    detach: Detach of 2 Fresh: steps undos removals;
    detach_last: Detach of 1 Fresh: brief;
    detach_off: Detach of 2 Off: brief;
    detach_last_off: Detach of 1 Off: brief;
    detach_keep: Detach of 1 Keep: brief;
    resize_prepare: ResizePrepare of 1 Fresh: steps undos;
    resize_prepare_more: ResizePrepare of 1 Fresh to 2: brief;
    resize_prepare_none: ResizePrepare of 1 Fresh to 0: brief;
    resize_prepare_idle: ResizePrepare of 1 Keep to 2: brief;
    resize_prepare_from_none: ResizePrepare of 0 Off to 1: brief;
    resize_finish: ResizeFinish of 1 Fresh: steps undos;
    resize_finish_more: ResizeFinish of 1 Fresh to 2: brief;
    resize_finish_fewer: ResizeFinish of 2 Off to 1: brief;
    resize_finish_none: ResizeFinish of 1 Fresh to 0: brief;
    resize_finish_from_none: ResizeFinish of 0 Fresh to 1: brief;
    resize_confirm: ResizeConfirm of 2 Fresh to 1: steps removals;
    resize_confirm_none: ResizeConfirm of 1 Off to 0: brief;
    resize_confirm_from_none: ResizeConfirm of 0 Fresh to 1: brief;
    resize_confirm_keep: ResizeConfirm of 1 Keep to 2: brief;
    resize_revert: ResizeRevert of 1 Fresh: steps undos;
    resize_revert_more: ResizeRevert of 1 Fresh to 2: brief;
    resize_revert_early: ResizeRevert of 1 Prepared to 2: brief;
    resize_revert_off: ResizeRevert of 2 Off to 1: brief;
    resize_revert_none: ResizeRevert of 1 Fresh to 0: brief;
    resize_revert_from_none: ResizeRevert of 0 Fresh to 1: brief;
    resize_revert_keep: ResizeRevert of 1 Keep to 1: brief;
    migrate_begin: MigrateBegin of 1 Fresh: steps undos;
    migrate_begin_off: MigrateBegin of 2 Off: brief;
    migrate_begin_bare: MigrateBegin of 0 Fresh: brief;
    migrate_prepare: MigratePrepare of 1 Fresh: steps undos;
    migrate_prepare_two: MigratePrepare of 2 Fresh: brief;
    migrate_prepare_idle: MigratePrepare of 1 Keep: brief;
    migrate_prepare_bare: MigratePrepare of 0 Fresh: brief;
    migrate_finish: MigrateFinish of 1 Fresh: steps undos;
    migrate_finish_off: MigrateFinish of 2 Off: brief;
    migrate_finish_bare: MigrateFinish of 0 Fresh: brief;
    migrate_confirm: MigrateConfirm of 1 Fresh: steps removals;
    migrate_confirm_bare: MigrateConfirm of 0 Fresh: brief;
    migrate_confirm_target: MigrateConfirm of 1 Finished: brief;
    migrate_revert: MigrateRevert of 1 Fresh: steps undos;
    migrate_revert_off: MigrateRevert of 2 Off: brief;
    migrate_revert_target: MigrateRevert of 2 Finished: brief;
    migrate_revert_target_early: MigrateRevert of 1 Prepared: brief;
    live_prepare: LivePrepare of 1 Fresh: steps undos;
    live_prepare_two: LivePrepare of 2 Fresh: brief;
    live_prepare_idle: LivePrepare of 1 Keep: brief;
    live_commit: LiveCommit of 1 Fresh: steps removals;
    live_commit_two: LiveCommit of 2 Fresh: brief;
    live_commit_keep: LiveCommit of 1 Keep: brief;
    live_commit_target: LiveCommit of 2 Finished: brief;
    live_rollback: LiveRollback of 1 Fresh: steps removals;
    live_rollback_two: LiveRollback of 2 Fresh: brief;
    restore: Restore of 2 Lost: steps undos;
}
