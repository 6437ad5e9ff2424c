//! What holds of every catalogue, lock and export, and of every text that is none.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::model::DeviceApi;
use crate::model::identity::plain_blanks;

fn api() -> impl Strategy<Value = DeviceApi> {
    prop::sample::select(&[DeviceApi::VfioPci, DeviceApi::VfioCcw, DeviceApi::VfioAp][..])
}

/// Also such as a hostile driver would print.
fn identity() -> impl Strategy<Value = TypeIdentity> {
    let name =
        any::<String>().prop_map(|text| plain_blanks(&text)).prop_filter("a name", |name| !name.is_empty());
    let name = prop_oneof!["[A-Z]{1,5} [A-Z0-9]{1,3}-[0-9]{1,2}Q", name];
    let label = prop_oneof![name.prop_map(Ok), "[a-z0-9][a-z0-9_-]{0,9}".prop_map(Err)];
    let facts = (any::<Option<u16>>(), any::<Option<u16>>(), any::<Option<u32>>(), any::<Option<u32>>());
    (label, facts, api(), any::<Option<String>>()).prop_map(|(label, facts, device_api, max_resolution)| {
        TypeIdentity {
            vendor_id: facts.0,
            device_id: facts.1,
            name: label.clone().ok(),
            type_id: label.err().map(|id: String| id.parse().unwrap()),
            device_api,
            framebuffer_mib: facts.2,
            heads: facts.3,
            max_resolution,
        }
    })
}

fn name() -> impl Strategy<Value = TraitName> {
    prop_oneof!["CUSTOM_[A-Z0-9]{1,6}", Just("HW_GPU_API_VULKAN".to_owned())]
        .prop_map(|name| name.parse().unwrap())
}

fn mapping() -> impl Strategy<Value = BTreeMap<TraitName, TypeIdentity>> {
    prop::collection::btree_map(name(), identity(), 0..6)
}

fn lock() -> impl Strategy<Value = Lock> {
    let accepted =
        ("[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}Z", prop::option::of("[a-z0-9.-]{1,9}"));
    let accepted = (accepted, "[!-~é]{1,9}", identity(), identity())
        .prop_map(|((at, by), reason, was, now)| Accepted { at, by, reason, was, now });
    let locked = (identity(), prop::collection::vec(accepted, 0..3));
    let traits = prop::collection::btree_map(
        name(),
        locked.prop_map(|(identity, history)| Locked { identity, history }),
        0..5,
    );
    (1..=i64::MAX.unsigned_abs(), traits).prop_map(|(revision, traits)| Lock { revision, traits })
}

fn export() -> impl Strategy<Value = Export> {
    let state = prop::sample::select(TraitState::ALL);
    let traits = prop::collection::btree_map(name(), (state, prop::option::of(identity())), 0..6);
    ("[a-z0-9.é-]{1,20}", prop::option::of(lock()), traits)
        .prop_map(|(host, lock, traits)| Export::of(&host, lock.as_ref(), &traits))
}

fn catalog() -> impl Strategy<Value = Catalog> {
    let id = any::<Option<u16>>;
    let rest = (id(), id(), prop::option::of(prop::sample::select(Framework::ALL)), prop::option::of(1u32..));
    let binding = ("[A-Za-z0-9]([ -.0-\\[\\]-~é\"'#=]{0,20}[a-z])?", rest).prop_map(|(key, rest)| Binding {
        type_key: plain_blanks(&key),
        vendor_id: rest.0,
        device_id: rest.1,
        framework: rest.2,
        framebuffer_mib: rest.3,
    });
    prop::collection::btree_map(name(), binding, 0..6).prop_map(|bindings| Catalog { bindings })
}

/// The same lock in another spelling: keys of a block backwards, ids in capitals, blanks doubled.
fn lock_spelled_otherwise(lock: &Lock) -> String {
    let text = lock.to_string();
    let blocks = text.split("\n\n").map(|block| {
        let (head, body) = if block.starts_with('[') { block.split_once('\n').unwrap() } else { ("", block) };
        let line = |line: &str| match line.split_once(" = ") {
            Some(("name", name)) => format!("name\t=  {}", name.replace(' ', "  ")),
            Some((key @ ("vendor_id" | "device_id"), id)) => {
                format!("{key}={}", id.replace("0x", "").to_uppercase())
            }
            Some(_) | None => line.to_owned(),
        };
        let lines: Vec<String> = body.lines().rev().map(line).collect();
        format!("{head}\n{}", lines.join("\n"))
    });
    blocks.collect::<Vec<_>>().join("\n\n")
}

