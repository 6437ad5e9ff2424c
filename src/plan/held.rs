//! What a domain has, as its metadata says it: enough for another host to find the same when the domain moves there by libvirt
//! alone. Whoever may edit the domain may edit this too, so that nothing is decided by it but for that domain.

use serde::{Deserialize, Serialize};

use super::handover::Traveller;
use crate::catalog::LockMark;
use crate::model::{Claim, Fault, FaultKind};

/// The version of the form that is read and written.
const VERSION: u64 = 1;

/// See the head of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    version: u64,
    /// Name of the host that it runs on.
    pub host: String,
    /// The lock of traits in force there.
    pub lock: Option<LockMark>,
    /// Its devices, in the guest's order.
    pub devices: Vec<Traveller>,
}

impl Held {
    /// What these claims hold.
    ///
    /// # Errors
    /// `Incompatible` for a device of which no identity is known.
    pub fn of(host: &str, lock: Option<LockMark>, claims: &[Claim]) -> Result<Self, Fault> {
        let devices = claims.iter().map(Traveller::of).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { version: VERSION, host: host.to_owned(), lock, devices })
    }

    /// Reads the text of a domain's metadata.
    ///
    /// # Errors
    /// `InvalidDomainXml`: it is none, or of another form.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let refuse = |why: String| {
            let text =
                format!("what the domain's metadata says that it has: {why}; start it again on its host");
            Fault::new(FaultKind::InvalidDomainXml, text)
        };
        let held: Self = serde_json::from_str(text).map_err(|err| refuse(err.to_string()))?;
        if held.version == VERSION {
            return Ok(held);
        }
        Err(refuse(format!("it has form {}, this host reads {VERSION}", held.version)))
    }

    /// As it is written.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_back_as_written_and_nothing_else() {
        let held = Held::of("gpu-01", None, &[]).unwrap();
        assert_eq!(Held::parse(&held.text()).unwrap(), held);
        for other in ["", "{}", "[]", r#"{"version":2,"host":"a","lock":null,"devices":[]}"#] {
            assert_eq!(Held::parse(other).unwrap_err().kind, FaultKind::InvalidDomainXml, "{other}");
        }
    }
}
