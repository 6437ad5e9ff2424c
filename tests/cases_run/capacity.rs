//! How much there is, and when there is no more.
//!
//! | case | what is right | test |
//! |---|---|---|
//! | 07 | run A before, after; 1, 3 | `a_vf_says_one_until_the_card_is_bound`, `the_simulator_agrees_with_the_card` |
//! | 07 | 2 | `a_claim_that_comes_too_late_names_the_card_and_its_size` |
//! | 07 | run B | `two_of_four_vfs_are_promised` |
//! | 08 | the table, 1 | `a_cap_trims_in_address_order`; `nova-0.conf` in `tests/config_cases` |
//! | 08 | 2, 3, 4 | `a_cap_stays_the_cap` |
//! | 09 | the table, 1, 2, 3 | `nothing_available_is_not_nothing_there` |
//! | 09 | 4 | `an_idle_device_is_given_and_then_new_ones` |
//! | 20 | run 1 | `two_slices_come_from_two_cards` |
//! | 20 | runs 2, 3a, 3b; 1, 2 | `two_slices_of_one_card` |
//! | 20 | run 2, nothing configured | `a_series_that_the_vendor_refuses_is_named` |

use mdevirt::host::NodeDevices;
use mdevirt::host::sim::{Change, ForeignMdev};
use mdevirt::model::{FaultKind, SagaState};
use mdevirt::saga::{Action, FailPoints};
use mdevirt::service::api::UseCases;

use crate::listing::{Listing, nodedev_dir};
use crate::setup::{Case, Setup, claim_request, from_sysfs, room};

const A40: &str = "07-sriov-homogeneous-collapse";

async fn a40(file: &str, config: &str) -> Case {
    Setup::new(A40).on(from_sysfs(A40, file)).nova(config).start().await
}

/// 07: the listing after the create is what the simulator shows after that create.
#[tokio::test]
async fn the_simulator_agrees_with_the_card() {
    let host = a40("sysfs-before.txt", "nova-mixed.conf").await;
    host.claimed("resources:VGPU=1").await;
    assert_eq!(room(&host.scan().await), room(&from_sysfs(A40, "sysfs-after.txt").scan));
}

/// 07, run A, on the two listings and across a create.
#[tokio::test]
async fn a_vf_says_one_until_the_card_is_bound() {
    let host = a40("sysfs-before.txt", "nova-mixed.conf").await;
    let all = ["0000:e8:00.4 VGPU 1", "0000:e8:00.5 VGPU 1", "0000:e8:00.6 VGPU 1", "0000:e8:00.7 VGPU 1"];
    assert_eq!(host.totals().await, all);
    let types: Vec<String> =
        host.service().inventory().await.unwrap().iter().map(|r| r.mdev_type.to_string()).collect();
    assert_eq!(types, ["nvidia-560", "nvidia-558", "nvidia-558", "nvidia-560"]);
    let findings = host.findings().await;
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(host.finds("0000:e8:00.0", &["2 GiB", "4 GiB", "one size"]).await, "{findings:?}");

    let held = host.claimed("resources:VGPU=1").await;
    assert_eq!(held.claims[0].parent.to_string(), "0000:e8:00.4");
    let bound = ["0000:e8:00.4 VGPU 1", "0000:e8:00.7 VGPU 1"];
    assert_eq!(host.totals().await, bound);
    assert_eq!((host.free("0000:e8:00.4").await, host.free("0000:e8:00.7").await), (0, 1));

    host.done(host.service().release(&held.uuid.to_string(), None).await).await;
    assert_eq!(host.totals().await, all);

    let after = a40("sysfs-after.txt", "nova-mixed.conf").await;
    assert_eq!(after.totals().await, bound);
    assert_eq!((after.free("0000:e8:00.4").await, after.free("0000:e8:00.7").await), (0, 1));
    let status = after.device("0000:e8:00.5").await.status;
    assert!(status.contains("A40-4Q") && status.contains("0000:e8:00.0"), "{status}");
}

