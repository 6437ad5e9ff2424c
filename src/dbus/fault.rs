//! Failures on the wire: `org.mdevirt1.Error.<Kind>` with one string: the text, and below it, if there are any, a last
//! line `details: <JSON>`.
//!
//! Rejected: the details as a second string. GLib (`gdbus`, `dasbus`, Cockpit) shows the text of an error only if the
//! body is exactly one string, and would hide it.

use std::io;

use zbus::DBusError;
use zbus::message::{Header, Message};
use zbus::names::ErrorName;

use super::json::{Misfit, clean};
use super::{ERROR_PREFIX, NAME};
use crate::model::{Fault, FaultKind};

/// What comes between the text and the details.
const DETAILS: &str = "\ndetails: ";

/// A failure as it goes over the bus, in either direction.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(transparent)]
pub struct WireFault(#[from] pub Fault);

impl DBusError for WireFault {
    fn create_reply(&self, call: &Header<'_>) -> zbus::Result<Message> {
        let mut text = clean(&self.0.message);
        if !self.0.details.is_null() {
            // serde_json escapes line ends and a NUL, so this is one clean line.
            text += &format!("{DETAILS}{}", self.0.details);
        }
        Message::error(call, self.name()).build(&text)
    }

    fn name(&self) -> ErrorName<'_> {
        ErrorName::try_from(format!("{ERROR_PREFIX}{}", self.0.kind))
            .unwrap_or_else(|_| ErrorName::from_static_str_unchecked("org.mdevirt1.Error.Internal"))
    }

    fn description(&self) -> Option<&str> {
        Some(&self.0.message)
    }
}

/// A record that cannot be sent is a fault of ours: everything in it came from the service.
impl From<Misfit> for WireFault {
    fn from(err: Misfit) -> Self {
        Self(Fault::new(FaultKind::Internal, format!("the answer cannot be sent over D-Bus: {err}")))
    }
}

/// What a client's call came to.
impl From<zbus::Error> for WireFault {
    fn from(err: zbus::Error) -> Self {
        Self(
            read(&err)
                .unwrap_or_else(|| Fault::new(FaultKind::HostUnreachable, format!("call mdevirtd: {err}"))),
        )
    }
}

fn read(err: &zbus::Error) -> Option<Fault> {
    if let zbus::Error::MethodError(name, text, _) = err {
        let text = text.as_deref().unwrap_or_default();
        return Some(ours(name.as_str(), text).unwrap_or_else(|| odd(name.as_str(), text)));
    }
    if let zbus::Error::FDO(err) = err {
        let (name, text) = (err.name(), err.description().unwrap_or_default());
        return Some(standard(name.as_str(), text).unwrap_or_else(|| odd(name.as_str(), text)));
    }
    if let zbus::Error::InputOutput(cause) = err
        && cause.kind() == io::ErrorKind::TimedOut
    {
        return Some(Fault::new(FaultKind::Timeout, "mdevirtd did not answer in time; see --timeout"));
    }
    None
}

/// Somebody answered, and it is no answer that we know.
fn odd(name: &str, text: &str) -> Fault {
    Fault::new(FaultKind::Internal, format!("mdevirtd answers {name}: {text}"))
}

fn ours(name: &str, text: &str) -> Option<Fault> {
    let kind: FaultKind = name.strip_prefix(ERROR_PREFIX)?.parse().ok()?;
    let parts = text.rsplit_once(DETAILS).map(|(text, json)| (text, serde_json::from_str(json)));
    Some(match parts {
        Some((text, Ok(details))) => Fault::new(kind, text).with_details(details),
        Some((_, Err(_))) | None => Fault::new(kind, text),
    })
}

