//! Verdicts on claims whose device may be gone.

use super::{claim, mdev, mdev_type, parent};
use crate::model::{Claim, HostScan, Mdev, TypeIdentity};
use crate::plan::restore::{Verdict, judge};

const A: &str = "0000:84:00.0";
const B: &str = "0000:85:00.0";

fn host(mdevs: Vec<Mdev>, available: u32) -> HostScan {
    let parents = vec![
        parent(A, None, vec![mdev_type("nvidia-1", available, 2048, 4)]),
        parent(B, None, vec![mdev_type("nvidia-1", available, 2048, 4)]),
    ];
    HostScan { parents, mdevs, findings: Vec::new() }.sorted()
}

fn verdicts(claims: &[Claim], scan: &HostScan, overdue: bool) -> Vec<String> {
    let judged = judge(claims, scan, |_| overdue);
    claims
        .iter()
        .map(|c| match &judged[&c.id] {
            Verdict::Keep => "keep".to_owned(),
            Verdict::Create => "create".to_owned(),
            Verdict::Wait(why) => format!("wait: {why}"),
            Verdict::Lost(why) => format!("lost: {why}"),
            Verdict::Foreign(why) => format!("foreign: {why}"),
        })
        .collect()
}

fn one(claim: Claim, scan: &HostScan) -> String {
    verdicts(&[claim], scan, false).remove(0)
}

#[test]
fn what_is_there_is_kept_and_a_definition_is_started() {
    assert_eq!(one(claim(1, A, "nvidia-1"), &host(vec![mdev(1, A, "nvidia-1")], 0)), "keep");
    let defined = Mdev { active: false, defined: true, ..mdev(1, A, "nvidia-1") };
    assert_eq!(one(claim(1, A, "nvidia-1"), &host(vec![defined], 1)), "create");
    let untold = Mdev { type_id: None, ..mdev(1, A, "nvidia-1") };
    assert_eq!(one(claim(1, A, "nvidia-1"), &host(vec![untold], 1)), "keep");
}

#[test]
fn others_under_the_uuid_are_left_alone() {
    let wanted = || claim(1, A, "nvidia-1");
    let elsewhere = host(vec![mdev(1, B, "nvidia-1")], 4);
    assert_eq!(
        one(wanted(), &elsewhere),
        format!("foreign: a device with its UUID is on {B}; remove that one")
    );
    let defined = Mdev { active: false, defined: true, ..mdev(1, B, "nvidia-1") };
    assert!(one(wanted(), &host(vec![defined], 4)).starts_with("foreign: a definition"));
    let other = host(vec![mdev(1, A, "nvidia-9")], 4);
    assert!(one(wanted(), &other).starts_with("foreign: the device with its UUID is a nvidia-9"));
}

#[test]
fn a_parent_that_is_not_there_is_waited_for_until_the_deadline() {
    let away = [claim(1, "0000:99:00.0", "nvidia-1")];
    let scan = host(Vec::new(), 4);
    assert_eq!(verdicts(&away, &scan, false), ["wait: parent 0000:99:00.0 is not there yet"]);
    assert!(verdicts(&away, &scan, true)[0].starts_with("lost: parent 0000:99:00.0 did not come in time"));
}

#[test]
fn a_type_that_is_gone_is_lost_at_once() {
    let scan = host(Vec::new(), 4);
    let gone = format!("lost: parent {A} does not offer nvidia-7 any more");
    assert_eq!(one(claim(1, A, "nvidia-7"), &scan), gone);
}

#[test]
fn a_type_is_known_by_its_identity() {
    let before = parent(A, None, vec![mdev_type("nvidia-1", 4, 2048, 4)]);
    let identity = Some(TypeIdentity::of(&before, &before.types[0]));
    let wanted = || Claim { identity: identity.clone(), ..claim(1, A, "nvidia-1") };
    let renumbered = crate::model::MdevType { id: "nvidia-5".parse().unwrap(), ..before.types[0].clone() };
    let drifted = crate::model::MdevType { name: Some("NVIDIA X".into()), ..before.types[0].clone() };
    let with = |t| HostScan { parents: vec![parent(A, None, vec![t])], ..HostScan::default() };
    assert_eq!(one(wanted(), &with(renumbered)), "create");
    assert!(one(wanted(), &with(drifted)).starts_with("lost: nvidia-1 is NVIDIA X now"));
}

#[test]
fn the_last_place_goes_to_the_earlier_claim() {
    let claims = [claim(1, A, "nvidia-1"), claim(2, A, "nvidia-1"), claim(3, B, "nvidia-1")];
    let want = [
        "create".to_owned(),
        format!("lost: parent {A} has no room for another NVIDIA nvidia-1"),
        "create".into(),
    ];
    assert_eq!(verdicts(&claims, &host(Vec::new(), 1), false), want);
}
