//! Devices and definitions of others, and those that are broken or lost.
//!
//! | case | what is right | test |
//! |---|---|---|
//! | 12 | 1, 2, 3 | `devices_of_others_are_counted_and_never_given` |
//! | 12 | 4 | `nothing_that_is_not_ours_is_removed`; the reconcile run itself is later |
//! | 12 | 5 | `a_device_of_others_is_no_instance`: no call removes a device by its UUID |
//! | 13 | 1, 2, 3, 4, 5 | `a_lost_card_stops_nobody_else`; in the hook (steps 2 and 3): later |
//! | 13 | 6 | `a_card_that_is_back_makes_its_device_startable` |
//! | 14 | 1, 2, 3, 4, 5, 6, 7 | `one_unreadable_definition` |
//! | 21 | 1 | `a_clone_is_a_conflict` |
//! | 21 | 2 | `a_clone_is_refused_with_both_names`; in the hook: later |
//! | 21 | 3, 4, 5 | `a_clone_takes_nothing_with_it`, `a_clone_inherits_nothing` |

use mdevirt::host::Hypervisor;
use mdevirt::host::sim::Change;
use mdevirt::model::{DisplayWish, FaultKind, FindingKind, SagaState};
use mdevirt::service::api::{SpawnRequest, UseCases};

use crate::listing::{Listing, nodedev_dir};
use crate::setup::{Case, Setup, case_text};

const OURS: &str = "3e48e69f-7dbb-4c2f-8e5f-68aa3a7d3ccf";
const LOOSE: &str = "9bc9da11";
const LAB: &str = "a455231c";

async fn foreign(config: &str) -> Case {
    Setup::new("12-foreign-mdevs")
        .nova(config)
        .domain("domains/web-01.xml", true)
        .domain("domains/lab-handmade.xml", false)
        .remembered()
        .start()
        .await
}

/// 12
#[tokio::test]
async fn devices_of_others_are_counted_and_never_given() {
    let host = foreign("nova.conf").await;
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
#[tokio::test]
async fn nothing_that_is_not_ours_is_removed() {
    for config in ["nova.conf", "nova-empty.conf"] {
        let mut host = foreign(config).await;
        let before = host.active().await;
        host.restart().await;
        host.service().reload().await.unwrap();
        assert_eq!(host.active().await, before, "{config}");
        host.done(host.service().stop("web-01", None).await).await;
        host.done(host.service().start("web-01", None).await).await;
        assert_eq!(host.active().await, before, "{config}");
        host.done(host.service().destroy("web-01", None).await).await;
        let left = host.active().await;
        assert_eq!(before.difference(&left).map(ToString::to_string).collect::<Vec<_>>(), [OURS], "{config}");
        assert_eq!(host.sim.domains().await.unwrap().len(), 1, "lab-handmade stays");
    }
    let empty = foreign("nova-empty.conf").await;
    assert_eq!(empty.totals().await, [""; 0]);
    assert_eq!(empty.status().await.foreign.len(), 2);
}

/// 12, 5
#[tokio::test]
async fn a_device_of_others_is_no_instance() {
    let host = foreign("nova.conf").await;
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
    assert_eq!(host.totals().await, ["0000:3b:00.0 VGPU 8"]);
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

const CLONED: &str = "fbb54003-af34-47ea-a026-7bfcc2994bc6";
const CLONE: &str = "77cc33d3-0c5e-47d2-a2f9-71b62b32fc8d";

async fn cloned() -> Case {
    Setup::new("21-cloned-vm-same-uuid")
        .nova("nova.conf")
        .domain("domains/golden.xml", true)
        .domain("domains/golden-clone1.xml", false)
        .remembered()
        .start()
        .await
}

/// 21, 1
#[tokio::test]
async fn a_clone_is_a_conflict() {
    let host = cloned().await;
    let findings = host.status().await.findings;
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!((findings[0].kind, findings[0].about.as_str()), (FindingKind::Conflict, CLONED));
    assert!(findings[0].text.contains("\"golden\" holds it"), "{findings:?}");
    assert!(findings[0].text.contains("\"golden-clone1\""), "{findings:?}");
    let record = host.record("0000:3b:00.0").await;
    assert_eq!((record.total, record.used, record.reserved), (8, 1, 0));
    assert_eq!(host.free("0000:3b:00.0").await, 7);
}

fn clone_request(name: &str) -> SpawnRequest {
    let xml = case_text("21-cloned-vm-same-uuid/domains/golden-clone1.xml");
    SpawnRequest {
        domain_xml: xml.replace("golden-clone1", name).replace(CLONE, "aa22dd44-0c5e-47d2-a2f9-71b62b32fc8d"),
        flavor: "resources:VGPU=1".into(),
        display: DisplayWish::Off,
        operation_id: None,
        dry_run: false,
    }
}

/// 21, 2
#[tokio::test]
async fn a_clone_is_refused_with_both_names() {
    let host = cloned().await;
    let before = host.scan().await;
    let fault = host.service().spawn(clone_request("golden-clone2")).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::DeviceInUse);
    for word in ["\"golden-clone2\"", "\"golden\"", CLONED] {
        assert!(fault.message.contains(word), "{word}: {fault}");
    }
    assert_eq!(host.scan().await, before);
    // libvirt's own start of the clone finds the device taken; ours does not know it.
    let unknown = host.service().start("golden-clone1", None).await.unwrap_err();
    assert_eq!(unknown.kind, FaultKind::NoSuchInstance);
}

/// 21, 3 and 4
#[tokio::test]
async fn a_clone_takes_nothing_with_it() {
    let host = cloned().await;
    let before = host.scan().await;
    host.sim.undefine(CLONE.parse().unwrap()).await.unwrap();
    assert_eq!(host.findings().await, [""; 0]);
    assert_eq!(host.scan().await, before);
    assert_eq!(host.record("0000:3b:00.0").await.used, 1);
    host.done(host.service().stop("golden", None).await).await;
    host.done(host.service().start("golden", None).await).await;
    assert_eq!(host.scan().await, before);
}

/// 21, 5
#[tokio::test]
async fn a_clone_inherits_nothing() {
    let host = cloned().await;
    host.done(host.service().destroy("golden", None).await).await;
    assert_eq!(host.scan().await.mdevs, []);
    assert_eq!(host.service().instances().await.unwrap(), []);
    let lost = host.sim.start(CLONE.parse().unwrap()).await.unwrap_err();
    assert!(lost.to_string().contains(CLONED), "{lost}");
    // Nor is the device made again for a copy that names it; it is told to take one of its own.
    let fault = host.service().spawn(clone_request("golden-clone2")).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::InvalidDomainXml);
    assert!(fault.message.contains(CLONED) && fault.message.contains("a device of its own"), "{fault}");
    assert_eq!(host.scan().await.mdevs, []);
}
