//! Arguments that are taken, and refusals that name their key.

use super::*;
use serde_json::json;

fn record(value: &Value) -> Record {
    json::to_record(value).unwrap()
}

fn refusal(value: &Value) -> (FaultKind, String) {
    let fault = spawn_request(&record(value), false).unwrap_err();
    (fault.kind, fault.message)
}

#[test]
fn a_full_request_is_read() {
    let options = json!({"domain_xml": "<domain/>", "flavor": "resources:VGPU=1", "display": "on", "operation_id": "op"});
    let request = spawn_request(&record(&options), true).unwrap();
    assert_eq!(request.display, DisplayWish::On);
    assert_eq!(request.operation_id.as_deref(), Some("op"));
    assert!(request.dry_run);
    let claim = json!({"instance": "11111111222243338444555555555555", "flavor": "resources:VGPU=1"});
    assert_eq!(claim_request(&record(&claim)).unwrap().name, "");
}

#[test]
fn each_refusal_names_its_key() {
    let (xml, flavor) = ("<domain/>", "resources:VGPU=1");
    for (options, word) in [
        (json!({ "flavor": flavor }), "option domain_xml is missing"),
        (json!({ "domain_xml": xml }), "option flavor is missing"),
        (json!({"domain_xml": xml, "flavor": 1}), "option flavor: expected a string, got a number"),
        (
            json!({"domain_xml": [xml], "flavor": flavor}),
            "option domain_xml: expected a string, got an array",
        ),
        (
            json!({"domain_xml": xml, "flavor": flavor, "display": "yes"}),
            "option display: expected on or off",
        ),
        (json!({"domain_xml": xml, "flavor": flavor, "dry_run": true}), "unknown option dry_run; known are"),
        (json!({"domain_xml": xml, "flavor": flavor, "x\u{1b}": 1}), "unknown option x\\u{1b}"),
        (json!({"domain_xml": xml, "flavor": flavor, "operation_id": ""}), "option operation_id"),
        (json!({"domain_xml": xml, "flavor": flavor, "operation_id": "a\nb"}), "option operation_id"),
        (
            json!({"domain_xml": xml, "flavor": flavor, "operation_id": "x".repeat(129)}),
            "option operation_id",
        ),
        (json!({"domain_xml": xml, "flavor": "x".repeat(70_000)}), "option flavor: 70000 bytes"),
        (
            json!({"domain_xml": xml, "flavor": {"a": {"b": {"c": {"d": {}}}}}}),
            "option flavor: nested deeper",
        ),
    ] {
        let (kind, message) = refusal(&options);
        assert_eq!(kind, FaultKind::InvalidRequest, "{message}");
        assert!(message.starts_with(word), "{message}");
    }
    let bad = record(&json!({"instance": "web-01", "flavor": flavor}));
    assert!(
        claim_request(&bad).unwrap_err().message.starts_with("option instance: \"web-01\" is not a valid")
    );
}

#[test]
fn sizes_are_refused_at_the_limit() {
    let fits = json!({"domain_xml": "x".repeat(MAX_DOMAIN_XML_BYTES), "flavor": "f"});
    assert!(spawn_request(&record(&fits), false).is_ok());
    let over = json!({"domain_xml": "x".repeat(MAX_DOMAIN_XML_BYTES + 1), "flavor": "f"});
    let (kind, message) = refusal(&over);
    assert_eq!(kind, FaultKind::InvalidDomainXml);
    assert!(message.contains("4194305 bytes"), "{message}");
    assert!(domain_xml(&"x".repeat(MAX_DOMAIN_XML_BYTES + 1)).is_err());
    assert!(instance("").is_err() && instance(&"x".repeat(5000)).is_err() && instance("web-01").is_ok());
}