/// 07, 2: granted on the free card, carried out on the bound one.
#[tokio::test]
async fn a_claim_that_comes_too_late_names_the_card_and_its_size() {
    let host = Setup::new(A40)
        .on(from_sysfs(A40, "sysfs-before.txt"))
        .nova("nova-mixed.conf")
        .edit("[mdev.\"nvidia-558\"]", "[mdev.\"nvidia-558\"]\ntraits = [\"CUSTOM_SMALL\"]")
        .start()
        .await;
    let point = "claim.make_device.0.before_effect";
    host.points.arm(point, Action::Pause, None);
    let flavor = "resources:VGPU=1,trait:CUSTOM_SMALL=required";
    let granted = host.service().claim(claim_request(flavor)).await.unwrap();
    FailPoints::reached(&host.points, point).await;
    let four_gib = ForeignMdev {
        uuid: "da808bd5-fe1c-4a2f-a358-ea8a7761df7d".parse().unwrap(),
        parent: "0000:e8:00.4".parse().unwrap(),
        type_id: "nvidia-560".parse().unwrap(),
    };
    host.sim.change(Change::ForeignMdev(four_gib)).await.unwrap();
    let before = host.scan().await;
    host.points.release(point);

    let job = host.ended(granted.job).await;
    assert_eq!(job.state, SagaState::Failed);
    let result = job.result.unwrap();
    assert_eq!(result["kind"], "NoCapacity");
    let text = result["message"].as_str().unwrap();
    for word in ["0000:e8:00.0", "bound", "4096 MiB", "A40-2Q"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    host.assert_untouched(&before).await;
}

/// 07, run B: lowest address first, in whatever order the functions are listed.
#[tokio::test]
async fn two_of_four_vfs_are_promised() {
    let listings = || from_sysfs(A40, "sysfs-before.txt");
    for listing in [listings(), listings().backwards()] {
        let host = Setup::new(A40).on(listing).nova("nova-24q.conf").start().await;
        assert_eq!(host.totals().await, ["0000:e8:00.4 VGPU 1", "0000:e8:00.5 VGPU 1"]);
        assert_eq!(host.findings().await, [""; 0]);
        for _ in 0..2 {
            host.claimed("resources:VGPU=1").await;
        }
        let (kind, text) = host.refused("resources:VGPU=1").await;
        assert_eq!(kind, FaultKind::NoCapacity);
        assert!(
            text.contains("0000:e8:00.6: card 0000:e8:00.0 is full: it carries 2 NVIDIA A40-24Q"),
            "{text}"
        );
    }
}

const CAPPED: &str = "08-cap-below-parent-room";

/// 08
#[tokio::test]
async fn a_cap_trims_in_address_order() {
    let host = Setup::new(CAPPED).nova("nova-4.conf").start().await;
    assert_eq!(host.totals().await, ["0000:3b:00.0 VGPU 4"]);
    let listings = || Listing::of_files(&nodedev_dir(CAPPED));
    for listing in [listings(), listings().backwards()] {
        let host = Setup::new(CAPPED).on(listing).nova("nova-20.conf").start().await;
        assert_eq!(host.totals().await, ["0000:3b:00.0 VGPU 16", "0000:86:00.0 VGPU 4"]);
        // Cards are filled evenly, so what exists moves the split; the sum is the cap all the way.
        for n in 0..20 {
            let records = host.service().inventory().await.unwrap();
            assert_eq!(records.iter().map(|r| r.total).sum::<u32>(), 20, "after {n} claims");
            assert!(records.iter().all(|r| r.max_unit <= r.total), "{records:?}");
            host.claimed("resources:VGPU=1").await;
        }
        let (kind, text) = host.refused("resources:VGPU=1").await;
        assert_eq!(kind, FaultKind::NoCapacity);
        assert!(text.contains("max_instances = 20"), "{text}");
    }
}

/// 08, 2 and 3
#[tokio::test]
async fn a_cap_stays_the_cap() {
    let host = Setup::new(CAPPED).nova("nova-4.conf").start().await;
    for _ in 0..4 {
        host.claimed("resources:VGPU=1").await;
        assert_eq!(host.totals().await, ["0000:3b:00.0 VGPU 4"]);
    }
    let offered = host.scan().await.parents[0].types.iter().map(|t| t.available_instances).max();
    assert_eq!(offered, Some(12), "the driver would make more");
    let (kind, text) = host.refused("resources:VGPU=1").await;
    assert_eq!(kind, FaultKind::NoCapacity);
    let reason = text.lines().find(|line| line.starts_with("0000:3b:00.0")).unwrap();
    assert!(reason.contains("max_instances = 4"), "{text}");
    assert!(!reason.contains("driver"), "{text}");
}

const P40S: &str = "09-zero-available-zero-total";

async fn p40s() -> Case {
    Setup::new(P40S).nova("nova.conf").remembered().start().await
}

/// 09
#[tokio::test]
async fn nothing_available_is_not_nothing_there() {
    let host = p40s().await;
    assert_eq!(host.totals().await, ["0000:03:00.0 VGPU 3", "0000:82:00.0 VGPU 3"]);
    assert_eq!(host.record("0000:03:00.0").await.used, 3);
    assert!(host.record("0000:03:00.0").await.max_unit <= 3);
    let status = host.device("0000:02:00.0").await.status;
    for word in ["P40-1Q", "1024 MiB", "GRID P40-8Q"] {
        assert!(status.contains(word), "{word}: {status}");
    }
    assert_eq!(host.device("0000:03:00.0").await.status, "ok");
}

/// 09, 4
#[tokio::test]
async fn an_idle_device_is_given_and_then_new_ones() {
    let host = p40s().await;
    let mut given = Vec::new();
    for _ in 0..3 {
        let held = host.claimed("resources:VGPU=1").await;
        assert_eq!(held.claims[0].parent.to_string(), "0000:82:00.0");
        given.push(held.claims[0].uuid);
    }
    assert!(given.contains(&"c0eaede1-d1b7-46df-8289-6edbefc1036d".parse().unwrap()), "{given:?}");
    given.sort();
    given.dedup();
    assert_eq!(given.len(), 3);
    let (kind, text) = host.refused("resources:VGPU=1").await;
    assert_eq!(kind, FaultKind::NoCapacity);
    assert!(text.contains("0000:02:00.0: ") && text.contains("GRID P40-1Q"), "{text}");
    assert_eq!(host.totals().await, ["0000:03:00.0 VGPU 3", "0000:82:00.0 VGPU 3"]);
}

const TWO_T4: &str = "20-two-vgpus-one-pgpu";

/// What the driver says of a type, as the operator writes it down.
fn several_per_vm(run: &str) -> Option<bool> {
    let table = crate::setup::case_text("20-two-vgpus-one-pgpu/multi-vgpu.tsv");
    let row = table.lines().find(|line| line.starts_with(&format!("{run}\t"))).unwrap();
    match row.rsplit('\t').next().unwrap() {
        "unknown" => None,
        "0" => Some(false),
        "1" => Some(true),
        other => panic!("{other}"),
    }
}

/// 20, run 1
#[tokio::test]
async fn two_slices_come_from_two_cards() {
    assert_eq!(several_per_vm("1"), None);
    for two in ["resources:VGPU=2", "resources1:VGPU=1,resources2:VGPU=1"] {
        let host = Setup::new(TWO_T4).nova("nova-2q.conf").start().await;
        let held = host.claimed(two).await;
        let mut parents: Vec<String> = held.claims.iter().map(|c| c.parent.to_string()).collect();
        parents.sort();
        assert_eq!(parents, ["0000:3b:00.0", "0000:86:00.0"], "{two}");
        let (kind, text) = host.refused("resources:VGPU=3").await;
        assert_eq!(kind, FaultKind::NoCapacity);
        for parent in ["0000:3b:00.0", "0000:86:00.0"] {
            let reason = text.lines().find(|line| line.starts_with(parent)).unwrap();
            assert!(reason.contains("one slice"), "{text}");
        }
        assert!(text.contains('3'), "{text}");
        for record in host.service().inventory().await.unwrap() {
            assert_eq!((record.total, record.max_unit, record.used), (8, 1, 1));
        }
    }
}

/// 20, runs 2, 3a and 3b
#[tokio::test]
async fn two_slices_of_one_card() {
    for (run, file, type_id, label) in [
        ("2", "nova-2b-one-card.conf", "nvidia-223", "GRID T4-2B"),
        ("3a", "nova-2q-one-card.conf", "nvidia-231", "GRID T4-2Q"),
        ("3b", "nova-2q-one-card.conf", "nvidia-231", "GRID T4-2Q"),
    ] {
        let several = several_per_vm(run).unwrap();
        let table = format!("[mdev.\"{type_id}\"]");
        let host = Setup::new(TWO_T4)
            .nova(file)
            .edit(&table, &format!("{table}\nseveral_per_vm = {several}"))
            .start()
            .await;
        let record = host.record("0000:3b:00.0").await;
        assert_eq!((record.total, record.max_unit), (8, if several { 8 } else { 1 }), "run {run}");
        for two in ["resources:VGPU=2", "resources1:VGPU=2", "resources1:VGPU=1,resources2:VGPU=1"] {
            if several {
                let held = host.claimed(two).await;
                assert_eq!(held.claims.len(), 2);
                assert!(held.claims.iter().all(|c| c.parent.to_string() == "0000:3b:00.0"));
            } else {
                let (kind, text) = host.refused(two).await;
                assert_eq!(kind, FaultKind::NoCapacity, "run {run}: {two}");
                assert!(text.contains("0000:3b:00.0: "), "{text}");
                let reason = text.lines().find(|line| line.starts_with("0000:3b:00.0")).unwrap();
                assert!(reason.contains(label) || reason.contains("one slice"), "run {run}: {two}: {text}");
                assert_eq!(host.scan().await.mdevs.len(), 0);
            }
        }
    }
}

/// A foreign slice of another size on a card is named, also where the card's functions are its VFs.
#[tokio::test]
async fn every_function_is_read_again() {
    let host = a40("sysfs-before.txt", "nova-24q.conf").await;
    let big = |n: u8| ForeignMdev {
        uuid: format!("da808bd5-fe1c-4a2f-a358-ea8a7761df7{n}").parse().unwrap(),
        parent: format!("0000:e8:00.{n}").parse().unwrap(),
        type_id: "nvidia-565".parse().unwrap(),
    };
    for n in [6, 7] {
        host.sim.change(Change::ForeignMdev(big(n))).await.unwrap();
    }
    // Both places are taken, by somebody else and elsewhere than promised.
    assert_eq!(host.totals().await, ["0000:e8:00.6 VGPU 1", "0000:e8:00.7 VGPU 1"]);
    assert_eq!(host.free("0000:e8:00.6").await, 0);
    host.refused("resources:VGPU=1").await;
    host.sim.remove(big(6).uuid, &big(6).parent).await.unwrap();
    assert_eq!(host.totals().await, ["0000:e8:00.4 VGPU 1", "0000:e8:00.7 VGPU 1"]);
}

/// 20, run 2 as the file is: the vendor's rule needs no word of the operator, who can overrule it all the same.
#[tokio::test]
async fn a_series_that_the_vendor_refuses_is_named() {
    let host = Setup::new(TWO_T4).nova("nova-2b-one-card.conf").start().await;
    let record = host.record("0000:3b:00.0").await;
    assert_eq!((record.total, record.max_unit), (8, 1));
    for two in ["resources:VGPU=2", "resources1:VGPU=2", "resources1:VGPU=1,resources2:VGPU=1"] {
        let (kind, text) = host.refused(two).await;
        assert_eq!(kind, FaultKind::NoCapacity, "{two}");
        let reason = text.lines().find(|line| line.starts_with("0000:3b:00.0: ")).unwrap();
        assert!(reason.contains("one slice") && reason.contains("GRID T4-2B is B-series"), "{two}: {text}");
        assert_eq!(host.scan().await.mdevs.len(), 0);
    }
    let unknown = Setup::new(TWO_T4).nova("nova-2q-one-card.conf").start().await;
    let (_, text) = unknown.refused("resources1:VGPU=2").await;
    for word in ["GRID T4-2Q is Q-series", "driver release", "[mdev.\"nvidia-231\"] several_per_vm = true"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let overruled = Setup::new(TWO_T4)
        .nova("nova-2b-one-card.conf")
        .edit("[mdev.\"nvidia-223\"]", "[mdev.\"nvidia-223\"]\nseveral_per_vm = true")
        .start()
        .await;
    assert_eq!(overruled.claimed("resources1:VGPU=2").await.claims.len(), 2);
}
