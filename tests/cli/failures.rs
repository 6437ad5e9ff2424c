//! Failures: the exit code of each kind, the text, the JSON, and what happens without a daemon.

use mdevirt::model::{Fault, FaultKind, SagaState};
use serde_json::json;

use crate::bus::{Fake, Nobody, Pace, PrivateBus};
use crate::{ctl, json, on_bus, program, run};

#[tokio::test]
async fn every_kind_has_its_exit_code_text_and_json() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve(&service).await;
    let codes = [
        ("InvalidRequest", 2),
        ("InvalidMdevConfig", 2),
        ("InvalidDomainXml", 2),
        ("NoSuchInstance", 6),
        ("NoSuchParent", 6),
        ("NoSuchJob", 6),
        ("InstanceExists", 6),
        ("InstanceBusy", 4),
        ("DeviceInUse", 4),
        ("RestorePending", 4),
        ("ShuttingDown", 4),
        ("NoCapacity", 3),
        ("TypeUnavailable", 3),
        ("TraitDrift", 5),
        ("TraitMismatch", 5),
        ("TraitUnmapped", 5),
        ("Incompatible", 5),
        ("AccessDenied", 7),
        ("HostUnreachable", 8),
        ("Timeout", 8),
        ("HostRefused", 1),
        ("NotSupported", 1),
        ("StoreUnavailable", 1),
        ("OperationStuck", 1),
        ("Internal", 1),
    ];
    assert_eq!(
        codes.map(|(name, _)| name),
        *FaultKind::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>()
    );
    for (name, code) in codes {
        let details = json!({"on": "0000:84:00.0"});
        let fault = Fault::new(name.parse().unwrap(), "what; do this").with_details(details.clone());
        service.world().fault = Some(fault);
        let ran = ctl(&bus, &["inventory"]).await;
        assert_eq!(
            (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
            (code, "", "mdevirtctl: what; do this\n")
        );
        let ran = ctl(&bus, &["start", "web-01", "--json"]).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""));
        let want = json!({"error": {"kind": name, "message": "what; do this", "details": details}});
        assert_eq!(json(&ran.stderr), want);
    }
}

#[tokio::test]
async fn a_failed_job_is_a_failure_with_its_reasons() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve(&service).await;
    let reasons = json!({"parents": [{"parent": "0000:84:00.0", "reason": "4 of 4 used"}]});
    let result = json!({"kind": "NoCapacity", "message": "no parent fits VGPU=1", "details": reasons});
    service.world().end = Some((SagaState::Failed, result));
    let ran = ctl(&bus, &["spawn", "-", "--flavor", "resources:VGPU=1"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""));
    assert_eq!(ran.stderr, "mdevirtctl: no parent fits VGPU=1\n  0000:84:00.0: 4 of 4 used\n");
    service.world().end = Some((SagaState::Stuck, json!({})));
    let ran = ctl(&bus, &["destroy", "web-01", "--json"]).await;
    assert_eq!((ran.code, &json(&ran.stderr)["error"]["kind"]), (1, &json!("OperationStuck")));
}

#[tokio::test]
async fn what_is_not_there_is_named() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve(&service).await;
    for (args, code, word) in [
        (&["instance", "show", "we\u{1b}b"][..], 6, "no instance we\\u{1b}b"),
        (&["device", "show", "0000:99:00.0"], 6, "no device at 0000:99:00.0"),
        (&["device", "show", "0000:99:00"], 2, "not a valid PCI address"),
        (&["job", "show", "00000000-0000-4000-8000-000000000099"], 6, "there is no job"),
        (&["job", "show", "x"], 2, "not a valid job id"),
        (&["claim", "create", "--instance", "web-01", "--flavor", "f"], 2, "not a valid instance UUID"),
        (&["spawn", "/nonexistent.xml", "--flavor", "f"], 2, "/nonexistent.xml: cannot be read"),
        (&["spawn", "/dev/zero", "--flavor", "f"], 2, "/dev/zero: more than 4194304 bytes"),
        (&["start", "web-01", "--operation-id", "a\nb"], 2, "option operation_id"),
        (&["trait", "show", "CUSTOM_\u{1b}"], 5, "no trait CUSTOM_\\u{1b} in traits.toml"),
        (&["trait", "accept", "X", "--reason", "r", "--parent", "../x"], 2, "not a valid device address"),
        (&["plan", "--config", "/nonexistent.toml"], 2, "/nonexistent.toml: there is no such file"),
    ] {
        let ran = ctl(&bus, args).await;
        assert_eq!(ran.code, code, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(word) && ran.stdout.is_empty(), "{args:?}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
    assert!(service.world().jobs.is_empty());
}

#[tokio::test]
async fn a_refused_caller_is_told_so() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve_for(&service, std::sync::Arc::new(Nobody)).await;
    for args in [&["destroy", "web-01"][..], &["trait", "lock"], &["trait", "accept", "X", "--reason", "r"]] {
        let ran = ctl(&bus, args).await;
        assert_eq!((ran.code, ran.stderr.as_str()), (7, "mdevirtctl: nobody may\n"), "{args:?}");
    }
}

#[tokio::test]
async fn without_a_daemon_or_a_bus_the_code_is_eight() {
    let mut bus = PrivateBus::start();
    for args in
        [&["status"][..], &["monitor"], &["doctor"], &["trait", "list"], &["spawn", "-", "--flavor", "f"]]
    {
        let ran = ctl(&bus, args).await;
        assert_eq!(ran.code, 8, "{args:?}");
        assert!(ran.stderr.contains("is mdevirtd running"), "{}", ran.stderr);
    }
    bus.stop();
    let ran = ctl(&bus, &["status", "--json"]).await;
    assert_eq!((ran.code, &json(&ran.stderr)["error"]["kind"]), (8, &json!("HostUnreachable")));
    assert!(ran.stderr.contains("cannot connect to the bus at unix:path="), "{}", ran.stderr);
    let ran = run(program(&["status", "--address", "nonsense"]), "").await;
    assert_eq!(ran.code, 8, "{}", ran.stderr);
}

#[tokio::test]
async fn a_job_that_takes_too_long_is_named_and_goes_on() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let ran = ctl(&bus, &["start", "web-01", "--timeout", "1", "--json"]).await;
    assert_eq!(ran.code, 8);
    let error = &json(&ran.stderr)["error"];
    assert_eq!(error["kind"], "Timeout");
    let job = service.world().jobs[0].clone();
    assert_eq!(error["details"], json!({ "job": job.id }));
    assert_eq!(job.state, SagaState::Running);
}

#[tokio::test]
async fn a_daemon_that_goes_away_meanwhile_is_told_with_the_job() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let server = bus.serve(&service).await;
    let mut changes = mdevirt::service::api::UseCases::changes(&*service);
    let running = tokio::spawn(run(on_bus(&bus, &["start", "web-01"]), ""));
    let mdevirt::service::api::Change::JobNew(id) = changes.recv().await.unwrap() else { panic!("no job") };
    // It is on the bus when the next call is answered, so the caller has its path.
    server.stop().await.unwrap();
    let ran = running.await.unwrap();
    assert_eq!(ran.code, 8);
    assert!(ran.stderr.contains(&format!("job {id}")) || ran.stderr.contains("went away"), "{}", ran.stderr);
}
