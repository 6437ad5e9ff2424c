//! Every method: what it hands to the service and what comes back.

use mdevirt::model::{DisplayWish, Fault, FaultKind};
use mdevirt::service::api::UseCases;
use serde_json::json;

use crate::bus::{Fake, Pace, PrivateBus, sample};
use crate::{client, fault, manager, record, spawn_options};

const INSTANCE: &str = "11111111-2222-4333-8444-555555555555";

#[tokio::test]
async fn reading_gives_what_the_service_has() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let client = client(&bus).await;
    assert_eq!(client.status().await.unwrap(), service.status().await.unwrap());
    assert_eq!(client.devices().await.unwrap(), service.devices().await.unwrap());
    assert_eq!(client.inventory().await.unwrap(), service.inventory().await.unwrap());
    assert_eq!(client.instances().await.unwrap(), service.instances().await.unwrap());
    assert_eq!(client.config_text().await.unwrap(), service.config_text().await.unwrap());
    assert_eq!(client.reload().await.unwrap(), service.reload().await.unwrap());
    for dry_run in [false, true] {
        let found = client.reconcile(dry_run).await.unwrap();
        assert_eq!(found, service.reconcile(dry_run).await.unwrap());
    }
    assert!(client.jobs().await.unwrap().is_empty());
}

#[tokio::test]
async fn verbs_hand_over_their_arguments() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let manager = manager(&bus).await;
    let id = || record(&json!({ "operation_id": "op" }));
    service.world().asked.clear();
    let options = json!({"domain_xml": "<domain/>", "flavor": "resources:VGPU=1", "display": "on"});
    manager.spawn(record(&options)).await.unwrap();
    manager.preview_spawn(record(&options)).await.unwrap();
    manager.destroy("web-01", id()).await.unwrap();
    manager.start(INSTANCE, record(&json!({}))).await.unwrap();
    manager.stop("$(touch pwned);id #", record(&json!({}))).await.unwrap();
    manager.claim(record(&json!({"instance": INSTANCE, "name": "n", "flavor": "f"}))).await.unwrap();
    manager.release(INSTANCE, record(&json!({}))).await.unwrap();
    let xml = manager.render_domain("web-01", "<domain/>", record(&json!({"display": "on"}))).await.unwrap();
    assert_eq!(xml, "<!-- rendered --><domain/>");
    let hooked = manager
        .hook(["web-01", "migrate", "begin", "-"].map(String::from).into(), "<domain>before</domain>")
        .await
        .unwrap();
    assert_eq!(hooked, "<domain>after</domain>");
    let devices =
        manager.domain_request("web-01", record(&json!({"flavor": "resources:VGPU=1"}))).await.unwrap();
    assert_eq!(devices, [sample::claim().uuid.to_string()]);
    let asked = service.world().asked.clone();
    let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
    assert_eq!(
        asked,
        [
            r#"spawn {"domain_xml":"<domain/>","flavor":"resources:VGPU=1","display":"on","operation_id":null,"dry_run":false}"#,
            r#"preview {"domain_xml":"<domain/>","flavor":"resources:VGPU=1","display":"on","operation_id":null,"dry_run":true}"#,
            r#"destroy "web-01" Some("op")"#,
            r#"start "11111111-2222-4333-8444-555555555555" None"#,
            r#"stop "$(touch pwned);id #" None"#,
            r#"claim {"instance":"11111111-2222-4333-8444-555555555555","name":"n","flavor":"f","operation_id":null}"#,
            r#"release "11111111-2222-4333-8444-555555555555" None"#,
            r#"render "web-01" 9 On"#,
            r#"hook "web-01" migrate begin - "<domain>before</domain>""#,
            r#"request "web-01" Some("resources:VGPU=1")"#,
        ]
    );
}

#[tokio::test]
async fn a_preview_is_the_spawn_without_its_job() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let request = mdevirt::service::api::SpawnRequest {
        domain_xml: "<domain/>".to_owned(),
        flavor: "resources:VGPU=1".to_owned(),
        display: DisplayWish::Off,
        operation_id: None,
        dry_run: true,
    };
    let shown = client(&bus).await.preview_spawn(&request).await.unwrap();
    assert_eq!(shown, service.preview_spawn(request).await.unwrap());
    assert_eq!(shown.job, None);
    assert!(service.world().jobs.is_empty());
}

