//! What the fake service has: two cards, one slice of ours in use, one of somebody else.

use mdevirt::model::{Finding, FindingKind, InventoryRecord};
use mdevirt::service::api::{
    ClaimView, DeviceView, InstanceView, LiveCheckView, LockView, MdevView, PlanView, ReconcileView,
    StatusView, TraitCheck, TraitView,
};
use serde_json::{Value, json};

pub const INSTANCE: &str = "11111111-2222-4333-8444-555555555555";

fn value<T: serde::de::DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).expect("the sample fits the types")
}

pub fn claim() -> ClaimView {
    value(json!({
        "device": "mdev_e38f8857_e8ba_4559_b696_d9c39e499710_0000_84_00_0",
        "uuid": "e38f8857-e8ba-4559-b696-d9c39e499710", "address": null, "parent": "0000:84:00.0",
        "mdev_type": "nvidia-746", "type_name": "NVIDIA A2-4Q", "trait": "CUSTOM_SMALL",
        "state": "in-use", "role": "primary"
    }))
}

pub fn instances() -> Vec<InstanceView> {
    let uuid = INSTANCE.parse().expect("a uuid");
    vec![InstanceView {
        uuid,
        name: "web-01".to_owned(),
        owner: mdevirt::model::DomainOwner::Mdevirt,
        flavor: Some("resources:VGPU=1".to_owned()),
        moving: None,
        new_flavor: None,
        peer: None,
        claims: vec![claim()],
    }]
}

/// What a target answers.
pub fn pairs() -> Value {
    let (source, target) = (claim().uuid, "7c1d2e3f-0a4b-4c5d-8e6f-112233445566");
    json!({ "host": "gpu-02", "pairs": [{ "source": source, "target": target }] })
}

pub fn live_check() -> LiveCheckView {
    value(json!({
        "host": "gpu-02",
        "versions": { "libvirt": "11.3.0", "qemu": "10.0.2", "kernel": "6.12.48" },
        "devices": [{ "source": claim().uuid, "parent": "0000:84:00.0", "mdev_type": "nvidia-746", "type_name": "NVIDIA A2-4Q" }]
    }))
}

fn foreign() -> Value {
    json!({
        "uuid": "0b2b4e6e-4e6f-4f7b-9a0c-5d7d1b8f9a01", "parent": "0000:85:00.0", "mdev_type": "nvidia-746",
        "active": true, "defined": false, "foreign": true, "usage": "used by lab-handmade"
    })
}

pub fn devices() -> Vec<DeviceView> {
    let types = json!([
        {"id": "nvidia-745", "name": "NVIDIA A2-2Q", "device_api": "vfio-pci", "available_instances": 0,
         "framebuffer_mib": 2048, "heads": 4, "max_instances": 8},
        {"id": "nvidia-746", "name": "NVIDIA A2-4Q", "device_api": "vfio-pci", "available_instances": 3,
         "framebuffer_mib": 4096, "heads": 4, "max_instances": 4}
    ]);
    let ours = json!({
        "uuid": "e38f8857-e8ba-4559-b696-d9c39e499710", "parent": "0000:84:00.0", "mdev_type": "nvidia-746",
        "active": true, "defined": true, "foreign": false, "usage": "instance web-01"
    });
    value(json!([
        {"address": "0000:84:00.0", "name": "GA107GL [A2 / A16]", "framework": "mdev", "physical_function": null,
         "vendor_id": "0x10de", "device_id": "0x25b6", "numa_node": 1, "iommu_group": 77, "status": "ok",
         "types": types, "mdevs": [ours]},
        {"address": "0000:85:00.0", "name": "GA107GL [A2 / A16]", "framework": "mdev", "physical_function": null,
         "vendor_id": "0x10de", "device_id": "0x25b6", "numa_node": null, "iommu_group": null, "status": "ok",
         "types": types, "mdevs": [foreign()]},
        {"address": "mtty_mtty", "name": "mtty", "framework": "mdev", "physical_function": null,
         "vendor_id": null, "device_id": null, "numa_node": null, "iommu_group": null,
         "status": "no type of it is enabled",
         "types": [{"id": "mtty-1", "name": null, "device_api": "vfio-pci", "available_instances": 24,
                    "framebuffer_mib": null, "heads": null, "max_instances": null}],
         "mdevs": []}
    ]))
}

pub fn inventory() -> Vec<InventoryRecord> {
    value(json!([
        {"provider": "h1_pci_0000_84_00_0", "parent": "0000:84:00.0", "resource_class": "VGPU",
         "mdev_type": "nvidia-746", "type_name": "NVIDIA A2-4Q", "total": 4, "reserved": 0, "max_unit": 1,
         "used": 1, "foreign": 0, "traits": ["CUSTOM_SMALL", "HW_GPU_MAX_DISPLAY_HEADS_4"]},
        {"provider": "h1_pci_0000_85_00_0", "parent": "0000:85:00.0", "resource_class": "CUSTOM_T4_2Q",
         "mdev_type": "nvidia-746", "type_name": "NVIDIA A2-4Q", "total": 4, "reserved": 1, "max_unit": 1,
         "used": 0, "foreign": 1, "traits": []}
    ]))
}

