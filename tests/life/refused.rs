//! Documents that a target does not take: changed, older, of another kind, or of a VM that it cannot serve.

use mdevirt::model::{FaultKind, OpKind};
use mdevirt::plan::handover::{Handover, Leaving};
use mdevirt::service::api::UseCases;
use serde_json::{Value, json};

use crate::bench::{ONE, Site, TWO, arriving, begin, odd_xml};
use crate::world::{World, domain_xml, scenario};

async fn refused(target: &World, document: &str, kind: FaultKind) -> String {
    let before = target.scan().await;
    let books = target.service().store.books();
    let fault = target.service().migrate_prepare(arriving(document)).await.unwrap_err();
    assert_eq!(fault.kind, kind, "{fault}");
    assert_eq!(target.scan().await, before);
    assert_eq!(target.service().store.books().claims().len(), books.claims().len());
    format!("{fault} {}", fault.details)
}

async fn sent() -> (World, World, String) {
    let host = |name: &'static str| async move {
        World::named(name, &scenario("two-m60.xml"), &scenario("two-m60.toml")).await
    };
    let (source, target) = (host("gpu-01").await, host("gpu-02").await);
    source.spawn("web-01", TWO).await;
    let document = begin(&source, "web-01").await;
    (source, target, document)
}

#[tokio::test]
async fn a_document_that_was_changed_or_is_of_another_version() {
    let (_source, target, document) = sent().await;
    let edit = |change: fn(&mut Value)| {
        let mut value: Value = serde_json::from_str(&document).unwrap();
        change(&mut value);
        value.to_string()
    };
    let changed: [fn(&mut Value); 6] = [
        |v| v["name"] = json!("web-02"),
        |v| v["running"] = json!(false),
        |v| v["devices"][0]["identity"]["name"] = json!("GRID M60-8Q"),
        |v| v["devices"] = json!([]),
        |v| v["domain_xml"] = json!(domain_xml("web-01")),
        |v| v["seal"] = json!("0".repeat(64)),
    ];
    for change in changed {
        let text = refused(&target, &edit(change), FaultKind::InvalidRequest).await;
        assert!(text.contains("migration document"), "{text}");
    }
    let older = refused(&target, &edit(|v| v["version"] = json!(0)), FaultKind::InvalidRequest).await;
    assert!(older.contains("form 0") && older.contains("reads 1"), "{older}");
    refused(&target, &edit(|v| v["more"] = json!(1)), FaultKind::InvalidRequest).await;
    refused(&target, &edit(|v| drop(v.as_object_mut().unwrap().remove("seal"))), FaultKind::InvalidRequest)
        .await;
    for text in ["", "{}", "[]", "null", "{\"version\":1", &document[..document.len() / 2]] {
        refused(&target, text, FaultKind::InvalidRequest).await;
    }
}

#[tokio::test]
async fn a_target_without_room_names_both_sides() {
    let (_source, target, document) = sent().await;
    for n in 0..4 {
        target.spawn(&format!("vm-{n}"), TWO).await;
    }
    let text = refused(&target, &document, FaultKind::NoCapacity).await;
    assert!(["gpu-01", "M60-2Q", "0000:84:00.0", "0000:85:00.0"].iter().all(|w| text.contains(w)), "{text}");
}

/// The seal says only that it was not changed.
#[tokio::test]
async fn a_whole_document_whose_parts_are_of_two_vms() {
    let (source, target, _document) = sent().await;
    let theirs = odd_xml("lab", 5);
    mdevirt::host::Hypervisor::define(&*target.sim, &theirs).await.unwrap();
    for xml in [theirs, odd_xml("web-01", 5), domain_xml("web-01"), "<domain".to_owned()] {
        let (instance, claims) = (source.service().store.books(), source.booked("web-01"));
        let instance = instance.instance(source.uuid("web-01")).unwrap();
        let leaving = Leaving {
            host: "h",
            instance,
            claims: &claims,
            begun: true,
            running: true,
            lock: None,
            domain_xml: xml,
        };
        let forged = serde_json::to_string(&Handover::of(leaving).unwrap()).unwrap();
        let fault = target.service().migrate_prepare(arriving(&forged)).await.unwrap_err();
        assert!(matches!(fault.kind, FaultKind::InvalidRequest | FaultKind::InvalidDomainXml), "{fault}");
    }
    assert_eq!(target.service().store.books().claims().len(), 0);
}

const LOCKED: &str = "[devices]\nenabled_mdev_types = ['nvidia-18']\n[traits]\nfile = 'DIR/traits.toml'\nlock = 'DIR/traits.lock'\n";

#[tokio::test]
async fn another_lock_of_traits_names_both_sides() {
    let card: &[_] = &[("nvidia-18", "GRID M60-2Q", 4)];
    let source = Site::new("gpu-01", &[(0x81, "0x10de", card)], LOCKED).await;
    let target = Site::new("gpu-02", &[(0x81, "0x10de", card)], LOCKED).await;
    let traits = "[trait.CUSTOM_GOLD]\ntype = 'GRID M60-2Q'\n";
    std::fs::write(source.files.path().join("traits.toml"), traits).unwrap();
    source.service().reload().await.unwrap();
    source.service().trait_lock().await.unwrap();
    source.spawn("web-01", "resources:VGPU=1,trait:CUSTOM_GOLD=required").await;
    let document = begin(&source, "web-01").await;
    let text = refused(&target, &document, FaultKind::TraitMismatch).await;
    assert!(
        text.contains("gpu-01") && text.contains("here it is none") && text.contains("revision 1"),
        "{text}"
    );
    for file in ["traits.toml", "traits.lock"] {
        std::fs::copy(source.files.path().join(file), target.files.path().join(file)).unwrap();
    }
    target.service().reload().await.unwrap();
    target.done(target.service().migrate_prepare(arriving(&document)).await).await;
}

#[tokio::test]
async fn a_domain_of_that_name_or_uuid_is_there_already() {
    let (_source, target, document) = sent().await;
    target.spawn_xml(&odd_xml("web-01", 5), ONE, Default::default()).await;
    let text = refused(&target, &document, FaultKind::InstanceExists).await;
    assert!(text.contains("web-01"), "{text}");
    target.go(OpKind::Destroy, "web-01").await;
    // Somebody else's, which is not in our books.
    mdevirt::host::Hypervisor::define(&*target.sim, &odd_xml("web-01", 6)).await.unwrap();
    let text = refused(&target, &document, FaultKind::InstanceExists).await;
    assert!(text.contains("web-01"), "{text}");
}
