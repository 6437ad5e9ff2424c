//! What an export says, and which documents are none.

use serde_json::{Value, json};

use super::*;
use crate::model::DeviceApi;

fn named(name: &str) -> TypeIdentity {
    TypeIdentity {
        vendor_id: Some(0x10de),
        device_id: None,
        name: Some(name.to_owned()),
        type_id: None,
        device_api: DeviceApi::VfioPci,
        framebuffer_mib: Some(4096),
        heads: Some(4),
        max_resolution: Some("7680x4320".to_owned()),
    }
}

fn export() -> Export {
    let bare = TypeIdentity { name: None, type_id: Some("mtty-1".parse().unwrap()), ..named("") };
    let traits = [
        ("CUSTOM_GOLD", TraitState::Ok, Some(named("NVIDIA A2-4Q"))),
        ("CUSTOM_TTY", TraitState::Drift, Some(bare)),
        ("CUSTOM_GONE", TraitState::Unavailable, None),
    ];
    let resolved = traits.into_iter().map(|(name, state, id)| (name.parse().unwrap(), (state, id))).collect();
    let lock = Lock::of(None, &BTreeMap::from([("CUSTOM_GOLD".parse().unwrap(), named("NVIDIA A2-4Q"))]));
    Export::of("gpu-01", Some(&lock), &resolved)
}

fn document() -> Value {
    serde_json::to_value(export()).unwrap()
}

fn refusal(document: &Value) -> String {
    let fault = Export::parse(document.to_string().as_bytes(), "a\n.json").unwrap_err();
    assert_eq!(fault.kind, FaultKind::InvalidRequest);
    assert!(fault.message.starts_with("a\\n.json: "), "{fault}");
    fault.message
}

#[test]
fn a_document_is_read_back_whatever_its_spelling() {
    let pretty = serde_json::to_string_pretty(&export()).unwrap();
    assert_eq!(Export::parse(pretty.as_bytes(), "a").unwrap(), export());
    let spelled = pretty.replace("\"0x10de\"", "\"10DE\"").replace("NVIDIA A2-4Q", " NVIDIA  A2\\u002d4Q");
    assert_ne!(spelled, pretty);
    assert_eq!(Export::parse(spelled.as_bytes(), "a").unwrap(), export());
    let without = Export { lock: None, ..export() };
    assert_eq!(Export::parse(&serde_json::to_vec(&without).unwrap(), "a").unwrap(), without);
    let empty = Export { host: "h".into(), lock: None, traits: BTreeMap::new() };
    assert_eq!(Export::parse(&serde_json::to_vec(&empty).unwrap(), "a").unwrap(), empty);
}

#[test]
fn its_digest_is_that_of_a_lock_with_the_same_meaning() {
    let document = document();
    let lock = Lock::of(None, &export().identities());
    assert_eq!(document["digest"], json!(lock.digest()));
    assert_eq!(document["lock"]["revision"], 1);
    let gold = &document["traits"]["CUSTOM_GOLD"];
    assert_eq!((&gold["state"], &gold["identity"]["type_id"]), (&json!("ok"), &json!(null)), "no local id");
    assert_eq!(document["traits"]["CUSTOM_TTY"]["identity"]["type_id"], "mtty-1");
    assert_eq!(document["traits"]["CUSTOM_GONE"]["identity"], json!(null));
}

/// The seal is what the head of the file says, whoever computes it.
#[test]
fn the_seal_is_over_the_sorted_document_without_it() {
    let sorted: BTreeMap<String, Value> = serde_json::from_value(document()).unwrap();
    let inner = |key: &str| serde_json::to_string(&sorted[key]).unwrap();
    let text = format!(
        r#"{{"digest":{},"host":"gpu-01","lock":{},"traits":{},"version":1}}"#,
        inner("digest"),
        inner("lock"),
        inner("traits")
    );
    assert_eq!(sorted["seal"], json!(Digest::of(text.as_bytes())));
}

#[test]
fn every_change_is_noticed() {
    for (pointer, value) in [
        ("/host", json!("gpu-02")),
        ("/lock", json!(null)),
        ("/lock/revision", json!(2)),
        ("/traits/CUSTOM_TTY/state", json!("ok")),
        ("/traits/CUSTOM_GOLD/identity/framebuffer_mib", json!(2048)),
        ("/traits/CUSTOM_GOLD/identity", json!(null)),
        ("/digest", json!("0".repeat(64))),
        ("/seal", json!("0".repeat(64))),
        ("/seal", json!(null)),
    ] {
        let mut changed = document();
        *changed.pointer_mut(pointer).unwrap() = value;
        assert!(refusal(&changed).contains("changed after it was made"), "{pointer}");
    }
    let mut fewer = document();
    fewer["traits"].as_object_mut().unwrap().remove("CUSTOM_GONE");
    assert!(refusal(&fewer).contains("changed after it was made"));
}

#[test]
fn what_is_no_export_is_named() {
    let with = |pointer: &str, value: Value| {
        let mut changed = document();
        *changed.pointer_mut(pointer).unwrap() = value;
        refusal(&changed)
    };
    assert!(with("/version", json!(2)).contains("form 2"), "a newer form");
    assert!(refusal(&json!({"version": 3, "colour": 1})).contains("form 3"));
    assert!(with("/host", json!("a\u{1b}")).contains("host is no name"));
    assert!(with("/host", json!("")).contains("host is no name"));
    assert!(with("/host", json!("x".repeat(256))).contains("host is no name"));
    assert!(with("/traits/CUSTOM_GOLD/state", json!("good")).contains("unknown variant"));
    assert!(
        with("/traits/CUSTOM_GOLD/identity/type_id", json!("nvidia-1"))
            .contains("CUSTOM_GOLD: an identity has")
    );
    assert!(with("/traits/CUSTOM_GOLD/identity/name", json!(" ")).contains("CUSTOM_GOLD: name or"));
    assert!(with("/traits", json!({"gold": null})).contains("not a valid trait"));
    let mut more = document();
    more["traits"]["CUSTOM_GOLD"]["colour"] = json!("red");
    assert!(refusal(&more).contains("unknown field"));
    for other in [json!(null), json!([]), json!({}), json!("x")] {
        assert!(refusal(&other).contains("not an export"), "{other}");
    }
    let refused = |bytes: &[u8]| Export::parse(bytes, "a").unwrap_err().message;
    assert!(refused(b"").contains("not an export"));
    assert!(refused(b"\xff{").contains("not an export"));
    assert!(refused(&vec![b'['; 1_000_000]).contains("not an export"), "depth");
    assert!(refused(&vec![b' '; MAX_EXPORT_BYTES + 1]).contains("bytes are not taken"));
    let mut many = export();
    many.traits = (0..=MAX_TRAITS)
        .map(|n| (format!("CUSTOM_{n}").parse().unwrap(), Exported { state: TraitState::Ok, identity: None }))
        .collect();
    assert!(refused(&serde_json::to_vec(&many).unwrap()).contains("10001 traits"));
}
