//! Types and devices under odd names.
//!
//! | case | what is right | test |
//! |---|---|---|
//! | 01 | 1, 2, 3, 5, 6 | `types_without_a_name` |
//! | 01 | 4 | later: traits |
//! | 02 | 1, the table | `odd_type_names_are_shown_as_they_are` |
//! | 02 | 2, 3, 4 | later: traits |
//! | 02 | 5 | `tests/xml` (a name is never written into a document); no other use of a name exists |
//! | 03 | 1, 2, 3, 4 | `old_and_new_names_of_mdevs` |
//! | 03 | 5 | `a_name_that_is_too_short_spoils_one_device` |
//! | 04 | 1, 2, 6 | `one_uuid_on_two_parents` |
//! | 04 | 3 | `one_uuid_on_two_parents`, and `the_key_is_uuid_and_parent` in `tests/libvirt_nodedev.rs` |
//! | 04 | 4 | no call takes a UUID alone: `remove` is given the parent |
//! | 04 | 5 | `the_other_definition_outlives_the_vm`, and `one_definition_of_two_is_removed` in `tests/sysfs.rs` |
//! | 06 | 1, 4, 5 | `one_type_under_two_prefixes` |
//! | 06 | 2 | `tests/config_cases` |
//! | 06 | 3 | later: traits |

use mdevirt::host::{HostError, NodeDevices};
use mdevirt::model::{DeviceApi, FindingKind, MdevUuid, NewMdev};
use mdevirt::service::api::{MdevView, UseCases};

use crate::listing::{Listing, nodedev_dir};
use crate::setup::{Setup, case_text, from_sysfs};

/// 01, once through libvirt's XML and once through sysfs.
#[tokio::test]
async fn types_without_a_name() {
    let case = "01-type-without-name";
    let seen_by_sysfs = from_sysfs(case, "sysfs.txt");
    let facts: Vec<usize> =
        seen_by_sysfs.scan.parents[0].types.iter().map(|t| t.facts.description.len()).collect();
    assert_eq!(facts, [5, 0]);
    for setup in [Setup::new(case), Setup::new(case).on(seen_by_sysfs)] {
        let host = setup.nova("nova.conf").start().await;
        let igd = host.device("0000:00:02.0").await;
        let types: Vec<(&str, Option<&str>)> =
            igd.types.iter().map(|t| (t.id.as_str(), t.name.as_deref())).collect();
        assert_eq!(types, [("i915-GVTg_V5_4", None), ("i915-GVTg_V5_8", None)]);
        assert_eq!(host.totals().await, ["0000:00:02.0 VGPU 1"]);
        let record = host.record("0000:00:02.0").await;
        assert_eq!((record.provider.as_str(), record.max_unit), ("h1_pci_0000_00_02_0", 1));
        assert_eq!(record.type_name, "i915-GVTg_V5_4");
        assert_eq!(host.findings().await, [""; 0]);
        assert_eq!(host.claimed("resources:VGPU=1").await.claims[0].type_name, "i915-GVTg_V5_4");
    }
}

/// 02
#[tokio::test]
async fn odd_type_names_are_shown_as_they_are() {
    let host = Setup::new("02-type-name-odd-characters").start().await;
    let devices = host.devices().await;
    let types = devices.iter().flat_map(|d| &d.types);
    let names: Vec<(&str, &str)> = types.map(|t| (t.id.as_str(), t.name.as_deref().unwrap())).collect();
    assert_eq!(
        names,
        [
            ("demo-1", "Demo v1.5/x+me"),
            ("demo-2", "Demo v1 5 x me"),
            ("demo-3", "Demo  v1.5"),
            ("nvidia-474", "GRID A100-1-5C"),
            ("nvidia-706", "GRID A100-1-5CME"),
            ("vfio_ccw-io", "I/O subchannel (Non-QDIO)"),
        ]
    );
    assert_eq!(host.findings().await, [""; 0]);
}

const OLD: &str = "e38f8857-e8ba-4559-b696-d9c39e499710";
const NEW: &str = "7035cae6-b8e5-4c7a-926a-48effcbe0ea3";
const UNTYPED: &str = "b4645cc2-b09f-4e90-895d-5b773cf165cc";

/// 03
#[tokio::test]
async fn old_and_new_names_of_mdevs() {
    let host = Setup::new("03-mdev-node-names").nova("nova.conf").start().await;
    let t4 = host.device("0000:3b:00.0").await;
    let mut listed: Vec<(String, Option<&str>)> =
        t4.mdevs.iter().map(|m| (m.uuid.to_string(), m.mdev_type.as_ref().map(|id| id.as_str()))).collect();
    listed.sort();
    let typed = Some("nvidia-231");
    assert_eq!(listed, [(NEW.into(), typed), (UNTYPED.into(), None), (OLD.into(), typed)]);
    for uuid in [OLD, NEW, UNTYPED] {
        assert_eq!(host.sim.find(uuid.parse().unwrap()).await.unwrap().len(), 1, "{uuid}");
    }
    assert_eq!(host.totals().await, ["0000:3b:00.0 VGPU 7"]);
    assert!(host.finds(UNTYPED, &["type", "0000:3b:00.0"]).await, "{:?}", host.findings().await);

    // All three are of others: what can be made is given out, and nothing else.
    for _ in 0..5 {
        let uuid = host.claimed("resources:VGPU=1").await.claims[0].uuid.to_string();
        assert!(![OLD, NEW, UNTYPED].contains(&uuid.as_str()), "{uuid}");
    }
    host.refused("resources:VGPU=1").await;
    assert_eq!(host.active().await.len(), 8);
}

