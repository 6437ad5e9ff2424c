//! Arguments of calls: from `a{sv}` and strings to requests, with every refusal naming its key.

use serde_json::{Map, Value};
use zbus::Variant;

use super::json::{self, Limits, Record, shown};
use crate::catalog::{Export, Verdict, verify};
use crate::config::MAX_FILE_BYTES;
use crate::model::{DisplayWish, Fault, FaultKind, InvalidName, OpKind};
pub use crate::plan::handover::MAX_HANDOVER_BYTES;
use crate::service::api::{
    AcceptRequest, ClaimRequest, HookCall, LiveOptions, Operate, OperateWith, PrepareRequest, SpawnRequest,
};
pub use crate::xml::MAX_BYTES as MAX_DOMAIN_XML_BYTES;

/// Everything but the domain XML and a configuration.
const MAX_TEXT_BYTES: usize = 64 << 10;
const MAX_OPERATION_ID_CHARS: usize = 128;
const REQUEST: Limits = Limits { depth: 4, bytes: MAX_HANDOVER_BYTES + (1 << 20) };

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

/// An operation on an instance, with the options that it has.
///
/// # Errors
/// `InvalidRequest` naming the key.
pub fn operate(op: OpKind, instance_text: &str, record: &Record) -> Result<Operate, Fault> {
    let mut options = Options::read(record, keys(op))?;
    let device = options.text("device")?.map(|text| text.parse());
    let with = OperateWith {
        flavor: options.text("flavor")?,
        domain_xml: options.text("domain_xml")?,
        display: options.display()?,
        device: device.transpose().map_err(|err: InvalidName| named("device", &err))?,
        peer: options.text("peer")?,
        live: LiveOptions {
            document: options.text("document")?,
            uri: options.text("uri")?,
            bandwidth_mib: options.number("bandwidth_mib")?,
            downtime_ms: options.number("downtime_ms")?,
        },
    };
    let instance = instance(instance_text)?.to_owned();
    Ok(Operate { op, instance, operation_id: options.operation_id()?, with })
}

/// The options that an operation on an instance has.
fn keys(op: OpKind) -> &'static [&'static str] {
    let more: [(OpKind, &[&str]); 7] = [
        (OpKind::Rescue, &["domain_xml", "operation_id"]),
        (OpKind::Rebuild, &["domain_xml", "operation_id"]),
        (OpKind::Attach, &["flavor", "operation_id"]),
        (OpKind::Detach, &["device", "operation_id"]),
        (OpKind::ResizePrepare, &["flavor", "display", "operation_id"]),
        (OpKind::MigrateBegin, &["peer", "operation_id"]),
        (OpKind::LiveCommit, &["document", "uri", "bandwidth_mib", "downtime_ms", "peer", "operation_id"]),
    ];
    more.into_iter().find(|(with, _)| *with == op).map_or(&["operation_id"], |(_, keys)| keys)
}

/// The options of `MigratePrepare`.
///
/// # Errors
/// `InvalidRequest` naming the key.
pub fn prepare_request(record: &Record) -> Result<PrepareRequest, Fault> {
    let mut options =
        Options::read(record, &["document", "flavor", "allow_type_change", "evacuate", "operation_id"])?;
    Ok(PrepareRequest {
        document: options.required("document")?,
        flavor: options.text("flavor")?,
        allow_type_change: options.switch("allow_type_change")?,
        evacuate: options.switch("evacuate")?,
        operation_id: options.operation_id()?,
        ..PrepareRequest::default()
    })
}

/// The options of `LivePrepare`.
///
/// # Errors
/// `InvalidRequest` naming the key.
pub fn live_prepare_request(record: &Record) -> Result<PrepareRequest, Fault> {
    let mut options = Options::read(record, &["document", "operation_id"])?;
    Ok(PrepareRequest {
        document: options.required("document")?,
        live: true,
        operation_id: options.operation_id()?,
        ..PrepareRequest::default()
    })
}

/// The options of `LiveCheckTarget`.
///
/// # Errors
/// `InvalidRequest` naming the key.
pub fn document(record: &Record) -> Result<String, Fault> {
    Options::read(record, &["document"])?.required("document")
}

/// The options of `RenderDomain`.
///
/// # Errors
/// `InvalidRequest` naming the key.
pub fn display(record: &Record) -> Result<DisplayWish, Fault> {
    Options::read(record, &["display"])?.display()
}

/// The arguments of `Hook`: those of libvirt's hook, and the domain that it gets.
///
/// # Errors
/// `InvalidRequest` naming the argument; `InvalidDomainXml` for a domain XML over [`MAX_DOMAIN_XML_BYTES`].
pub fn hook_call(arguments: &[String], xml: &str) -> Result<HookCall, Fault> {
    let [name, operation, sub_operation, extra] = arguments else {
        return Err(invalid(format!("arguments: expected the 4 of a hook, got {}", arguments.len())));
    };
    instance(name)?;
    for (key, text) in [("operation", operation), ("sub-operation", sub_operation), ("extra", extra)] {
        check_length(key, text)?;
    }
    Ok(HookCall {
        name: name.clone(),
        operation: operation.clone(),
        sub_operation: sub_operation.clone(),
        extra: extra.clone(),
        domain_xml: domain_xml(xml)?.to_owned(),
    })
}

/// The options of `DomainRequest`.
///
/// # Errors
/// `InvalidRequest` naming the key.
pub fn flavor(record: &Record) -> Result<Option<String>, Fault> {
    Options::read(record, &["flavor"])?.text("flavor")
}

/// The options of `Reconcile`.
///
/// # Errors
/// `InvalidRequest` naming the key.
pub fn dry_run(record: &Record) -> Result<bool, Fault> {
    Options::read(record, &["dry_run"])?.switch("dry_run")
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

    fn switch(&mut self, key: &str) -> Result<bool, Fault> {
        match self.0.remove(key) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(on)) => Ok(on),
            Some(other) => Err(invalid(format!("option {key}: expected a boolean, got {}", kind(&other)))),
        }
    }

    /// A number of at least 1.
    fn number(&mut self, key: &str) -> Result<Option<u32>, Fault> {
        let Some(value) = self.0.remove(key).filter(|value| !value.is_null()) else { return Ok(None) };
        let number =
            value.as_u64().and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0);
        let bad = || invalid(format!("option {key}: expected a number from 1 to {}, got {value}", u32::MAX));
        number.map(Some).ok_or_else(bad)
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
    let most = match key {
        "config" => MAX_FILE_BYTES,
        "document" => MAX_HANDOVER_BYTES,
        _ => MAX_TEXT_BYTES,
    };
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
mod tests;
