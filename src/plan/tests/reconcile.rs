//! One table row for each kind of difference.

use std::collections::BTreeSet;

use super::{addr, claim, mdev, mdev_type, own, parent};
use crate::model::{
    Baggage, Claim, ClaimRole, ClaimState, DomainOwner, HostScan, Instance, InstanceUuid, Mdev, MdevUuid,
    Move, MoveKind, MovePhase, OwnDevice,
};
use crate::plan::reconcile::{Compared, DomainDevices, differences};
use uuid::Uuid;

const A: &str = "0000:84:00.0";
const B: &str = "0000:85:00.0";
const T: &str = "nvidia-1";

/// Everything that is compared; the default is an empty host with two parents.
#[derive(Default)]
struct Case {
    mdevs: Vec<Mdev>,
    instances: Vec<Instance>,
    claims: Vec<Claim>,
    own: Vec<OwnDevice>,
    moves: Vec<Move>,
    domains: Vec<DomainDevices>,
    busy: BTreeSet<InstanceUuid>,
    keep_idle: bool,
}

impl Case {
    fn found(&self) -> Vec<String> {
        let parents = [A, B].map(|at| parent(at, None, vec![mdev_type(T, 2, 2048, 4)]));
        let scan = HostScan { parents: parents.into(), mdevs: self.mdevs.clone(), findings: Vec::new() };
        let compared = Compared {
            scan: &scan.sorted(),
            instances: &self.instances,
            claims: &self.claims,
            own: &self.own,
            moves: &self.moves,
            domains: &self.domains,
            busy: &self.busy,
            keep_idle: self.keep_idle,
        };
        let shown = |n: Option<MdevUuid>| n.map_or(0, |u| u.0.as_u128());
        let found = differences(compared);
        found.iter().map(|d| format!("{} {} {}", d.kind, shown(d.uuid), d.action)).collect()
    }

    /// An instance with one device that is in use, everything in order but for the device itself.
    fn held(n: u128, at: &str) -> Self {
        let claim = Claim { state: ClaimState::InUse, ..claim(n, at, T) };
        Self {
            instances: vec![instance(claim.instance)],
            domains: vec![domain(claim.instance, &[n])],
            own: vec![own(n, at, T)],
            claims: vec![claim],
            ..Self::default()
        }
    }
}

fn instance(uuid: InstanceUuid) -> Instance {
    Instance {
        uuid,
        name: "web-01".into(),
        owner: DomainOwner::Mdevirt,
        request_digest: String::new(),
        flavor: None,
        created_usec: 0,
    }
}

fn domain(uuid: InstanceUuid, devices: &[u128]) -> DomainDevices {
    let devices = devices.iter().map(|n| MdevUuid(Uuid::from_u128(*n))).collect();
    DomainDevices { uuid, name: "web-01".into(), devices: Some(devices) }
}

fn stranger(devices: &[u128]) -> DomainDevices {
    domain(InstanceUuid(Uuid::from_u128(9999)), devices)
}

fn defined(n: u128, at: &str) -> Mdev {
    Mdev { active: false, defined: true, ..mdev(n, at, T) }
}

#[test]
fn a_host_in_order_has_no_difference() {
    assert_eq!(Case { mdevs: vec![mdev(1, A, T)], ..Case::held(1, A) }.found(), [""; 0]);
}

#[test]
fn devices_of_claims() {
    let rows: [(Vec<Mdev>, &[&str]); 7] = [
        (vec![], &["missing 1 make"]),
        (vec![defined(1, A)], &["inactive 1 start"]),
        (vec![mdev(1, A, "nvidia-9")], &["wrong-type 1 none"]),
        (vec![mdev(1, B, T)], &["wrong-parent 1 none", "foreign 1 none"]),
        (vec![mdev(1, A, T), defined(1, B)], &["duplicate-uuid 1 none", "foreign 1 none"]),
        (vec![defined(1, A), defined(1, B)], &["inactive 1 none", "duplicate-uuid 1 none", "foreign 1 none"]),
        (vec![mdev(1, A, T), mdev(7, B, T)], &["foreign 7 none"]),
    ];
    for (mdevs, want) in rows {
        assert_eq!(Case { mdevs: mdevs.clone(), ..Case::held(1, A) }.found(), want, "{mdevs:?}");
    }
}

