//! Arguments of calls: from `a{sv}` and strings to requests, with every refusal naming its key.

use serde_json::{Map, Value};
use zbus::Variant;

use super::json::{self, Limits, Record, shown};
use crate::catalog::{Export, Verdict, verify};
use crate::config::MAX_FILE_BYTES;
use crate::model::{DisplayWish, Fault, FaultKind, InvalidName};
use crate::service::api::{AcceptRequest, ClaimRequest, SpawnRequest};
pub use crate::xml::MAX_BYTES as MAX_DOMAIN_XML_BYTES;

/// Everything but the domain XML and a configuration.
const MAX_TEXT_BYTES: usize = 64 << 10;
const MAX_OPERATION_ID_CHARS: usize = 128;
const REQUEST: Limits = Limits { depth: 4, bytes: MAX_DOMAIN_XML_BYTES + (1 << 20) };

/// The options of `Spawn` and `PreviewSpawn`.
///
/// # Errors
/// `InvalidRequest` naming the key; `InvalidDomainXml` for a domain XML over [`MAX_DOMAIN_XML_BYTES`].
pub fn spawn_request(record: &Record, dry_run: bool) -> Result<SpawnRequest, Fault> {
    let mut options = Options::read(record, &["domain_xml", "flavor", "display", "operation_id"])?;
    Ok(SpawnRequest {
        domain_xml: options.required("domain_xml")?,
        flavor: options.required("flavor")?,
        display: options.display()?,
        operation_id: options.operation_id()?,
        dry_run,
    })
}

/// The options of `Claim`.
///
/// # Errors
/// `InvalidRequest` naming the key.
pub fn claim_request(record: &Record) -> Result<ClaimRequest, Fault> {
    let mut options = Options::read(record, &["instance", "name", "flavor", "operation_id"])?;
    Ok(ClaimRequest {
        instance: options
            .required("instance")?
            .parse()
            .map_err(|err: InvalidName| named("instance", &err))?,
        name: options.text("name")?.unwrap_or_default(),
        flavor: options.required("flavor")?,
        operation_id: options.operation_id()?,
    })
}

/// The options of a verb that has only the operation id.
///
/// # Errors
/// `InvalidRequest` naming the key.
pub fn operation_id(record: &Record) -> Result<Option<String>, Fault> {
    Options::read(record, &["operation_id"])?.operation_id()
}

/// The options of `RenderDomain`.
///
/// # Errors
/// `InvalidRequest` naming the key.
pub fn display(record: &Record) -> Result<DisplayWish, Fault> {
    Options::read(record, &["display"])?.display()
}

/// The options of `Plan`.
///
/// # Errors
/// `InvalidRequest` naming the key.
pub fn plan_config(record: &Record) -> Result<Option<String>, Fault> {
    Options::read(record, &["config"])?.text("config")
}

/// The arguments of `TraitAccept`.
///
/// # Errors
/// `InvalidRequest` naming the key.
pub fn accept_request(word: &str, record: &Record) -> Result<AcceptRequest, Fault> {
    check_length("word", word)?;
    let mut options = Options::read(record, &["reason", "parent"])?;
    let parent = options.text("parent")?.map(|text| text.parse());
    Ok(AcceptRequest {
        word: word.to_owned(),
        reason: options.required("reason")?,
        parent: parent.transpose().map_err(|err: InvalidName| named("parent", &err))?,
    })
}

/// The answer of `TraitVerify`, which asks nobody.
///
/// # Errors
/// `InvalidRequest` naming the document that is no export.
pub fn verdict(documents: &[String]) -> Result<Verdict, Fault> {
    let read = |(number, text): (usize, &String)| {
        Export::parse(text.as_bytes(), &format!("document {}", number + 1))
    };
    Ok(verify(&documents.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?))
}

/// A domain XML that is an argument of its own.
///
/// # Errors
/// `InvalidDomainXml` over [`MAX_DOMAIN_XML_BYTES`].
pub fn domain_xml(text: &str) -> Result<&str, Fault> {
    if text.len() <= MAX_DOMAIN_XML_BYTES {
        return Ok(text);
    }
    let why = format!("domain_xml is {} bytes long, at most {MAX_DOMAIN_XML_BYTES} are taken", text.len());
    Err(Fault::new(FaultKind::InvalidDomainXml, why))
}

/// An instance name or UUID.
///
/// # Errors
/// `InvalidRequest` if it is empty or no name can be that long.
pub fn instance(text: &str) -> Result<&str, Fault> {
    if (1..=4096).contains(&text.len()) {
        return Ok(text);
    }
    Err(invalid(format!("instance: expected a name or a UUID, got {} bytes", text.len())))
}

struct Options(Map<String, Value>);

impl Options {
    fn read(record: &Record, known: &[&str]) -> Result<Self, Fault> {
        if let Some(key) = record.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(invalid(format!("unknown option {}; known are {}", shown(key), known.join(", "))));
        }
        for (key, value) in record {
            if let Variant::Str(text) = &**value {
                check_length(key, text)?;
            }
        }
        let map = json::from_record(record, REQUEST).map_err(|err| invalid(format!("option {err}")))?;
        Ok(Self(map))
    }

    fn text(&mut self, key: &str) -> Result<Option<String>, Fault> {
        match self.0.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_))) => {
                Err(invalid(format!("option {key}: expected a string, got {}", kind(&other))))
            }
        }
    }

    fn required(&mut self, key: &str) -> Result<String, Fault> {
        self.text(key)?.ok_or_else(|| invalid(format!("option {key} is missing")))
    }

    fn display(&mut self) -> Result<DisplayWish, Fault> {
        match self.text("display")?.as_deref() {
            None | Some("off") => Ok(DisplayWish::Off),
            Some("on") => Ok(DisplayWish::On),
            Some(other) => Err(invalid(format!("option display: expected on or off, got {}", shown(other)))),
        }
    }

    fn operation_id(&mut self) -> Result<Option<String>, Fault> {
        let id = self.text("operation_id")?;
        let fits = id.as_ref().is_none_or(|id| {
            (1..=MAX_OPERATION_ID_CHARS).contains(&id.chars().count()) && !id.chars().any(char::is_control)
        });
        if fits {
            return Ok(id);
        }
        Err(invalid(format!(
            "option operation_id: expected 1 to {MAX_OPERATION_ID_CHARS} characters without control characters"
        )))
    }
}

fn check_length(key: &str, text: &str) -> Result<(), Fault> {
    if key == "domain_xml" {
        return domain_xml(text).map(|_| ());
    }
    let most = if key == "config" { MAX_FILE_BYTES } else { MAX_TEXT_BYTES };
    if text.len() > most {
        return Err(invalid(format!("option {key}: {} bytes, at most {most} are taken", text.len())));
    }
    Ok(())
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "a dictionary",
    }
}

fn named(key: &str, err: &InvalidName) -> Fault {
    invalid(format!("option {key}: {err}"))
}

fn invalid(message: String) -> Fault {
    Fault::new(FaultKind::InvalidRequest, message)
}

#[cfg(test)]
mod tests {
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
            (
                json!({"domain_xml": xml, "flavor": flavor, "dry_run": true}),
                "unknown option dry_run; known are",
            ),
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
            claim_request(&bad)
                .unwrap_err()
                .message
                .starts_with("option instance: \"web-01\" is not a valid")
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
}
