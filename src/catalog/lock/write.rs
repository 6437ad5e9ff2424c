//! A lock as text.

use std::fmt;

use crate::model::TypeIdentity;
use crate::model::pci_id::written;
use crate::text::quoted;

use super::{Accepted, Lock, VERSION};

const HEAD: &str = "\
# What each trait means, on every host. Written by mdevirtctl: \"trait lock\" adds and drops traits, \"trait accept\"
# takes another identity. A trait that is changed by hand does not fit the digest, and the file is refused.
";

/// As the file is written: the same lock gives the same bytes.
impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{HEAD}version = {VERSION}\nrevision = {}\ndigest = \"{}\"\n",
            self.revision,
            self.digest()
        )?;
        for (name, locked) in &self.traits {
            writeln!(f, "\n[trait.{name}]")?;
            for (key, value) in keys(&locked.identity) {
                writeln!(f, "{key} = {value}")?;
            }
            for accepted in &locked.history {
                write_accepted(f, name.as_str(), accepted)?;
            }
        }
        Ok(())
    }
}

fn write_accepted(f: &mut fmt::Formatter<'_>, name: &str, accepted: &Accepted) -> fmt::Result {
    writeln!(f, "\n[[trait.{name}.history]]\nat = {}", quoted(&accepted.at))?;
    if let Some(host) = &accepted.by {
        writeln!(f, "by = {}", quoted(host))?;
    }
    writeln!(f, "reason = {}", quoted(&accepted.reason))?;
    for (key, identity) in [("was", &accepted.was), ("now", &accepted.now)] {
        let facts: Vec<String> =
            keys(identity).into_iter().map(|(key, value)| format!("{key} = {value}")).collect();
        writeln!(f, "{key} = {{ {} }}", facts.join(", "))?;
    }
    Ok(())
}

/// What an identity states, what people look for first.
fn keys(identity: &TypeIdentity) -> Vec<(&'static str, String)> {
    let pci = |id: Option<u16>| id.map(|id| quoted(&written(id)));
    let number = |n: Option<u32>| n.map(|n| n.to_string());
    let all = [
        ("name", identity.name.as_deref().map(quoted)),
        ("type_id", identity.type_id.as_ref().map(|id| quoted(id.as_str()))),
        ("vendor_id", pci(identity.vendor_id)),
        ("device_id", pci(identity.device_id)),
        ("device_api", Some(quoted(identity.device_api.as_str()))),
        ("framebuffer_mib", number(identity.framebuffer_mib)),
        ("heads", number(identity.heads)),
        ("max_resolution", identity.max_resolution.as_deref().map(quoted)),
    ];
    all.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}
