//! Identifiers, and the two traits through which the rest of the house gets time and new ids.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A text that is not an identifier of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a valid {kind}: {reason}")]
pub struct InvalidName {
    /// What was wanted, for example `UUID`.
    pub kind: &'static str,
    /// The text as given, cut to 80 characters.
    pub text: String,
    /// Why it was refused.
    pub reason: &'static str,
}

impl InvalidName {
    /// An error about `text`, of which at most 80 characters are kept.
    pub fn new(kind: &'static str, text: &str, reason: &'static str) -> Self {
        Self { kind, text: text.chars().take(80).collect(), reason }
    }
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }
        impl FromStr for $name {
            type Err = InvalidName;
            fn from_str(text: &str) -> Result<Self, InvalidName> {
                parse_uuid(text, $kind).map(Self)
            }
        }
    };
}

uuid_id!(
    /// A libvirt domain's UUID; Placement's consumer.
    InstanceUuid,
    "instance UUID"
);
uuid_id!(
    /// The UUID of one mediated device. Unique per parent only: two parents may define the same one.
    MdevUuid,
    "mdev UUID"
);
uuid_id!(
    /// One saga, and so one job on the bus.
    JobId,
    "job id"
);
uuid_id!(
    /// One row of the books.
    ClaimId,
    "claim id"
);

/// Accepts what libvirt accepts: either case, with or without dashes.
fn parse_uuid(text: &str, kind: &'static str) -> Result<Uuid, InvalidName> {
    let trimmed = text.trim();
    let plain =
        matches!(trimmed.len(), 32 | 36) && trimmed.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    if !plain {
        return Err(InvalidName::new(kind, text, "expected 8-4-4-4-12 hexadecimal digits"));
    }
    Uuid::try_parse(trimmed)
        .map_err(|_| InvalidName::new(kind, text, "expected 8-4-4-4-12 hexadecimal digits"))
}

/// Time since the Unix epoch in microseconds.
pub type Usec = i64;

/// The only source of time for rooms above `model`.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Microseconds since the Unix epoch.
    fn now_usec(&self) -> Usec;
}

/// The only source of new identifiers for rooms above `model`.
pub trait Ids: Send + Sync + fmt::Debug {
    /// A fresh random UUID.
    fn fresh(&self) -> Uuid;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_read_as_libvirt_reads_them() {
        let want = "e38f8857-e8ba-4559-b696-d9c39e499710";
        for text in [want, "E38F8857-E8BA-4559-B696-D9C39E499710", "e38f8857e8ba4559b696d9c39e499710"] {
            assert_eq!(text.parse::<MdevUuid>().unwrap().to_string(), want);
        }
        for text in ["", "*", "../../../../tmp/x", "0000:3b:00.0", "{e38f8857-e8ba-4559-b696-d9c39e499710}"] {
            let err = text.parse::<MdevUuid>().unwrap_err();
            assert!(err.to_string().contains("mdev UUID"), "{err}");
        }
    }
}
