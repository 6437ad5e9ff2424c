//! Who may do what: refused callers reach nothing, readers are not asked, and no answer is a no.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use mdevirt::dbus::{Polkit, SameUser};
use mdevirt::model::{Fault, FaultKind};
use serde_json::json;
use zbus::OwnedVariant;
use zbus_polkit::policykit1::{AuthorizationResult, CheckAuthorizationFlags};

use crate::bus::{Fake, Nobody, Pace, PrivateBus};
use crate::{fault, manager, record, spawn_options};

#[tokio::test]
async fn changing_calls_are_refused_before_the_service_hears_of_them() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve_for(&service, Arc::new(Nobody)).await;
    let manager = manager(&bus).await;
    service.world().asked.clear();
    let none = || record(&json!({}));
    let document = || record(&json!({"document": "{}"}));
    let claim = record(&json!({"instance": "11111111-2222-4333-8444-555555555555", "flavor": "f"}));
    let refusals = [
        fault(manager.spawn(spawn_options()).await),
        fault(manager.destroy("x", none()).await),
        fault(manager.start("x", none()).await),
        fault(manager.stop("x", none()).await),
        fault(manager.claim(claim).await),
        fault(manager.release("x", none()).await),
        fault(manager.migrate_begin("x", none()).await),
        fault(manager.migrate_prepare(document()).await),
        fault(manager.instance_export("x").await),
        fault(manager.live_check_source("x").await),
        fault(manager.live_prepare(document()).await),
        fault(manager.live_commit("x", none()).await),
        fault(manager.live_rollback("x", none()).await),
        fault(manager.reload().await),
        fault(manager.domain_request("x", none()).await),
        fault(manager.hook(["x", "prepare", "begin", "-"].map(String::from).into(), "<domain/>").await),
        fault(manager.reconcile(none()).await),
        fault(manager.trait_lock().await),
        fault(manager.trait_accept("CUSTOM_GOLD", record(&json!({"reason": "r"}))).await),
    ];
    for refusal in refusals {
        assert_eq!(refusal, Fault::new(FaultKind::AccessDenied, "nobody may"));
    }
    assert!(service.world().asked.is_empty(), "{:?}", service.world().asked);
}

#[tokio::test]
async fn reading_is_open() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve_for(&service, Arc::new(Nobody)).await;
    let manager = manager(&bus).await;
    manager.preview_spawn(spawn_options()).await.unwrap();
    manager.render_domain("x", "<domain/>", record(&json!({}))).await.unwrap();
    manager.inventory().await.unwrap();
    manager.devices().await.unwrap();
    manager.instances().await.unwrap();
    manager.jobs().await.unwrap();
    manager.status().await.unwrap();
    manager.reconcile(record(&json!({"dry_run": true}))).await.unwrap();
    manager.config().await.unwrap();
    manager.plan(record(&json!({}))).await.unwrap();
    manager.traits().await.unwrap();
    manager.trait_check().await.unwrap();
    manager.trait_export().await.unwrap();
}

#[tokio::test]
async fn the_daemons_own_user_may_without_polkit() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let authority = SameUser::new(&bus.connect().await).await.unwrap();
    let _server = bus.serve_for(&service, Arc::new(authority)).await;
    manager(&bus).await.spawn(spawn_options()).await.unwrap();
}

type Asked = Arc<Mutex<Vec<(String, String, u32)>>>;

/// Stands in for polkit: the answer is fixed, the questions are kept.
struct Authority {
    yes: bool,
    challenge: bool,
    asked: Asked,
}

#[zbus::interface(name = "org.freedesktop.PolicyKit1.Authority")]
impl Authority {
    fn check_authorization(
        &self,
        subject: (String, HashMap<String, OwnedVariant>),
        action_id: String,
        _details: HashMap<String, String>,
        flags: CheckAuthorizationFlags,
        _cancellation_id: String,
    ) -> AuthorizationResult {
        self.asked.lock().unwrap().push((subject.0, action_id, flags.bits()));
        AuthorizationResult { is_authorized: self.yes, is_challenge: self.challenge, details: HashMap::new() }
    }
}

async fn with_polkit(yes: bool, challenge: bool) -> (Result<(), Fault>, Vec<(String, String, u32)>) {
    let (bus, service, asked) = (PrivateBus::start(), Fake::new(Pace::Held), Asked::default());
    let polkit = bus.connect().await;
    let stand_in = Authority { yes, challenge, asked: asked.clone() };
    polkit.object_server().at("/org/freedesktop/PolicyKit1/Authority", stand_in).await.unwrap();
    polkit.request_name("org.freedesktop.PolicyKit1").await.unwrap();
    let authority = Polkit::new(&bus.connect().await).await.unwrap();
    let _server = bus.serve_for(&service, Arc::new(authority)).await;
    let outcome = manager(&bus).await.spawn(spawn_options()).await;
    let asked = asked.lock().unwrap().clone();
    (outcome.map(drop).map_err(Fault::from), asked)
}

#[tokio::test]
async fn polkit_decides_and_is_told_that_a_person_may_be_asked() {
    let (outcome, asked) = with_polkit(true, false).await;
    outcome.unwrap();
    assert_eq!(asked, [("system-bus-name".to_owned(), "org.mdevirt1.manage".to_owned(), 1)]);
    let (outcome, _) = with_polkit(false, false).await;
    let refusal = outcome.unwrap_err();
    assert_eq!(refusal.kind, FaultKind::AccessDenied);
    assert!(refusal.message.contains("does not allow org.mdevirt1.manage"), "{refusal}");
    let (outcome, _) = with_polkit(false, true).await;
    assert!(outcome.unwrap_err().message.contains("wants a password"));
}

#[tokio::test]
async fn without_polkit_the_answer_is_no() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let authority = Polkit::new(&bus.connect().await).await.unwrap();
    let _server = bus.serve_for(&service, Arc::new(authority)).await;
    let refusal = fault(manager(&bus).await.spawn(spawn_options()).await);
    assert_eq!(refusal.kind, FaultKind::AccessDenied);
    assert!(refusal.message.starts_with("cannot ask polkit"), "{refusal}");
    assert!(service.world().jobs.is_empty());
}

#[tokio::test]
async fn bad_arguments_are_named_before_anybody_is_asked_for_a_password() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve_for(&service, Arc::new(Nobody)).await;
    let manager = manager(&bus).await;
    for refusal in [
        fault(manager.spawn(record(&json!({}))).await),
        fault(manager.trait_accept("CUSTOM_GOLD", record(&json!({}))).await),
    ] {
        assert_eq!(refusal.kind, FaultKind::InvalidRequest);
    }
}
