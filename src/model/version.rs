//! Versions of what a live migration needs on both hosts.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::id::InvalidName;

/// Up to three numbers; what follows them, as in `6.12.48+deb13-amd64`, says nothing here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Version(pub u32, pub u32, pub u32);

/// Of one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Versions {
    /// libvirtd.
    pub libvirt: Version,
    /// The emulator that libvirt starts guests with.
    pub qemu: Version,
    /// Linux; `None` where nothing tells it.
    pub kernel: Option<Version>,
}

impl Version {
    /// From libvirt's one number, 1000000 * major + 1000 * minor + release.
    pub fn of_number(number: u32) -> Self {
        Self(number / 1_000_000, number / 1000 % 1000, number % 1000)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

impl FromStr for Version {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let invalid = || InvalidName::new("version", text, "it does not begin with a number");
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let mut numbers = text.get(..end).unwrap_or_default().split('.').filter(|part| !part.is_empty());
        let mut next = || numbers.next().map(str::parse::<u32>).transpose().map_err(|_| invalid());
        let major = next()?.ok_or_else(invalid)?;
        Ok(Self(major, next()?.unwrap_or(0), next()?.unwrap_or(0)))
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.to_string()
    }
}

impl TryFrom<String> for Version {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_at_the_beginning_count() {
        for (text, version) in [
            ("6.12.48+deb13-amd64", Version(6, 12, 48)),
            ("5.18", Version(5, 18, 0)),
            ("10.0.2.1", Version(10, 0, 2)),
            ("9", Version(9, 0, 0)),
        ] {
            assert_eq!(text.parse::<Version>().unwrap(), version, "{text}");
        }
        for bad in ["", "v6.1", "99999999999.1", "-"] {
            assert!(bad.parse::<Version>().is_err(), "{bad}");
        }
        assert_eq!(Version::of_number(11_003_000), Version(11, 3, 0));
        assert!(Version(8, 6, 0) < Version(8, 10, 0));
    }
}
