//! Devices and definitions of others, and those that are broken or lost.
//!
//! | case | what is right | test |
//! |---|---|---|
//! | 12 | 1, 2, 3 | `devices_of_others_are_counted_and_never_given` |
//! | 12 | 4 | `nothing_that_is_not_ours_is_removed`, `devices_of_others_are_shown_without_any_type`; the reconcile run itself is later |
//! | 12 | 5 | `a_device_of_others_is_no_instance`: no call removes a device by its UUID |
//! | 13 | 1, 2, 3, 4, 5 | `a_lost_card_stops_nobody_else`; in the hook (steps 2 and 3): later |
//! | 13 | 6 | `a_card_that_is_back_makes_its_device_startable` |
//! | 14 | 1, 2, 3, 4, 5, 6, 7 | `one_unreadable_definition` |

use mdevirt::host::Hypervisor;
use mdevirt::host::sim::Change;
use mdevirt::model::{FaultKind, FindingKind, SagaState};
use mdevirt::service::api::UseCases;

use crate::listing::{Listing, nodedev_dir};
use crate::setup::{Case, Setup, case_text, two_lives};

const OURS: &str = "3e48e69f-7dbb-4c2f-8e5f-68aa3a7d3ccf";
const LOOSE: &str = "9bc9da11";
const LAB: &str = "a455231c";

fn foreign(config: &str) -> Setup {
    Setup::new("12-foreign-mdevs")
        .nova(config)
        .domain("domains/web-01.xml", true)
        .domain("domains/lab-handmade.xml", false)
        .remembered()
}

/// 12
#[tokio::test]
async fn devices_of_others_are_counted_and_never_given() {
    let host = foreign("nova.conf").start().await;
    let record = host.record("0000:3b:00.0").await;
    assert_eq!((record.total, record.reserved, record.used, record.foreign), (8, 2, 1, 2));
    let status = host.status().await;
    let listed: Vec<(String, &str)> =
        status.foreign.iter().map(|m| (m.uuid.to_string()[..8].to_owned(), m.usage.as_str())).collect();
    assert_eq!(listed, [(LOOSE.into(), "in no domain"), (LAB.into(), "used by lab-handmade")]);
    assert_eq!(host.findings().await, [""; 0]);

    let before = host.active().await;
    for _ in 0..5 {
        let uuid = host.claimed("resources:VGPU=1").await.claims[0].uuid;
        assert!(!before.contains(&uuid), "{uuid}");
    }
    let (kind, text) = host.refused("resources:VGPU=1").await;
    assert_eq!(kind, FaultKind::NoCapacity);
    assert!(text.contains("2 foreign"), "{text}");
    assert!(host.active().await.is_superset(&before));
}

/// 12, 4: neither a start nor any operation on what is ours removes what is not, whatever is configured.
#[test]
fn nothing_that_is_not_ours_is_removed() {
    for config in ["nova.conf", "nova-empty.conf"] {
        let first = async |host: &Case| {
            host.service().reload().await.unwrap();
            host.active().await
        };
        two_lives(foreign(config), first, async |host, before| {
            assert_eq!(before.len(), 3);
            assert_eq!(host.active().await, before, "{config}");
            host.done(host.service().stop("web-01", None).await).await;
            host.done(host.service().start("web-01", None).await).await;
            assert_eq!(host.active().await, before, "{config}");
            host.done(host.service().destroy("web-01", None).await).await;
            let left = host.active().await;
            let gone: Vec<String> = before.difference(&left).map(ToString::to_string).collect();
            assert_eq!(gone, [OURS], "{config}");
            assert_eq!(host.sim.domains().await.unwrap().len(), 1, "lab-handmade stays");
        });
    }
}

/// 12, 4: an empty list of wanted types.
#[tokio::test]
async fn devices_of_others_are_shown_without_any_type() {
    let host = foreign("nova-empty.conf").start().await;
    assert_eq!(host.totals().await, [""; 0]);
    assert_eq!(host.status().await.foreign.len(), 2);
}

/// 12, 5
#[tokio::test]
async fn a_device_of_others_is_no_instance() {
    let host = foreign("nova.conf").start().await;
    let before = host.active().await;
    let loose = before.iter().find(|uuid| uuid.to_string().starts_with(LOOSE)).unwrap().to_string();
    for refused in [host.service().destroy(&loose, None).await, host.service().release(&loose, None).await] {
        let fault = refused.unwrap_err();
        assert_eq!(fault.kind, FaultKind::NoSuchInstance);
        assert!(fault.message.contains(&loose), "{fault}");
    }
    assert_eq!(host.active().await, before);
}

const BOOTED: &str = "13-inactive-definition-missing-parent";
const LOST: &str = "de096639-f9f2-4a2e-9f7d-dd82bbf293dc";
const WANTED: &str = "18e61a9a-0df6-4087-ae07-a5d738020e99";
const MANUAL: &str = "e4cd18c5-be8e-488a-a7da-34e396e7ddbe";

fn booted(listing: Listing) -> Setup {
    Setup::new(BOOTED)
        .on(listing)
        .nova("nova.conf")
        .domain("domains/cad-02.xml", false)
        .domain("domains/cad-09.xml", false)
        .remembered()
}

/// `UUID ACTIVE` of each device.
async fn states(host: &Case) -> Vec<(String, bool)> {
    host.scan().await.mdevs.iter().map(|m| (m.uuid.to_string(), m.active)).collect()
}

