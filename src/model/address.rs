//! Addresses of parents, always compared in their normal form.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::id::InvalidName;

/// A PCI address.
///
/// Read from `dddd:bb:ss.f` with a domain of 4 to 8 digits in either case (VMD hosts have 5), or from libvirt's node name
/// `pci_dddd_bb_ss_f`; blanks at the ends are dropped. Shown as `0000:84:00.0`. Ordered by number, so that
/// VF 10 comes after VF 2.
///
/// # Source
/// libvirt `node_device_udev.c` (node names), nvidia-smi (8-digit domains).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PciAddress {
    domain: u32,
    bus: u8,
    slot: u8,
    function: u8,
}

impl PciAddress {
    /// Checks the ranges: slot at most 0x1f, function at most 7.
    pub fn new(domain: u32, bus: u8, slot: u8, function: u8) -> Option<Self> {
        (slot <= 0x1f && function <= 7).then_some(Self { domain, bus, slot, function })
    }

    /// The domain (segment), 0 on most hosts.
    pub fn domain(self) -> u32 {
        self.domain
    }

    /// The bus number.
    pub fn bus(self) -> u8 {
        self.bus
    }

    /// The slot (device) number, at most 0x1f.
    pub fn slot(self) -> u8 {
        self.slot
    }

    /// The function number, at most 7.
    pub fn function(self) -> u8 {
        self.function
    }

    /// libvirt's node-device name, for example `pci_0000_84_00_0`.
    pub fn node_name(self) -> String {
        format!("pci_{:04x}_{:02x}_{:02x}_{:x}", self.domain, self.bus, self.slot, self.function)
    }

    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = match text.strip_prefix("pci_") {
            Some(name) => name.split('_').collect(),
            None => {
                let (front, function) = text.rsplit_once('.')?;
                front.split(':').chain([function]).collect()
            }
        };
        let [domain, bus, slot, function] = fields[..] else { return None };
        if !(4..=8).contains(&domain.len()) {
            return None;
        }
        Self::new(hex(domain, domain.len())?, byte(bus, 2)?, byte(slot, 2)?, byte(function, 1)?)
    }
}

fn hex(text: &str, digits: usize) -> Option<u32> {
    (text.len() == digits && text.bytes().all(|b| b.is_ascii_hexdigit()))
        .then(|| u32::from_str_radix(text, 16).ok())
        .flatten()
}

fn byte(text: &str, digits: usize) -> Option<u8> {
    hex(text, digits).and_then(|n| u8::try_from(n).ok())
}

impl FromStr for PciAddress {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        Self::parse(text.trim()).ok_or_else(|| {
            InvalidName::new(
                "PCI address",
                text,
                "expected dddd:bb:ss.f, slot at most 1f, function at most 7",
            )
        })
    }
}

impl TryFrom<String> for PciAddress {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        text.parse()
    }
}

impl From<PciAddress> for String {
    fn from(addr: PciAddress) -> Self {
        addr.to_string()
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{:x}", self.domain, self.bus, self.slot, self.function)
    }
}

impl fmt::Debug for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where a parent sits. PCI devices by address; css, AP matrix and virtual parents by libvirt's node name
/// (`css_0_0_00b2`, `ap_matrix`, `mtty_mtty`), for which libvirt offers no shorter address.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ParentAddr {
    /// A PCI function, physical or virtual.
    Pci(PciAddress),
    /// Any other parent, by node name.
    Node(NodeName),
}

/// A node-device name that is safe to show and to compare: ASCII letters, digits, `_`, `-`, `.`, `:`; it does
/// not begin with a dot; at most 128 characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeName(String);

impl NodeName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for NodeName {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        if is_plain_name(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidName::new("node device name", text, "expected letters, digits, '_', '-', '.', ':'"))
        }
    }
}

/// Whether a text is one harmless path component: used for node names and type ids alike.
pub(super) fn is_plain_name(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && !text.starts_with('.')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':'))
}

impl ParentAddr {
    /// libvirt's node-device name of this parent.
    pub fn node_name(&self) -> String {
        match self {
            Self::Pci(addr) => addr.node_name(),
            Self::Node(name) => name.0.clone(),
        }
    }

    /// The PCI address, if it is a PCI parent.
    pub fn pci(&self) -> Option<PciAddress> {
        match self {
            Self::Pci(addr) => Some(*addr),
            Self::Node(_) => None,
        }
    }
}

impl FromStr for ParentAddr {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let text = text.trim();
        // What looks like a PCI address must be one: `0000:86:00` is a typing error, not a node name.
        if text.contains(':') || text.starts_with("pci_") {
            return text.parse().map(Self::Pci);
        }
        text.parse().map(Self::Node).map_err(|_| {
            InvalidName::new("device address", text, "expected a PCI address or a node device name")
        })
    }
}

impl TryFrom<String> for ParentAddr {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        text.parse()
    }
}

impl From<ParentAddr> for String {
    fn from(addr: ParentAddr) -> Self {
        addr.to_string()
    }
}

impl fmt::Display for ParentAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pci(addr) => addr.fmt(f),
            Self::Node(name) => f.write_str(&name.0),
        }
    }
}

impl fmt::Debug for ParentAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_and_addresses_meet() {
        let addr: ParentAddr = "0000:CA:01.2".parse().unwrap();
        assert_eq!(addr, "pci_0000_ca_01_2".parse().unwrap());
        assert_eq!(addr, "00000000:ca:01.2".parse().unwrap());
        assert_eq!(addr.node_name(), "pci_0000_ca_01_2");
        assert_eq!("mtty_mtty".parse::<ParentAddr>().unwrap().node_name(), "mtty_mtty");
        for bad in ["0000:86:00", "../../../tmp", "0000:3b:00.0/../0000:86:00.0", "", ".", "pci_1"] {
            assert!(bad.parse::<ParentAddr>().is_err(), "{bad}");
        }
    }

    #[test]
    fn order_is_by_number() {
        let mut all: Vec<PciAddress> =
            ["0000:e8:01.6", "0000:e8:00.6", "0000:e8:01.0"].iter().map(|t| t.parse().unwrap()).collect();
        all.sort();
        assert_eq!(
            all.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["0000:e8:00.6", "0000:e8:01.0", "0000:e8:01.6"]
        );
    }

    proptest! {
        #[test]
        fn every_address_comes_back(domain: u32, bus: u8, slot in 0u8..32, function in 0u8..8) {
            let addr = PciAddress::new(domain, bus, slot, function).unwrap();
            prop_assert_eq!(addr.to_string().parse::<PciAddress>().unwrap(), addr);
            prop_assert_eq!(addr.node_name().parse::<PciAddress>().unwrap(), addr);
        }
    }
}