#[tokio::test]
async fn the_same_operation_id_gives_the_same_job() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let manager = manager(&bus).await;
    let mut options = spawn_options();
    options.extend(record(&json!({ "operation_id": "op-1" })));
    let first = manager.spawn(options.clone()).await.unwrap();
    assert_eq!(manager.spawn(options).await.unwrap(), first);
    assert_ne!(manager.spawn(spawn_options()).await.unwrap(), first);
}

#[tokio::test]
async fn every_kind_of_failure_arrives_with_text_and_details() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let manager = manager(&bus).await;
    for kind in FaultKind::ALL {
        let sent = Fault::new(*kind, format!("{kind} on 0000:84:00.0; do this next"))
            .with_details(json!({"parents": [{"parent": "0000:84:00.0", "reason": "full"}]}));
        service.world().fault = Some(sent.clone());
        assert_eq!(fault(manager.spawn(spawn_options()).await), sent);
        assert_eq!(fault(manager.inventory().await), sent);
    }
}

#[tokio::test]
async fn a_job_is_found_by_its_id_or_named_as_missing() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let (client, manager) = (client(&bus).await, manager(&bus).await);
    let path = manager.spawn(spawn_options()).await.unwrap();
    let id = mdevirt::dbus::path::job_of(&path).unwrap();
    assert_eq!(client.job(id).await.unwrap(), service.job(id).await.unwrap());
    assert_eq!(client.jobs().await.unwrap().len(), 1);
    assert_eq!(fault(manager.get_job(INSTANCE).await).kind, FaultKind::NoSuchJob);
    assert_eq!(fault(manager.get_job("../x").await).kind, FaultKind::InvalidRequest);
}

#[tokio::test]
async fn thirty_two_calls_in_flight_are_all_answered() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve(&service).await;
    let manager = manager(&bus).await;
    let calls = (0..32).map(|_| manager.spawn(spawn_options()));
    let mut paths: Vec<String> = futures_util::future::join_all(calls)
        .await
        .into_iter()
        .map(|path| path.unwrap().to_string())
        .collect();
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), 32);
}

#[tokio::test]
async fn a_live_migration_hands_over_its_documents() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let (manager, client) = (manager(&bus).await, client(&bus).await);
    service.world().asked.clear();
    assert_eq!(client.live_check_source("web-01").await.unwrap(), "{}");
    assert_eq!(client.live_check_target("{1}").await.unwrap(), sample::live_check());
    manager.live_prepare(record(&json!({"document": "{2}", "operation_id": "op"}))).await.unwrap();
    let all = json!({"document": "{3}", "uri": "qemu+ssh://b/system", "bandwidth_mib": 100, "downtime_ms": 5000, "peer": "b"});
    manager.live_commit("web-01", record(&all)).await.unwrap();
    manager.live_commit("web-01", record(&json!({}))).await.unwrap();
    manager.live_rollback("web-01", record(&json!({}))).await.unwrap();
    let asked = service.world().asked.clone();
    assert_eq!(
        asked,
        [
            r#"live-check-source "web-01""#,
            r#"live-check-target "{1}""#,
            r#"live-prepare "{2}" Some("op")"#,
            r#"live-commit "web-01" None OperateWith { flavor: None, domain_xml: None, display: Off, device: None, peer: Some("b"), live: LiveOptions { document: Some("{3}"), uri: Some("qemu+ssh://b/system"), bandwidth_mib: Some(100), downtime_ms: Some(5000) } }"#,
            r#"live-commit "web-01" None"#,
            r#"live-rollback "web-01" None"#,
        ]
    );
    for (options, word) in [
        (json!({"bandwidth_mib": 0}), "option bandwidth_mib: expected a number from 1"),
        (json!({"downtime_ms": "5"}), "option downtime_ms: expected a number from 1"),
        (
            json!({"bandwidth_mib": 5_000_000_000_u64}),
            "option bandwidth_mib: expected a number from 1 to 4294967295",
        ),
        (json!({"postcopy": true}), "unknown option postcopy"),
    ] {
        let refused = fault(manager.live_commit("web-01", record(&options)).await);
        assert!(refused.kind == FaultKind::InvalidRequest && refused.message.starts_with(word), "{refused}");
    }
    assert_eq!(service.world().asked.len(), 6, "a refused call is not heard of");
}
