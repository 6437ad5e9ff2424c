//! Traits, their lock, the plan and drift on the bus.

use mdevirt::dbus::BusEvent;
use mdevirt::model::{FaultKind, TraitName, Word};
use mdevirt::service::api::{AcceptRequest, Change, UseCases};
use serde_json::json;

use crate::bus::{Fake, Pace, PrivateBus};
use crate::{client, fault, manager, next, record};

#[tokio::test]
async fn reading_gives_what_the_service_has() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let client = client(&bus).await;
    assert_eq!(client.traits().await.unwrap(), service.traits().await.unwrap());
    assert_eq!(client.trait_check().await.unwrap(), service.trait_check().await.unwrap());
    assert_eq!(client.trait_export().await.unwrap(), service.trait_export().await.unwrap());
    assert_eq!(client.plan(None).await.unwrap(), service.plan(None).await.unwrap());
}

#[tokio::test]
async fn arguments_are_handed_over_and_the_answer_comes_back() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let client = client(&bus).await;
    service.world().asked.clear();
    let parent = Some("0000:84:00.0".parse().unwrap());
    let odd = "GRID T4-2Q $(touch pwned);id #";
    let accept =
        |word: &str, parent| AcceptRequest { word: word.to_owned(), reason: "renamed".to_owned(), parent };
    assert_eq!(client.trait_accept(&accept(odd, parent)).await.unwrap(), crate::bus::sample::traits());
    client.trait_accept(&accept("CUSTOM_GOLD", None)).await.unwrap();
    assert_eq!(client.trait_lock().await.unwrap(), crate::bus::sample::lock());
    client.plan(Some("[devices]\n")).await.unwrap();
    client.plan(None).await.unwrap();
    let asked = service.world().asked.clone();
    assert_eq!(
        asked,
        [
            r#"accept {"word":"GRID T4-2Q $(touch pwned);id #","reason":"renamed","parent":"0000:84:00.0"}"#,
            r#"accept {"word":"CUSTOM_GOLD","reason":"renamed","parent":null}"#,
            "trait lock",
            r#"plan Some("[devices]\n")"#,
            "plan None",
        ]
    );
}

#[tokio::test]
async fn wrong_arguments_are_named_and_reach_nobody() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let manager = manager(&bus).await;
    service.world().asked.clear();
    for (word, options, want) in [
        ("CUSTOM_GOLD", json!({}), "option reason is missing"),
        ("CUSTOM_GOLD", json!({"reason": 7}), "option reason: expected a string, got a number"),
        (
            "CUSTOM_GOLD",
            json!({"reason": "r", "force": true}),
            "unknown option force; known are reason, parent",
        ),
        ("CUSTOM_GOLD", json!({"reason": "r", "parent": "../x"}), "option parent: \"../x\" is not a valid"),
        ("CUSTOM_GOLD", json!({"reason": "r".repeat(70_000)}), "option reason: 70000 bytes"),
        (&"X".repeat(70_000), json!({"reason": "r"}), "option word: 70000 bytes"),
    ] {
        let refusal = fault(manager.trait_accept(word, record(&options)).await);
        assert_eq!(refusal.kind, FaultKind::InvalidRequest);
        assert!(refusal.message.starts_with(want), "{refusal}");
    }
    for (options, want) in [
        (json!({"config": ["[devices]"]}), "option config: expected a string, got an array"),
        (json!({"file": "/etc/shadow"}), "unknown option file; known are config"),
        (json!({"config": "#".repeat((1 << 20) + 1)}), "option config: 1048577 bytes, at most 1048576"),
    ] {
        let refusal = fault(manager.plan(record(&options)).await);
        assert_eq!(refusal.kind, FaultKind::InvalidRequest);
        assert!(refusal.message.starts_with(want), "{refusal}");
    }
    assert!(service.world().asked.is_empty(), "{:?}", service.world().asked);
    // The largest file that the daemon reads itself can also be given.
    manager.plan(record(&json!({"config": "#".repeat(1 << 20)}))).await.unwrap();
}

fn drift(word: Word, now: &str) -> Change {
    let was = "NVIDIA A2-8Q".to_owned();
    Change::Drift { word, parent: "0000:85:00.0".parse().unwrap(), was, now: now.to_owned() }
}

fn gold() -> Word {
    Word::of_trait(&"CUSTOM_GOLD".parse::<TraitName>().unwrap())
}

#[tokio::test]
async fn each_drift_is_signalled_once() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let mut watch = client(&bus).await.watch().await.unwrap();
    service.say(drift(gold(), "NVIDIA A2-8C"));
    service.say(drift(gold(), "a\u{1b}[2J\0b"));
    let text = |now: &str| format!("trait CUSTOM_GOLD on 0000:85:00.0 was NVIDIA A2-8Q, and is {now} now");
    let want = |now: &str| BusEvent::DriftDetected {
        word: "CUSTOM_GOLD".to_owned(),
        parent: "0000:85:00.0".to_owned(),
        text: text(now),
    };
    assert_eq!(next(&mut watch).await, want("NVIDIA A2-8C"));
    assert_eq!(next(&mut watch).await, want("a\u{1b}[2J\u{fffd}b"));
    service.say(Change::Inventory);
    assert_eq!(next(&mut watch).await, BusEvent::InventoryChanged);
}

#[tokio::test]
async fn records_have_the_keys_of_the_json() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let records = manager(&bus).await.traits().await.unwrap();
    let keys: std::collections::BTreeSet<&str> = records[0].keys().map(String::as_str).collect();
    for key in ["name", "type_name", "local_types", "state", "history"] {
        assert!(keys.contains(key), "{key}: {keys:?}");
    }
    let local = &crate::bus::sample::traits()[1].local_types[0];
    assert_eq!(json!(local), json!({"parent": "0000:84:00.0", "id": "nvidia-746"}));
}