pub fn findings() -> Vec<Finding> {
    vec![Finding::new(
        FindingKind::ConfigWarning,
        "0000:99:00.0",
        "no device has this address; it is taken up when the card appears",
    )]
}

pub fn differences(dry_run: bool) -> Vec<ReconcileView> {
    let one = |text: serde_json::Value| serde_json::from_value(text).unwrap();
    vec![
        one(serde_json::json!({
            "kind": "orphan",
            "device": "mdev_4b20d080_1b54_4048_85b3_a6a62d165c01_0000_84_00_0",
            "uuid": "4b20d080-1b54-4048-85b3-a6a62d165c01",
            "parent": "0000:84:00.0",
            "action": "remove",
            "done": !dry_run,
            "text": "no instance holds it",
        })),
        one(serde_json::json!({
            "kind": "unknown-uuid",
            "device": "4b20d080-1b54-4048-85b3-a6a62d165c02",
            "uuid": "4b20d080-1b54-4048-85b3-a6a62d165c02",
            "action": "none",
            "done": false,
            "text": "domain \"lab\" names it",
        })),
    ]
}

pub fn status() -> StatusView {
    StatusView {
        version: "1.2.3".to_owned(),
        libvirt_uri: "qemu:///system".to_owned(),
        connected: true,
        simulated: false,
        providers: 2,
        instances: 1,
        claims: 1,
        jobs_running: 0,
        restore: None,
        jobs_stuck: 0,
        foreign: vec![value::<MdevView>(foreign())],
        findings: findings(),
    }
}

pub const CONFIG: &str =
    "[libvirt]\nuri = \"qemu:///system\"\n\n[devices]\nenabled_mdev_types = [\"nvidia-746\"]\n";

fn identity(name: &str, mib: u32) -> Value {
    json!({
        "vendor_id": "0x10de", "device_id": null, "name": name, "type_id": null, "device_api": "vfio-pci",
        "framebuffer_mib": mib, "heads": 4, "max_resolution": "7680x4320"
    })
}

const DRIFT: &str = "CUSTOM_GOLD was NVIDIA A2-8Q (10de, vfio-pci, 8192 MiB, 4 heads, 7680x4320), and on 0000:85:00.0 it is \
    NVIDIA A2-8C (10de, vfio-pci, 8192 MiB, 4 heads, 7680x4320) now; no new claims until `mdevirtctl trait accept CUSTOM_GOLD`";

/// One that stands well after a renumbering, and one that drifted.
pub fn traits() -> Vec<TraitView> {
    let line = |parent: &str, seconds: i64, kind: &str, reason: &str| {
        json!({
            "at_usec": 1_764_500_000_000_000_i64 + seconds * 1_000_000, "parent": parent, "kind": kind,
            "was": "nvidia-700", "now": "nvidia-746", "reason": reason
        })
    };
    let history = [
        line("0000:84:00.0", 0, "renumbered", ""),
        line("0000:85:00.0", 0, "renumbered", ""),
        line("0000:84:00.0", 60, "accepted", "driver 580 calls it so"),
    ];
    value(json!([
        {"name": "CUSTOM_GOLD", "type_name": "NVIDIA A2-8Q", "identity": identity("NVIDIA A2-8Q", 8192),
         "local_types": [], "state": "drift", "locked": true, "history": [],
         "reason": DRIFT},
        {"name": "CUSTOM_SMALL", "type_name": "NVIDIA A2-4Q", "identity": identity("NVIDIA A2-4Q", 4096),
         "local_types": [{"parent": "0000:84:00.0", "id": "nvidia-746"}, {"parent": "0000:85:00.0", "id": "nvidia-746"}],
         "state": "ok", "locked": true, "reason": "", "history": history}
    ]))
}

pub fn lock() -> LockView {
    value(json!({
        "path": "/etc/mdevirt/traits.lock", "revision": 3, "traits": 2,
        "digest": "5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9",
        "left_out": [{"trait": "CUSTOM_NEW", "reason": "no parent of this host offers NVIDIA A2-16Q"}]
    }))
}

pub fn trait_check() -> TraitCheck {
    value(json!({
        "agree": false, "lock": lock(),
        "differences": [{
            "trait": "CUSTOM_GOLD", "state": "drift", "locked": identity("NVIDIA A2-8Q", 8192),
            "found": [identity("NVIDIA A2-8C", 8192)], "reason": DRIFT
        }]
    }))
}

pub fn plan() -> PlanView {
    value(json!({
        "changes": [
            {"kind": "provider", "name": "h_pci_0000_84_00_0", "field": "total", "from": "4", "to": "8"},
            {"kind": "provider", "name": "h_pci_0000_85_00_0", "field": "", "from": "total 4", "to": null},
            {"kind": "provider", "name": "h_pci_0000_86_00_0", "field": "traits", "from": "CUSTOM_OLD", "to": ""},
            {"kind": "trait", "name": "CUSTOM_NEW", "field": "", "from": null, "to": "state ok"}
        ],
        "findings": []
    }))
}