/// Errors of the bus itself and of zbus' dispatcher.
///
/// # Source
/// D-Bus specification and `dbus-protocol.h`, names of errors.
fn standard(name: &str, text: &str) -> Option<Fault> {
    let (kind, message) = match name.strip_prefix("org.freedesktop.DBus.Error.")? {
        "ServiceUnknown" | "NameHasNoOwner" => (
            FaultKind::HostUnreachable,
            format!("no {NAME} on this bus: is mdevirtd running (systemctl status mdevirtd)?"),
        ),
        "NoReply" | "Disconnected" => {
            (FaultKind::HostUnreachable, format!("mdevirtd went away during the call: {text}"))
        }
        spawn if spawn.starts_with("Spawn.") => {
            (FaultKind::HostUnreachable, format!("mdevirtd does not come up: {text}"))
        }
        "Timeout" | "TimedOut" => (FaultKind::Timeout, text.to_owned()),
        "AccessDenied" | "AuthFailed" => (FaultKind::AccessDenied, format!("the bus refuses: {text}")),
        "InvalidArgs" | "InvalidSignature" => (FaultKind::InvalidRequest, text.to_owned()),
        "LimitsExceeded" => (FaultKind::InvalidRequest, format!("the bus refuses: {text}")),
        "UnknownMethod" | "UnknownInterface" | "UnknownObject" | "NotSupported" => {
            (FaultKind::NotSupported, format!("mdevirtd does not know this call: {text}"))
        }
        _ => return None,
    };
    Some(Fault::new(kind, message))
}

impl From<WireFault> for Fault {
    fn from(fault: WireFault) -> Self {
        fault.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn over_the_wire(fault: Fault) -> Fault {
        let call = Message::method_call("/", "Spawn").destination(":1.2").build(&()).unwrap();
        let reply = WireFault(fault).create_reply(&call.header()).unwrap();
        WireFault::from(zbus::Error::from(reply)).into()
    }

    #[test]
    fn every_kind_keeps_its_name_text_and_details() {
        for kind in FaultKind::ALL {
            let fault =
                Fault::new(*kind, "what, where, what next").with_details(json!({"parents": [null, 1]}));
            assert_eq!(over_the_wire(fault.clone()), fault);
        }
        let plain = Fault::new(FaultKind::NoSuchJob, "a\0b");
        assert_eq!(over_the_wire(plain).message, "a\u{fffd}b");
        let lines = Fault::new(FaultKind::InvalidMdevConfig, "f:1: x\nf:2: y").with_details(json!(["\n\0"]));
        assert_eq!(over_the_wire(lines.clone()), lines);
        let odd = Fault::new(FaultKind::Internal, "x\ndetails: y");
        assert_eq!(over_the_wire(odd.clone()), odd);
    }

    #[test]
    fn every_client_sees_one_string_that_begins_with_the_text() {
        let fault = Fault::new(FaultKind::NoCapacity, "no parent fits").with_details(json!({"parents": []}));
        let call = Message::method_call("/", "Spawn").destination(":1.2").build(&()).unwrap();
        let reply = WireFault(fault).create_reply(&call.header()).unwrap();
        assert_eq!(reply.header().error_name().unwrap().as_str(), "org.mdevirt1.Error.NoCapacity");
        let body: String = reply.body().deserialize().unwrap();
        assert_eq!(body, "no parent fits\ndetails: {\"parents\":[]}");
    }

    #[test]
    fn errors_of_the_bus_have_a_kind() {
        for (name, kind) in [
            ("org.freedesktop.DBus.Error.ServiceUnknown", FaultKind::HostUnreachable),
            ("org.freedesktop.DBus.Error.NoReply", FaultKind::HostUnreachable),
            ("org.freedesktop.DBus.Error.TimedOut", FaultKind::Timeout),
            ("org.freedesktop.DBus.Error.AccessDenied", FaultKind::AccessDenied),
            ("org.freedesktop.DBus.Error.InvalidArgs", FaultKind::InvalidRequest),
            ("org.freedesktop.DBus.Error.UnknownMethod", FaultKind::NotSupported),
            ("org.freedesktop.DBus.Error.Failed", FaultKind::Internal),
            ("org.mdevirt1.Error.OfALaterVersion", FaultKind::Internal),
            ("org.example.Odd", FaultKind::Internal),
        ] {
            let call = Message::method_call("/", "X").destination(":1.2").build(&()).unwrap();
            let reply = Message::error(&call.header(), name).build(&"text").unwrap();
            let fault = Fault::from(WireFault::from(zbus::Error::from(reply)));
            assert_eq!(fault.kind, kind, "{name}: {fault}");
        }
        let late = zbus::Error::from(io::Error::from(io::ErrorKind::TimedOut));
        assert_eq!(Fault::from(WireFault::from(late)).kind, FaultKind::Timeout);
    }
}
