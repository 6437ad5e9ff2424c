//! Text and JSON of every answer, against the files in `tests/golden/cli`; `MDEVIRT_REGEN=1` rewrites them.
//!
//! In JSON, keys are added, never renamed.

use std::path::Path;

use serde_json::{Value, json};

use crate::bus::{Fake, Pace, PrivateBus};
use crate::{ctl, json};

pub(crate) fn check(name: &str, seen: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/cli").join(name);
    if std::env::var_os("MDEVIRT_REGEN").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, seen).unwrap();
    }
    let want = std::fs::read_to_string(&file).unwrap_or_else(|err| panic!("{}: {err}", file.display()));
    assert_eq!(seen, want, "{name}");
}

#[tokio::test]
async fn answers_are_as_written_down() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve(&service).await;
    // The first one makes the job that is shown.
    for (name, args) in [
        ("spawn", "spawn - --flavor resources:VGPU=1,trait:CUSTOM_SMALL=required"),
        ("spawn-dry-run", "spawn - --flavor resources:VGPU=1 --dry-run"),
        ("status", "status"),
        ("device-list", "device list"),
        ("device-show", "device show 0000:84:00.0"),
        ("device-show-bare", "device show mtty_mtty"),
        ("type-list", "type list"),
        ("inventory", "inventory"),
        ("instance-list", "instance list"),
        ("instance-show", "instance show web-01"),
        ("job-list", "job list"),
        ("job-show", "job show 00000000-0000-4000-8000-000000000001"),
        ("reload", "reload"),
        ("reconcile", "reconcile"),
        ("reconcile-dry-run", "reconcile --dry-run"),
        ("config-show", "config show"),
        ("config-show-default", "config show --default"),
        ("trait-list", "trait list"),
        ("trait-show", "trait show CUSTOM_SMALL"),
        ("trait-show-drift", "trait show CUSTOM_GOLD"),
        ("trait-lock", "trait lock"),
        ("trait-accept", "trait accept CUSTOM_GOLD --reason renamed"),
        ("trait-export", "trait export"),
        ("plan", "plan"),
    ] {
        let args: Vec<&str> = args.split(' ').collect();
        service.world().jobs.truncate(1);
        for (ending, more) in [("txt", None), ("json", Some("--json"))] {
            let ran = ctl(&bus, &[&args[..], &more.into_iter().collect::<Vec<_>>()].concat()).await;
            assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
            check(&format!("{name}.{ending}"), &ran.stdout);
            service.world().jobs.truncate(1);
        }
    }
}

#[tokio::test]
async fn operations_are_as_written_down() {
    for (name, args) in [
        ("destroy", "destroy web-01"),
        ("start", "start web-01"),
        ("stop", "stop web-01"),
        (
            "claim-create",
            "claim create --instance 11111111-2222-4333-8444-555555555555 --flavor resources:VGPU=1",
        ),
        ("claim-release", "claim release web-01"),
        ("no-wait", "spawn - --flavor resources:VGPU=1 --no-wait"),
    ] {
        let args: Vec<&str> = args.split(' ').collect();
        for (ending, more) in [("txt", None), ("json", Some("--json"))] {
            let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
            let _server = bus.serve(&service).await;
            let ran = ctl(&bus, &[&args[..], &more.into_iter().collect::<Vec<_>>()].concat()).await;
            assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
            check(&format!("{name}.{ending}"), &ran.stdout);
        }
    }
}

/// What is not in order is printed like any answer, and the exit code says it too.
#[tokio::test]
async fn answers_that_are_also_failures_are_as_written_down() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve(&service).await;
    // Whether mdevctl is there is not asked of the machine that runs the tests.
    service.world().status.simulated = true;
    for (name, args, code, kind, text) in [
        ("trait-check", "trait check", 5, "TraitDrift", "this host differs from its lock in CUSTOM_GOLD"),
        ("doctor", "doctor", 1, "HostRefused", "2 of 7 checks failed"),
    ] {
        let args: Vec<&str> = args.split(' ').collect();
        let ran = ctl(&bus, &args).await;
        assert_eq!((ran.code, ran.stderr), (code, format!("mdevirtctl: {text}\n")), "{args:?}");
        check(&format!("{name}.txt"), &ran.stdout);
        let ran = ctl(&bus, &[&args[..], &["--json"]].concat()).await;
        let error = json!({"error": {"kind": kind, "message": text, "details": null}});
        assert_eq!((ran.code, json(&ran.stderr)), (code, error), "{args:?}");
        check(&format!("{name}.json"), &ran.stdout);
    }
}

/// The keys that scripts rely on, and whether anything else of them is missing.
fn has(value: &Value, keys: &[&str]) {
    let object = value.as_object().unwrap_or_else(|| panic!("{value} is no object"));
    for key in keys {
        assert!(object.contains_key(*key), "{key} is missing in {value}");
    }
}

#[tokio::test]
async fn promised_keys_are_there_also_when_they_are_null() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve(&service).await;
    let device_keys = [
        "address",
        "name",
        "framework",
        "physical_function",
        "vendor_id",
        "device_id",
        "numa_node",
        "iommu_group",
        "status",
        "types",
    ];
    let type_keys =
        ["id", "name", "device_api", "available_instances", "framebuffer_mib", "heads", "max_instances"];
    for device in json(&ctl(&bus, &["device", "list", "--json"]).await.stdout).as_array().unwrap() {
        has(device, &device_keys);
        device["types"].as_array().unwrap().iter().for_each(|offered| has(offered, &type_keys));
    }
    for record in json(&ctl(&bus, &["inventory", "--json"]).await.stdout).as_array().unwrap() {
        has(
            record,
            &[
                "provider",
                "parent",
                "resource_class",
                "mdev_type",
                "type_name",
                "total",
                "reserved",
                "max_unit",
                "used",
                "foreign",
                "traits",
            ],
        );
    }
    let claim_keys =
        ["device", "uuid", "address", "parent", "mdev_type", "type_name", "trait", "state", "role"];
    for instance in json(&ctl(&bus, &["instance", "list", "--json"]).await.stdout).as_array().unwrap() {
        has(instance, &["uuid", "name", "claims"]);
        instance["claims"].as_array().unwrap().iter().for_each(|claim| has(claim, &claim_keys));
    }
    for one in json(&ctl(&bus, &["trait", "list", "--json"]).await.stdout).as_array().unwrap() {
        has(one, &["name", "type_name", "local_types", "state", "history"]);
        one["local_types"].as_array().unwrap().iter().for_each(|local| has(local, &["parent", "id"]));
    }
    for (args, job) in [(&["--dry-run"][..], false), (&[], true)] {
        let args = [&["spawn", "-", "--flavor", "resources:VGPU=1", "--json"], args].concat();
        let spawned = json(&ctl(&bus, &args).await.stdout);
        has(&spawned, &["job", "instance", "devices", "domain_xml"]);
        has(&spawned["devices"][0], &claim_keys);
        assert_eq!(spawned["job"] != json!(null), job, "{spawned}");
    }
}
