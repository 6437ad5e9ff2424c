//! What a lock keeps, and which texts are none.

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

fn resolved(traits: &[(&str, &str)]) -> BTreeMap<TraitName, TypeIdentity> {
    traits.iter().map(|(name, type_name)| (name.parse().unwrap(), named(type_name))).collect()
}

const HOW: Acceptance<'_> =
    Acceptance { reason: " driver 570 renames it ", at: 1_796_073_453_000_000, by: Some("gpu-01") };

fn lock() -> Lock {
    let lock = Lock::of(None, &resolved(&[("CUSTOM_SMALL", "GRID A2-2Q"), ("CUSTOM_GOLD", "GRID A2-4Q")]));
    lock.accept(&"CUSTOM_GOLD".parse().unwrap(), &named("NVIDIA A2-4Q"), HOW).unwrap()
}

fn errors(text: &str) -> Vec<String> {
    Lock::parse(text, "t.lock").unwrap_err().errors.iter().map(ToString::to_string).collect()
}

#[test]
fn the_file_is_for_people_and_is_read_back() {
    let text = lock().to_string();
    let want = r#"version = 1
revision = 2
digest = "DIGEST"

[trait.CUSTOM_GOLD]
name = "NVIDIA A2-4Q"
vendor_id = "0x10de"
device_api = "vfio-pci"
framebuffer_mib = 4096
heads = 4
max_resolution = "7680x4320"

[[trait.CUSTOM_GOLD.history]]
at = "2026-11-30 21:17:33Z"
by = "gpu-01"
reason = "driver 570 renames it"
was = { name = "GRID A2-4Q", vendor_id = "0x10de", device_api = "vfio-pci", framebuffer_mib = 4096, heads = 4, max_resolution = "7680x4320" }
now = { name = "NVIDIA A2-4Q", vendor_id = "0x10de", device_api = "vfio-pci", framebuffer_mib = 4096, heads = 4, max_resolution = "7680x4320" }

[trait.CUSTOM_SMALL]
name = "GRID A2-2Q"
vendor_id = "0x10de"
device_api = "vfio-pci"
framebuffer_mib = 4096
heads = 4
max_resolution = "7680x4320"
"#;
    let (head, body) = text.split_at(text.find("version").unwrap());
    assert!(head.lines().all(|line| line.starts_with("# ")), "{head}");
    assert_eq!(body, want.replace("DIGEST", &lock().digest().to_string()));
    assert_eq!(Lock::parse(&text, "t.lock").unwrap(), lock());
}

#[test]
fn locking_again_keeps_what_traits_mean() {
    let first = lock();
    let same = resolved(&[("CUSTOM_SMALL", "another"), ("CUSTOM_GOLD", "another")]);
    assert_eq!(Lock::of(Some(&first), &same), first, "only accept changes a meaning");
    let more = resolved(&[("CUSTOM_GOLD", "another"), ("CUSTOM_NEW", "GRID A2-8Q")]);
    let second = Lock::of(Some(&first), &more);
    assert_eq!(second.revision, 3);
    let gold = "CUSTOM_GOLD".parse().unwrap();
    assert_eq!(second.traits[&gold], first.traits[&gold]);
    assert_eq!(
        second.identities().keys().map(TraitName::as_str).collect::<Vec<_>>(),
        ["CUSTOM_GOLD", "CUSTOM_NEW"]
    );
}

#[test]
fn an_acceptance_is_refused_with_a_kind() {
    let (lock, gold, new) = (lock(), "CUSTOM_GOLD".parse().unwrap(), named("x"));
    let refused =
        |name: &TraitName, identity: &TypeIdentity, how| lock.accept(name, identity, how).unwrap_err().kind;
    assert_eq!(refused(&"CUSTOM_X".parse().unwrap(), &new, HOW), FaultKind::TraitUnmapped);
    assert_eq!(refused(&gold, &named("NVIDIA A2-4Q"), HOW), FaultKind::InvalidRequest);
    let long = "x".repeat(MAX_REASON + 1);
    for reason in ["", " ", "a\nb", &long] {
        assert_eq!(refused(&gold, &new, Acceptance { reason, ..HOW }), FaultKind::InvalidRequest);
    }
    assert_eq!(refused(&gold, &new, Acceptance { by: Some(""), ..HOW }), FaultKind::InvalidRequest);
}