#[test]
fn a_device_that_cannot_be_made_is_only_told() {
    let away = Case::held(1, "0000:99:00.0");
    assert_eq!(away.found(), ["missing 1 none"]);
}

#[test]
fn an_instance_at_work_is_passed_over() {
    let mut case = Case::held(1, A);
    case.busy.insert(case.claims[0].instance);
    case.domains.clear();
    assert_eq!(case.found(), [""; 0]);
}

#[test]
fn devices_of_ours_that_nobody_holds() {
    let idle = || Case { mdevs: vec![mdev(1, A, T)], own: vec![own(1, A, T)], ..Case::default() };
    assert_eq!(idle().found(), ["orphan 1 remove"]);
    assert_eq!(Case { keep_idle: true, ..idle() }.found(), [""; 0]);
    assert_eq!(Case { keep_idle: true, mdevs: vec![defined(1, A)], ..idle() }.found(), ["orphan 1 remove"]);
    assert_eq!(Case { domains: vec![stranger(&[1])], ..idle() }.found(), ["orphan 1 none"]);
    let unread = DomainDevices { devices: None, ..stranger(&[]) };
    assert_eq!(Case { domains: vec![unread], ..idle() }.found(), ["orphan 1 none"]);
    assert_eq!(Case { mdevs: vec![], ..idle() }.found(), ["orphan 1 forget"]);
    let away = Case { own: vec![own(1, "0000:99:00.0", T)], ..Case::default() };
    assert_eq!(away.found(), [""; 0]);
    let orphan = Mdev { parent_missing: true, ..defined(1, "0000:99:00.0") };
    assert_eq!(Case { mdevs: vec![orphan], ..away }.found(), ["orphan 1 none"]);
}

#[test]
fn devices_of_others_are_told_whatever_they_are() {
    let case = Case { mdevs: vec![mdev(7, A, T), defined(8, B)], ..Case::default() };
    assert_eq!(case.found(), ["foreign 7 none", "foreign 8 none"]);
}

#[test]
fn a_domain_that_names_what_nobody_knows() {
    let case = Case { domains: vec![stranger(&[5, 7])], mdevs: vec![mdev(7, A, T)], ..Case::default() };
    assert_eq!(case.found(), ["foreign 7 none", "unknown-uuid 5 none"]);
}

#[test]
fn claims_that_no_operation_goes_on_with() {
    let there = || Case { mdevs: vec![mdev(1, A, T)], ..Case::held(1, A) };
    let with = |change: fn(&mut Case)| {
        let mut case = there();
        change(&mut case);
        case.found()
    };
    assert_eq!(with(|c| c.domains.clear()), ["stale-claim 0 none"]);
    assert_eq!(with(|c| c.claims[0].state = ClaimState::Releasing), ["stale-claim 1 none"]);
    assert_eq!(with(|c| c.claims[0].role = ClaimRole::Incoming), ["stale-claim 1 none"]);
    let on_the_way = |c: &mut Case| {
        let moving = |kind| Move {
            instance: c.claims[0].instance,
            kind,
            phase: MovePhase::Prepared,
            baggage: Baggage::default(),
        };
        c.moves = vec![moving(MoveKind::In)];
        c.claims[0].role = ClaimRole::Incoming;
        c.domains.clear();
    };
    assert_eq!(with(on_the_way), [""; 0]);
    let callers = |c: &mut Case| {
        c.instances[0].owner = DomainOwner::Caller;
        c.domains.clear();
    };
    assert_eq!(with(callers), [""; 0]);
    assert_eq!(addr(A), there().claims[0].parent);
}
