//! Documents as they travel: whole, changed on the way, of another form, and texts that are none.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::model::{ClaimId, ClaimRole, ClaimState, DomainOwner, Instance, InstanceUuid};

fn identity(name: &str) -> TypeIdentity {
    TypeIdentity {
        vendor_id: Some(0x10de),
        device_id: None,
        name: Some(name.to_owned()),
        type_id: None,
        device_api: DeviceApi::VfioPci,
        framebuffer_mib: Some(2048),
        heads: Some(4),
        max_resolution: Some("4096x2160".to_owned()),
    }
}

fn claim(n: u128) -> Claim {
    Claim {
        id: ClaimId(uuid::Uuid::from_u128(n)),
        instance: InstanceUuid(uuid::Uuid::from_u128(1)),
        uuid: MdevUuid(uuid::Uuid::from_u128(n)),
        parent: "0000:84:00.0".parse().unwrap(),
        mdev_type: "nvidia-18".parse().unwrap(),
        type_name: "GRID M60-2Q".to_owned(),
        identity: Some(identity("GRID M60-2Q")),
        card: None,
        device_api: DeviceApi::VfioPci,
        resource_class: "VGPU".parse().unwrap(),
        group: "1".to_owned(),
        traits: BTreeSet::from(["CUSTOM_GOLD".parse().unwrap()]),
        state: ClaimState::InUse,
        was_parked: false,
        role: ClaimRole::Primary,
        created_usec: 5,
    }
}

fn instance(name: &str, flavor: Option<&str>) -> Instance {
    Instance {
        uuid: InstanceUuid(uuid::Uuid::from_u128(1)),
        name: name.to_owned(),
        owner: DomainOwner::Mdevirt,
        request_digest: String::new(),
        flavor: flavor.map(str::to_owned),
        created_usec: 5,
    }
}

fn of(name: &str, xml: &str, count: u128) -> Handover {
    let claims: Vec<Claim> = (0..count).map(claim).collect();
    let instance = instance(name, Some("resources:VGPU=1"));
    let domain_xml = xml.to_owned();
    Handover::of(Leaving {
        host: "gpu-01",
        instance: &instance,
        claims: &claims,
        begun: true,
        running: true,
        lock: None,
        domain_xml,
    })
    .unwrap()
}

fn text(document: &Handover) -> String {
    serde_json::to_string(document).unwrap()
}

fn refusal(text: &str) -> String {
    let fault = Handover::parse(text).unwrap_err();
    assert_eq!(fault.kind, FaultKind::InvalidRequest);
    assert!(fault.message.starts_with("the migration document: "), "{fault}");
    fault.message
}

#[test]
fn it_names_no_local_type_id_and_no_parent() {
    let text = text(&of("web-01", "<domain/>", 2));
    assert!(!text.contains("nvidia-18") && !text.contains("84:00"), "{text}");
    assert!(text.contains("GRID M60-2Q") && text.contains("CUSTOM_GOLD"), "{text}");
}

/// Every leaf of the document, changed to another value of its kind.
fn changed(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => vec![json!("x"), json!(1)],
        Value::Bool(b) => vec![json!(!b)],
        Value::Number(n) => vec![json!(n.as_u64().unwrap() + 1)],
        Value::String(s) => vec![json!(format!("{s} ")), json!(s.to_uppercase()), json!(null)],
        Value::Array(list) => {
            let each = list.iter().enumerate().flat_map(|(at, one)| {
                changed(one).into_iter().map(move |new| {
                    let mut list = list.clone();
                    list[at] = new;
                    json!(list)
                })
            });
            let shorter = (!list.is_empty()).then(|| json!(list[1..]));
            each.chain(shorter).collect()
        }
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, one)| {
                changed(one).into_iter().map(move |new| {
                    let mut map = map.clone();
                    map.insert(key.clone(), new);
                    json!(map)
                })
            })
            .collect(),
    }
}