#[test]
fn the_history_is_bounded_and_its_end_is_kept() {
    let gold = "CUSTOM_GOLD".parse().unwrap();
    let lock = (0..=MAX_HISTORY).fold(lock(), |lock, n| {
        lock.accept(&gold, &named(&format!("type {n}")), Acceptance { at: i64::MAX, by: None, ..HOW })
            .unwrap()
    });
    let history = &lock.traits[&gold].history;
    assert_eq!((history.len(), lock.revision), (MAX_HISTORY, 103));
    assert_eq!(history.last().unwrap().now, named("type 100"));
    assert_eq!(Lock::parse(&lock.to_string(), "t.lock").unwrap(), lock);
}

#[test]
fn what_was_changed_by_hand_is_refused_by_what_it_means() {
    let text = lock().to_string();
    for (from, to) in [
        ("framebuffer_mib = 4096\nheads", "framebuffer_mib = 2048\nheads"),
        ("[trait.CUSTOM_SMALL]", "[trait.CUSTOM_TINY]"),
        ("\nname = \"NVIDIA", "\nname = \"GRID"),
        ("heads = 4\n", ""),
    ] {
        let [error] = &errors(&text.replace(from, to))[..] else { panic!("{to}") };
        assert!(error.starts_with("t.lock:5: digest: the traits below have another digest"), "{error}");
        assert!(error.contains("mdevirtctl trait accept"), "{error}");
    }
    for (from, to) in [
        ("# What", "# Which"),
        ("driver 570 renames it", "driver 570.1 renames it"),
        (
            "name = \"NVIDIA A2-4Q\"\nvendor_id = \"0x10de\"",
            "vendor_id = \"10DE\"\nname = \" NVIDIA  A2-4Q\"",
        ),
        ("revision = 2", "revision = 0x2"),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text);
        assert_eq!(Lock::parse(&changed, "t.lock").unwrap().digest(), lock().digest(), "{to}");
    }
}

#[test]
fn what_is_no_lock_is_named_with_its_place() {
    let [newer] = &errors("version = 2\ncolour = 1\n")[..] else { panic!() };
    assert!(newer.starts_with("t.lock:1: version: this lock was written by a newer mdevirt"), "{newer}");
    assert!(errors("")[0].contains("digest is missing"));
    let text = "version = 1\nrevision = 0\ndigest = \"x\"\n[trait.gold]\nname = \"a\"\ndevice_api = \"vfio\"\n\
                [trait.CUSTOM_A]\nname = \"a\"\ntype_id = \"a\"\ndevice_api = \"vfio-pci\"\nhead = 1\n\
                [trait.CUSTOM_B]\ntype_id = \"../x\"\n\
                [trait.CUSTOM_C]\nname = \" \"\ndevice_api = \"vfio-ap\"\nhistory = [{ at = \"now\", was = 1, reason = \"\\n\" }]\n";
    let want = [
        "t.lock:2: revision: expected a number from 1 to 9223372036854775807, found 0",
        "t.lock:3: digest: \"x\" is not a valid digest: expected 64 hexadecimal digits",
        "t.lock:4: trait.gold: \"gold\" is not a valid trait: expected CUSTOM_[A-Z0-9_]+ or a standard trait",
        "t.lock:6: trait.gold.device_api: \"vfio\" is not a valid device API: expected vfio-pci, vfio-ccw or vfio-ap",
        "t.lock:7: trait.CUSTOM_A: an identity has either a name or, of a type without one, a type_id",
        "t.lock:11: trait.CUSTOM_A: unknown key \"head\"; did you mean heads?",
        "t.lock:12: trait.CUSTOM_B: device_api is missing",
        "t.lock:13: trait.CUSTOM_B.type_id: \"../x\" is not a valid mdev type id: expected letters, digits, '_', '-', '.', not beginning with '.'",
        "t.lock:14: trait.CUSTOM_C: name or max_resolution is empty or too long",
        "t.lock:17: trait.CUSTOM_C.history: now is missing",
        "t.lock:17: trait.CUSTOM_C.history.at: \"now\" is not a valid time: expected a form like 2026-11-30 21:17:33Z",
        "t.lock:17: trait.CUSTOM_C.history.reason: \"\\n\" is not a valid line: expected one line of at most 1000 bytes",
        "t.lock:17: trait.CUSTOM_C.history.was: expected a table, found integer",
    ];
    assert_eq!(errors(text), want);
}
