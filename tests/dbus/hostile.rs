//! Arguments that are too large, too deep, of the wrong type, or nonsense: named refusals, and the daemon goes on.

use std::collections::HashMap;

use mdevirt::dbus::MAX_DOMAIN_XML_BYTES;
use mdevirt::model::{Fault, FaultKind};
use serde_json::json;
use zbus::{Connection, OwnedVariant, Variant};

use crate::bus::{Fake, Pace, PrivateBus};
use crate::{fault, manager, record, spawn_options};

#[tokio::test]
async fn a_huge_domain_is_refused_and_the_largest_is_taken() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let manager = manager(&bus).await;
    let with = |bytes: usize| record(&json!({"domain_xml": "x".repeat(bytes), "flavor": "f"}));
    for bytes in [MAX_DOMAIN_XML_BYTES + 1, 20 << 20] {
        let refusal = fault(manager.spawn(with(bytes)).await);
        assert_eq!(refusal.kind, FaultKind::InvalidDomainXml);
        assert!(refusal.message.contains(&bytes.to_string()), "{refusal}");
    }
    let refusal = fault(manager.render_domain("x", &"x".repeat(5 << 20), record(&json!({}))).await);
    assert_eq!(refusal.kind, FaultKind::InvalidDomainXml);
    assert!(service.world().jobs.is_empty());
    manager.spawn(with(MAX_DOMAIN_XML_BYTES)).await.unwrap();
}

#[tokio::test]
async fn wrong_options_are_named() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let manager = manager(&bus).await;
    let mut nested = Variant::from(1u8);
    for _ in 0..20 {
        nested = Variant::Variant(Box::new(nested));
    }
    let values: [(Variant<'_>, &str); 5] = [
        (Variant::from(7u32), "expected a string, got a number"),
        (Variant::from(vec![1u8, 2]), "expected a string, got an array"),
        (Variant::from(HashMap::from([("k", "v")])), "expected a string, got a dictionary"),
        (Variant::from((1u8, "x")), "D-Bus type (ys) is not accepted"),
        (nested, "nested deeper than 4 levels"),
    ];
    for (value, word) in values {
        let mut options = spawn_options();
        options.insert("flavor".to_owned(), OwnedVariant::try_from(value).unwrap());
        let refusal = fault(manager.spawn(options).await);
        assert_eq!(refusal.kind, FaultKind::InvalidRequest);
        assert!(refusal.message.starts_with("option flavor: "), "{refusal}");
        assert!(refusal.message.contains(word), "{refusal}");
    }
    let refusal = fault(manager.destroy("x", record(&json!({"force": true}))).await);
    assert!(refusal.message.contains("unknown option force; known are operation_id"), "{refusal}");
    assert_eq!(fault(manager.destroy("", record(&json!({}))).await).kind, FaultKind::InvalidRequest);
    assert!(service.world().jobs.is_empty());
}

async fn call<B>(connection: &Connection, method: &str, body: &B) -> zbus::Error
where
    B: serde::Serialize + zbus::DynamicType,
{
    connection
        .call_method(Some("org.mdevirt1"), "/org/mdevirt1", Some("org.mdevirt1.Manager"), method, body)
        .await
        .unwrap_err()
}

#[tokio::test]
async fn wrong_signatures_and_unknown_methods_do_no_harm() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let connection = bus.connect().await;
    for (error, name) in [
        (call(&connection, "Spawn", &()).await, "InvalidArgs"),
        (call(&connection, "Spawn", &"x").await, "InvalidArgs"),
        (call(&connection, "Destroy", &(1u32, 2u32)).await, "InvalidArgs"),
        (call(&connection, "Shutdown", &()).await, "UnknownMethod"),
    ] {
        assert!(error.to_string().contains(name), "{error}");
    }
    manager(&bus).await.inventory().await.unwrap();
}

#[tokio::test]
async fn odd_names_and_texts_of_the_host_get_through() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let odd = "$(touch pwned);id #\u{1b}[31m\0\u{202e}";
    service.world().instances[0].name = odd.to_owned();
    service.world().devices[0].name = odd.to_owned();
    let _server = bus.serve(&service).await;
    let client = crate::client(&bus).await;
    let shown = odd.replace('\0', "\u{fffd}");
    assert_eq!(client.instances().await.unwrap()[0].name, shown);
    assert_eq!(client.devices().await.unwrap()[0].name, shown);
    service.world().fault = Some(Fault::new(FaultKind::HostRefused, odd));
    assert_eq!(client.inventory().await.unwrap_err().message, shown);
}

#[tokio::test]
async fn an_answer_that_cannot_be_sent_is_an_error_and_not_a_lost_connection() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let client = crate::client(&bus).await;
    let mut deep = json!(1);
    for _ in 0..40 {
        deep = json!({ "x": deep });
    }
    let id =
        service.begin(mdevirt::model::OpKind::Start, "11111111-2222-4333-8444-555555555555".parse().unwrap());
    service.end(id, mdevirt::model::SagaState::Done, deep);
    let refusal = client.job(id).await.unwrap_err();
    assert_eq!(refusal.kind, FaultKind::Internal);
    assert!(refusal.message.contains("result: nested deeper"), "{refusal}");
    client.inventory().await.unwrap();
}
