//! What stays of a type when its id moves between drivers and hosts.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::mdev_type::{DeviceApi, MdevType, TypeId};
use super::parent::Parent;

/// What stays of a type when ids move. Two types are the same if their identities are equal, on any host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypeIdentity {
    /// PCI vendor, as `0x10de`; `None` for css, AP and virtual parents.
    #[serde(default, with = "super::pci_id::optional")]
    pub vendor_id: Option<u16>,
    /// PCI device: of a type without a name, and where a trait is bound to one kind of card.
    #[serde(default, with = "super::pci_id::optional")]
    pub device_id: Option<u16>,
    /// Vendor name, blanks at its ends and doubled ones dropped.
    pub name: Option<String>,
    /// The local id in place of a missing name, which is less safe: an id is a number in one driver's table.
    pub type_id: Option<TypeId>,
    /// What the slice is to the guest.
    pub device_api: DeviceApi,
    /// Framebuffer in MiB, where the driver states it.
    pub framebuffer_mib: Option<u32>,
    /// Display heads, where stated.
    pub heads: Option<u32>,
    /// Greatest resolution as printed, where stated.
    pub max_resolution: Option<String>,
}

impl TypeIdentity {
    /// The identity of a type as this parent offers it.
    pub fn of(parent: &Parent, mdev_type: &MdevType) -> Self {
        let name = mdev_type.name.as_deref().map(plain_blanks).filter(|name| !name.is_empty());
        let nameless = name.is_none();
        Self {
            vendor_id: parent.vendor_id,
            device_id: parent.device_id.filter(|_| nameless),
            type_id: nameless.then(|| mdev_type.id.clone()),
            name,
            device_api: mdev_type.device_api,
            framebuffer_mib: mdev_type.facts.framebuffer_mib,
            heads: mdev_type.facts.heads,
            max_resolution: mdev_type.facts.max_resolution.clone(),
        }
    }

    /// Whether a parent's type is this one.
    pub fn fits(&self, parent: &Parent, mdev_type: &MdevType) -> bool {
        let found = Self::of(parent, mdev_type);
        let here = self.device_id.is_none() || self.device_id == parent.device_id;
        here && *self == Self { device_id: self.device_id, ..found }
    }

    /// The vendor name, else the id that stands in for it.
    pub fn label(&self) -> &str {
        self.name.as_deref().or(self.type_id.as_ref().map(TypeId::as_str)).unwrap_or_default()
    }

    /// Whether both are the same but for the first word of the name: a vendor's other brand (`GRID T4-2Q`, `NVIDIA T4-2Q`).
    pub fn differs_in_brand_only(&self, other: &Self) -> bool {
        let (Some(mine), Some(theirs)) = (&self.name, &other.name) else { return false };
        let (Some((brand, rest)), Some((other_brand, other_rest))) =
            (mine.split_once(' '), theirs.split_once(' '))
        else {
            return false;
        };
        brand != other_brand && rest == other_rest && self.but_name() == other.but_name()
    }
}

impl TypeIdentity {
    fn but_name(&self) -> Self {
        Self { name: None, device_id: None, ..self.clone() }
    }
}

/// As people are shown it: `NVIDIA A2-4Q (10de, vfio-pci, 4096 MiB, 4 heads, 7680x4320)`.
impl fmt::Display for TypeIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pci = match (self.vendor_id, self.device_id) {
            (None, _) => None,
            (Some(vendor), None) => Some(format!("{vendor:04x}")),
            (Some(vendor), Some(device)) => Some(format!("{vendor:04x}:{device:04x}")),
        };
        let facts = [
            pci,
            Some(self.device_api.to_string()),
            self.framebuffer_mib.map(|n| format!("{n} MiB")),
            self.heads.map(heads),
            self.max_resolution.clone(),
        ];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        write!(f, "{} ({})", self.label(), facts.join(", "))
    }
}

fn heads(count: u32) -> String {
    if count == 1 { "1 head".to_owned() } else { format!("{count} heads") }
}

/// A text without blanks at its ends, and with one where several follow each other.
pub fn plain_blanks(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> TypeIdentity {
        TypeIdentity {
            vendor_id: Some(0x10de),
            device_id: None,
            name: Some(name.to_owned()),
            type_id: None,
            device_api: DeviceApi::VfioPci,
            framebuffer_mib: Some(2048),
            heads: Some(4),
            max_resolution: Some("7680x4320".to_owned()),
        }
    }

    #[test]
    fn another_brand_is_no_other_type() {
        let grid = named("GRID T4-2Q");
        assert!(grid.differs_in_brand_only(&named("NVIDIA T4-2Q")));
        let smaller = TypeIdentity { framebuffer_mib: Some(1024), ..named("NVIDIA T4-2Q") };
        for other in [grid.clone(), named("NVIDIA T4-2B"), named("T4-2Q"), smaller] {
            assert!(!grid.differs_in_brand_only(&other), "{other}");
        }
    }

    #[test]
    fn is_shown_with_what_is_known() {
        assert_eq!(
            named("GRID T4-2Q").to_string(),
            "GRID T4-2Q (10de, vfio-pci, 2048 MiB, 4 heads, 7680x4320)"
        );
        let bare = TypeIdentity {
            device_id: Some(0x1912),
            name: None,
            type_id: Some("i915-GVTg_V5_4".parse().unwrap()),
            framebuffer_mib: None,
            heads: None,
            max_resolution: None,
            ..named("")
        };
        assert_eq!(bare.to_string(), "i915-GVTg_V5_4 (10de:1912, vfio-pci)");
    }
}