/// 13
#[tokio::test]
async fn a_lost_card_stops_nobody_else() {
    let host = booted(Listing::of_files(&nodedev_dir(BOOTED))).start().await;
    let status = host.status().await;
    let missing: Vec<&str> = status
        .findings
        .iter()
        .filter(|f| f.kind == FindingKind::ParentMissing)
        .map(|f| f.about.as_str())
        .collect();
    assert_eq!(missing, [LOST], "{:?}", status.findings);
    assert!(host.finds(LOST, &["parent 0000:af:00.0 missing"]).await);
    let inactive = [(WANTED.to_owned(), false), (LOST.to_owned(), false), (MANUAL.to_owned(), false)];
    assert_eq!(states(&host).await, inactive);
    assert_eq!(status.foreign.iter().map(|m| m.uuid.to_string()).collect::<Vec<_>>(), [MANUAL]);

    host.done(host.service().start("cad-02", None).await).await;
    assert_eq!(states(&host).await, [(WANTED.into(), true), (LOST.into(), false), (MANUAL.into(), false)]);
    // What cad-09 waits for keeps its record, and nobody can use it.
    assert_eq!(host.totals().await, ["0000:3b:00.0 VGPU 8", "0000:af:00.0 VGPU 1"]);
    assert_eq!(host.record("0000:af:00.0").await.reserved, 1);
    assert_eq!((host.record("0000:3b:00.0").await.used, host.free("0000:3b:00.0").await), (1, 7));

    let job = host.ended(host.service().start("cad-09", None).await.unwrap().job).await;
    assert_eq!(job.state, SagaState::Failed);
    let result = job.result.unwrap();
    assert_eq!(result["kind"], "NoSuchParent");
    let text = result["message"].as_str().unwrap();
    assert!(text.contains("0000:af:00.0") && text.contains(LOST), "{text}");
    assert_eq!(states(&host).await, [(WANTED.into(), true), (LOST.into(), false), (MANUAL.into(), false)]);
    let held = host.service().instances().await.unwrap();
    assert_eq!(held.len(), 2, "what cad-09 holds stays booked");
}

/// 13, 6: the card is put back, a second T4 like the first.
#[tokio::test]
async fn a_card_that_is_back_makes_its_device_startable() {
    let mut listing = Listing::of_files(&nodedev_dir(BOOTED));
    let first = case_text("13-inactive-definition-missing-parent/nodedev/pci_0000_3b_00_0.xml");
    let second = first.replace("3b", "af").replace("<bus>59<", "<bus>175<");
    listing.add("pci_0000_af_00_0", second.as_bytes());
    let host = booted(listing.finish()).start().await;
    let card = || "0000:af:00.0".parse().unwrap();
    host.sim.change(Change::ParentGone(card())).await.unwrap();
    assert!(host.finds(LOST, &["parent 0000:af:00.0 missing"]).await);
    assert_eq!(host.totals().await, ["0000:3b:00.0 VGPU 8"]);

    host.sim.change(Change::ParentBack(card())).await.unwrap();
    assert_eq!(host.findings().await, [""; 0]);
    host.done(host.service().start("cad-09", None).await).await;
    assert!(states(&host).await.contains(&(LOST.into(), true)));
    assert_eq!(host.totals().await, ["0000:3b:00.0 VGPU 8", "0000:af:00.0 VGPU 8"]);
}

/// 14, through libvirt's test driver and the directory beside it.
#[cfg(feature = "libvirt")]
#[tokio::test(flavor = "multi_thread")]
async fn one_unreadable_definition() {
    let case = "14-broken-mdevctl-json";
    let root = tempfile::tempdir().unwrap();
    crate::fixture::plant_mdevctl(&crate::fixture::case(case).join("mdevctl.d"), root.path());
    let files = || crate::tree::files_below(&root.path().join("etc"));
    let before = files();
    assert_eq!(before.len(), 6);
    let host = Setup::new(case).on_libvirt(root.path(), &nodedev_dir(case)).nova("nova.conf").start().await;

    let status = host.status().await;
    let about = |kind| {
        let of_kind = status.findings.iter().filter(move |f| f.kind == kind);
        of_kind.map(|f| f.about.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(
        about(FindingKind::MalformedInput),
        [
            "/etc/mdevctl.d/0000:3b:00.0/ec3c541c-ac94-46ad-b97c-2d22c5a89f46",
            "/etc/mdevctl.d/0000:86:00.0/2808d0bd-ef6f-4f34-9479-bcf8a4191037"
        ]
    );
    assert_eq!(about(FindingKind::Unknown), ["/etc/mdevctl.d"]);
    assert!(host.finds("/etc/mdevctl.d", &["could not be listed"]).await, "{:?}", status.findings);
    assert_eq!(status.findings.len(), 3, "{:?}", status.findings);
    let usable: Vec<String> = host
        .scan()
        .await
        .mdevs
        .iter()
        .map(|m| format!("{} {} {}", m.uuid, m.type_id.as_ref().unwrap(), m.active))
        .collect();
    assert_eq!(
        usable,
        [
            "0a5b022e-bdb7-42e6-b3ce-490b4ced4963 nvidia-231 false",
            "6e5515ac-409b-4808-9059-2d41c39c346d nvidia-232 false"
        ]
    );
    assert_eq!(host.totals().await, ["0000:3b:00.0 VGPU 8", "0000:86:00.0 VGPU 4"]);
    for _ in 0..2 {
        host.claimed("resources:VGPU=1").await;
    }
    let made = host.scan().await.mdevs;
    let parents: Vec<String> = made.iter().filter(|m| m.active).map(|m| m.parent.to_string()).collect();
    assert_eq!(parents.len(), 2);
    assert_ne!(parents[0], parents[1]);
    assert_eq!(files(), before, "no file is touched");
}