/// 03, 5
#[tokio::test]
async fn a_name_that_is_too_short_spoils_one_device() {
    let case = "03-mdev-node-names";
    let short = case_text("03-mdev-node-names/nodedev/mdev_a.xml")
        .replace("mdev_e38f8857_e8ba_4559_b696_d9c39e499710", "mdev_e38f8857");
    let mut listing = Listing::of_files(&nodedev_dir(case));
    for _ in 0..2 {
        // Told twice, by whatever of two readings; shown once.
        listing.add("mdev_e38f8857", short.as_bytes());
    }
    let host = Setup::new(case).on(listing.finish()).nova("nova.conf").start().await;
    assert_eq!(host.device("0000:3b:00.0").await.mdevs.len(), 3);
    assert_eq!(host.totals().await, ["0000:3b:00.0 VGPU 7"]);
    let status = host.status().await;
    let malformed: Vec<&str> = status
        .findings
        .iter()
        .filter(|f| f.kind == FindingKind::MalformedInput)
        .map(|f| f.about.as_str())
        .collect();
    assert_eq!(malformed, ["mdev_e38f8857"]);
}

const SHARED: &str = "1fc01460-67d7-4303-a5ea-69a57b994f50";

/// `PARENT ACTIVE` of each device with the UUID of case 04.
async fn shared(host: &crate::setup::Case) -> Vec<(String, bool)> {
    let uuid: MdevUuid = SHARED.parse().unwrap();
    host.scan().await.mdevs_with(uuid).map(|m| (m.parent.to_string(), m.active)).collect()
}

/// 04
#[tokio::test]
async fn one_uuid_on_two_parents() {
    let host = Setup::new("04-same-uuid-two-parents")
        .nova("nova.conf")
        .domain("domain.xml", true)
        .remembered()
        .start()
        .await;
    let mut keys: Vec<String> = Vec::new();
    for parent in host.devices().await {
        let shown = |m: &MdevView| format!("{} {} {}", m.parent, &m.uuid.to_string()[..8], m.usage);
        keys.extend(parent.mdevs.iter().map(shown));
    }
    assert_eq!(
        keys,
        [
            "0000:3b:00.0 1fc01460 instance render-07",
            "0000:86:00.0 1fc01460 only defined; active on 0000:3b:00.0",
            "0000:86:00.0 e642cfd7 idle",
        ]
    );
    assert!(host.finds(SHARED, &["0000:3b:00.0", "0000:86:00.0", "undefine"]).await);
    assert_eq!(host.totals().await, ["0000:3b:00.0 VGPU 8", "0000:86:00.0 VGPU 8"]);
    assert!(host.status().await.connected);

    let start = NewMdev {
        uuid: SHARED.parse().unwrap(),
        parent: "0000:86:00.0".parse().unwrap(),
        type_id: "nvidia-231".parse().unwrap(),
        device_api: DeviceApi::VfioPci,
    };
    let refused = host.sim.create(&start).await.unwrap_err();
    assert!(matches!(&refused, HostError::Refused(why) if why.contains("0000:3b:00.0")), "{refused}");
    assert_eq!(shared(&host).await, [("0000:3b:00.0".into(), true), ("0000:86:00.0".into(), false)]);

    // Every place is given out; the idle device is one of them, the shared UUID is none.
    for n in 0..15 {
        let held = host.claimed("resources:VGPU=1").await;
        assert_ne!(held.claims[0].uuid.to_string(), SHARED, "claim {n}");
    }
    assert_eq!(host.active().await.len(), 16);
    host.refused("resources:VGPU=1").await;
}

/// 04, 5: what is given back is one of the two.
#[tokio::test]
async fn the_other_definition_outlives_the_vm() {
    let host = Setup::new("04-same-uuid-two-parents")
        .nova("nova.conf")
        .domain("domain.xml", true)
        .remembered()
        .start()
        .await;
    host.done(host.service().destroy("render-07", None).await).await;
    assert_eq!(shared(&host).await, [("0000:86:00.0".into(), false)]);
}

/// 06, through libvirt's XML and through sysfs.
#[tokio::test]
async fn one_type_under_two_prefixes() {
    let case = "06-type-prefix-by-driver";
    let mut seen_by_sysfs = from_sysfs(case, "sysfs.txt");
    for vf in &mut seen_by_sysfs.scan.parents {
        // The description leaves out whose functions they are.
        vf.physical_function = Some("0000:e8:00.0".parse().unwrap());
    }
    for setup in [Setup::new(case), Setup::new(case).on(seen_by_sysfs)] {
        let host = setup.nova("nova.conf").start().await;
        assert_eq!(host.totals().await, ["0000:e8:00.4 VGPU 1", "0000:e8:04.0 VGPU 1"]);
        assert_eq!(host.findings().await, [""; 0]);
        for _ in 0..2 {
            host.claimed("resources:VGPU=1").await;
        }
        let made: Vec<(String, String)> = host
            .scan()
            .await
            .mdevs
            .iter()
            .map(|m| (m.parent.to_string(), m.type_id.as_ref().unwrap().to_string()))
            .collect();
        assert_eq!(made.len(), 2);
        for (parent, type_id) in made {
            assert_eq!(type_id, if parent == "0000:e8:04.0" { "vfio-pci-575" } else { "nvidia-575" });
        }
    }
}
