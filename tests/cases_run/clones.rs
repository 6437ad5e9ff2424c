//! A VM that is a copy of another, host device and all.
//!
//! | case | what is right | test |
//! |---|---|---|
//! | 21 | 1 | `a_clone_is_a_conflict` |
//! | 21 | 2 | `a_clone_is_refused_with_both_names`; in the hook: later |
//! | 21 | 3, 4, 5 | `a_clone_takes_nothing_with_it`, `a_clone_inherits_nothing` |

use mdevirt::host::Hypervisor;
use mdevirt::model::{DisplayWish, FaultKind, FindingKind};
use mdevirt::service::api::{SpawnRequest, UseCases};

use crate::setup::{Case, Setup, case_text};

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