/// The same JSON with its keys backwards and blanks around everything.
fn json_spelled_otherwise(value: &Value) -> String {
    let inner = match value {
        Value::Object(map) => {
            let members = map.iter().rev().map(|(key, value)| {
                let value = match (key.as_str(), value) {
                    ("vendor_id" | "device_id", Value::String(id)) => Value::from(id.to_uppercase()),
                    ("name", Value::String(name)) => Value::from(format!(" {}\t", name.replace(' ', "  "))),
                    (_, other) => other.clone(),
                };
                format!("{} : {}", Value::from(key.as_str()), json_spelled_otherwise(&value))
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            value.to_string()
        }
    };
    format!(" {inner}\n")
}

/// A text with a piece of it dropped, doubled, or overwritten.
fn mutated(text: &str, (at, length, how, byte): (usize, usize, u8, u8)) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    let at = at % (bytes.len() + 1);
    let end = (at + length).min(bytes.len());
    let piece = bytes[at..end].to_vec();
    let new = match how % 4 {
        0 => Vec::new(),
        1 => [&piece[..], &piece[..]].concat(),
        2 => vec![byte; piece.len()],
        _ => [&[byte][..], &piece[..]].concat(),
    };
    bytes.splice(at..end, new);
    bytes
}

/// Gives the bytes to everything that reads; what is read must be what is written.
fn read_all(bytes: &[u8]) -> Result<(), TestCaseError> {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(catalog) = Catalog::parse(&text, "f") {
        prop_assert_eq!(Catalog::parse(&catalog.to_string(), "f").unwrap(), catalog);
    }
    if let Ok(lock) = Lock::parse(&text, "f") {
        prop_assert_eq!(Lock::parse(&lock.to_string(), "f").unwrap(), lock);
    }
    if let Ok(export) = Export::parse(bytes, "f") {
        let again = serde_json::to_vec(&export).unwrap();
        prop_assert_eq!(Export::parse(&again, "f").unwrap(), export);
    }
    let _ = trait_name(&text);
    Ok(())
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(catalog in catalog(), lock in lock(), export in export()) {
        let fail = |err: &dyn std::fmt::Display, text: &str| TestCaseError::fail(format!("{err}\n{text}"));
        let text = catalog.to_string();
        prop_assert_eq!(Catalog::parse(&text, "f").map_err(|e| fail(&e, &text))?, catalog);
        let text = lock.to_string();
        prop_assert_eq!(Lock::parse(&text, "f").map_err(|e| fail(&e, &text))?, lock);
        let text = serde_json::to_string_pretty(&export).unwrap();
        prop_assert_eq!(Export::parse(text.as_bytes(), "f").map_err(|e| fail(&e, &text))?, export);
    }

    #[test]
    fn the_digest_is_of_the_meaning_alone(lock in lock(), host in "[a-z]{1,9}", revision in 1u64..9) {
        let meaning = lock.identities();
        prop_assert_eq!(digest(meaning.iter().rev()), lock.digest());
        let elsewhere = Lock { revision, ..Lock::of(None, &meaning) };
        prop_assert_eq!(elsewhere.digest(), lock.digest());
        let resolved = meaning.iter().map(|(name, id)| (name.clone(), (TraitState::Ok, Some(id.clone())))).collect();
        let export = Export::of(&host, Some(&elsewhere), &resolved);
        prop_assert_eq!(export.digest(), lock.digest());
        prop_assert_eq!(export.identities(), meaning);
    }

    #[test]
    fn another_meaning_has_another_form(one in mapping(), other in mapping()) {
        prop_assert_eq!(canonical(&one) == canonical(&other), one == other);
    }

    #[test]
    fn spelling_is_no_meaning(lock in lock(), export in export()) {
        let odd = |identity: &TypeIdentity| [&identity.name, &identity.max_resolution].iter().any(|text| {
            text.as_ref().is_some_and(|text| text.contains([',', '=', '\\', '{', '}']))
        });
        prop_assume!(!lock.traits.values().any(|locked| odd(&locked.identity)));
        let text = lock_spelled_otherwise(&lock);
        let read = Lock::parse(&text, "f").map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        prop_assert_eq!(read.identities(), lock.identities());
        let text = json_spelled_otherwise(&serde_json::to_value(&export).unwrap());
        let read = Export::parse(text.as_bytes(), "f").map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        prop_assert_eq!(read, export);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "(\\PC|\n){0,200}") {
        read_all(&bytes)?;
        read_all(text.as_bytes())?;
    }

    #[test]
    fn no_near_miss_panics(
        lock in lock(), export in export(), catalog in catalog(),
        hit in (any::<usize>(), 0usize..40, any::<u8>(), any::<u8>()),
    ) {
        read_all(&mutated(&lock.to_string(), hit))?;
        read_all(&mutated(&serde_json::to_string(&export).unwrap(), hit))?;
        read_all(&mutated(&catalog.to_string(), hit))?;
    }

    /// What a changed export still says is what it said before: no change of meaning slips through.
    #[test]
    fn a_changed_export_is_refused_or_means_the_same(
        export in export(), hit in (any::<usize>(), 0usize..40, any::<u8>(), b' '..b'~'),
    ) {
        let changed = mutated(&serde_json::to_string(&export).unwrap(), hit);
        if let Ok(read) = Export::parse(&changed, "f") {
            prop_assert_eq!(read, export);
        }
    }
}