/// Another way to write the same (capitals in a UUID, a null left out) is no change.
fn refused_or_the_same(text: &str) {
    match Handover::parse(text) {
        Ok(document) => assert_eq!(document, of("web-01", "<domain/>", 2), "{text}"),
        Err(fault) => assert_eq!(fault.kind, FaultKind::InvalidRequest, "{text}"),
    }
}

#[test]
fn whatever_is_changed_on_the_way_is_refused() {
    let document: Value = serde_json::from_str(&text(&of("web-01", "<domain/>", 2))).unwrap();
    let all = changed(&document);
    assert!(all.len() > 40, "{}", all.len());
    for other in all.iter().filter(|other| **other != document) {
        refused_or_the_same(&other.to_string());
    }
    let same = all.iter().filter(|other| Handover::parse(&other.to_string()).is_ok()).count();
    assert!(same * 2 < all.len(), "capitals and blanks: {same} of {}", all.len());
    for key in document.as_object().unwrap().keys() {
        let mut less = document.clone();
        less.as_object_mut().unwrap().remove(key);
        refused_or_the_same(&less.to_string());
    }
}

#[test]
fn another_form_is_named_whatever_else_is_in_it() {
    for version in [0, 2, 99] {
        let why = refusal(&json!({ "version": version, "colour": "red" }).to_string());
        assert!(why.contains(&format!("form {version}")) && why.contains("reads 1"), "{why}");
    }
    let more: Value = serde_json::from_str(&text(&of("web-01", "<domain/>", 1))).unwrap();
    for at in ["", "/devices/0", "/devices/0/identity"] {
        let mut more = more.clone();
        more.pointer_mut(at).unwrap()["colour"] = json!("red");
        assert!(refusal(&more.to_string()).contains("unknown field"), "{at}");
    }
}

#[test]
fn size_and_depth_are_bounded() {
    assert!(refusal(&" ".repeat(MAX_HANDOVER_BYTES + 1)).contains("bytes are not taken"));
    assert!(refusal(&"[".repeat(1_000_000)).contains("not one of"));
    let deep = format!("{{\"version\":1,\"lock\":{}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(refusal(&deep).contains("not one of"));
    // The greatest domain XML fits, with every byte of it escaped.
    let document = of("web-01", &"\"".repeat((4 << 20) - 1000), 2);
    assert_eq!(Handover::parse(&text(&document)).unwrap(), document);
}

#[test]
fn a_device_of_an_older_program_does_not_travel() {
    let old = Claim { identity: None, ..claim(7) };
    let instance = instance("web-01", None);
    let claims = [claim(6), old];
    let leaving = Leaving {
        host: "h",
        instance: &instance,
        claims: &claims,
        begun: true,
        running: false,
        lock: None,
        domain_xml: String::new(),
    };
    let fault = Handover::of(leaving).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Incompatible);
    assert!(fault.message.contains(&claims[1].uuid.to_string()), "{fault}");
}

proptest! {
    #[test]
    fn what_was_sent_arrives(name in any::<String>(), xml in any::<String>(), count in 0u128..4, spaced in any::<bool>()) {
        let document = of(&name, &xml, count);
        let sent = if spaced { serde_json::to_string_pretty(&document).unwrap() } else { text(&document) };
        prop_assert_eq!(Handover::parse(&sent).unwrap(), document);
    }

    #[test]
    fn no_text_is_too_odd(text in any::<String>()) {
        prop_assert!(Handover::parse(&text).is_err());
    }

    #[test]
    fn nor_is_a_damaged_document(at in any::<prop::sample::Index>(), with in any::<char>()) {
        let whole = text(&of("web-01", "<domain/>", 2));
        let mut chars: Vec<char> = whole.chars().collect();
        let at = at.index(chars.len());
        chars[at] = with;
        let damaged: String = chars.into_iter().collect();
        refused_or_the_same(&damaged);
    }
}
