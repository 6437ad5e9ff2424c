//! What a parent offers: types, by local id and vendor name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::address::is_plain_name;
use super::claim::text_enum;
use super::id::InvalidName;

/// A type's id as one parent shows it, for example `nvidia-746`.
///
/// The kernel forms it as `<driver of the parent>-<group>`, so the prefix differs from parent to parent
/// (`nvidia-575`, `vfio-pci-575`) and never identifies a vendor. Always one harmless path component.
///
/// # Source
/// Linux `drivers/vfio/mdev/mdev_sysfs.c`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TypeId(String);

impl TypeId {
    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Prefix and number, split at the last `-`; `None` if the tail is no decimal number, which is no error.
    pub fn split(&self) -> Option<(&str, u32)> {
        let (prefix, tail) = self.0.rsplit_once('-')?;
        let digits = !tail.is_empty() && tail.bytes().all(|b| b.is_ascii_digit());
        (!prefix.is_empty() && digits).then(|| tail.parse().ok().map(|n| (prefix, n))).flatten()
    }
}

impl FromStr for TypeId {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        if is_plain_name(text) && !text.contains(':') {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidName::new(
                "mdev type id",
                text,
                "expected letters, digits, '_', '-', '.', not beginning with '.'",
            ))
        }
    }
}

impl TryFrom<String> for TypeId {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        text.parse()
    }
}

impl From<TypeId> for String {
    fn from(id: TypeId) -> Self {
        id.0
    }
}

impl fmt::Display for TypeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TypeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The `model` of the host device that carries a type.
///
/// # Source
/// libvirt `formatdomain.html#host-device-assignment`; the kernel's `device_api` attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceApi {
    /// A PCI device to the guest.
    VfioPci,
    /// An s390 channel device.
    VfioCcw,
    /// An s390 crypto adapter matrix; libvirt allows one per domain.
    VfioAp,
}

impl DeviceApi {
    /// The word used by the kernel and by libvirt.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::VfioPci => "vfio-pci",
            Self::VfioCcw => "vfio-ccw",
            Self::VfioAp => "vfio-ap",
        }
    }
}

impl FromStr for DeviceApi {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        match text.trim() {
            "vfio-pci" => Ok(Self::VfioPci),
            "vfio-ccw" => Ok(Self::VfioCcw),
            "vfio-ap" => Ok(Self::VfioAp),
            _ => Err(InvalidName::new("device API", text, "expected vfio-pci, vfio-ccw or vfio-ap")),
        }
    }
}

impl fmt::Display for DeviceApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

text_enum!(
    /// How a parent makes slices. Probed per device, never guessed from kernel, driver or model.
    Framework, "framework" {
        /// The parent has `mdev_supported_types`.
        Mdev = "mdev",
        /// A VF with the vendor's own files; handed to the VM as a PCI device.
        VendorVfio = "vendor-vfio",
    }
);

/// One type as one parent offers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MdevType {
    /// Local id.
    pub id: TypeId,
    /// Vendor name without blanks at its ends; some drivers (i915) give none.
    pub name: Option<String>,
    /// What the slice is to the guest.
    pub device_api: DeviceApi,
    /// How many more the parent says it could make at the moment of reading.
    pub available_instances: u32,
    /// What the description says.
    #[serde(flatten)]
    pub facts: TypeFacts,
}

impl MdevType {
    /// What people are shown: the name, else the id.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(self.id.as_str())
    }
}

/// Facts from a type's sysfs `description`; each is absent when the driver does not state it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeFacts {
    /// Framebuffer of one slice in MiB.
    pub framebuffer_mib: Option<u32>,
    /// Display heads of one slice.
    pub heads: Option<u32>,
    /// Greatest resolution as printed, `7680x4320`.
    pub max_resolution: Option<String>,
    /// How many slices of this type the whole card (not the one function) can hold.
    pub max_instances: Option<u32>,
    /// The description as the driver prints it, line by line; empty when there is none.
    #[serde(default)]
    pub description: Vec<String>,
}

impl TypeFacts {
    /// Reads the vendor's `key=value, key=value` line; other forms (i915 prints `key: value` lines) are kept as text.
    ///
    /// # Source
    /// NVIDIA vGPU user guide, `description` attribute: framebuffer has the suffix `M` for MiB.
    pub fn parse(description: &str) -> Self {
        let lines: Vec<String> =
            description.lines().map(|l| l.trim().to_owned()).filter(|l| !l.is_empty()).collect();
        let mut facts = Self { description: lines, ..Self::default() };
        let pairs = description.split([',', '\n']).filter_map(|part| part.split_once('='));
        for (key, value) in pairs {
            let value = value.trim();
            match key.trim() {
                "framebuffer" => facts.framebuffer_mib = value.strip_suffix('M').and_then(|n| n.parse().ok()),
                "num_heads" => facts.heads = value.parse().ok(),
                "max_resolution" => facts.max_resolution = Some(value.to_owned()),
                "max_instance" => facts.max_instances = value.parse().ok().filter(|n| *n > 0),
                _ => {}
            }
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_one_path_component() {
        for good in ["nvidia-231", "i915-GVTg_V5_4", "vfio_ccw-io", "1150"] {
            assert!(good.parse::<TypeId>().is_ok(), "{good}");
        }
        for bad in [
            "../../x",
            "nvidia-231/../nvidia-234",
            "/etc",
            ".",
            "..",
            "",
            "nvidia-231\0",
            "nvidia-231%00",
            "a b",
        ] {
            assert!(bad.parse::<TypeId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn vendor_descriptions_are_read() {
        let facts = TypeFacts::parse(
            "num_heads=4, frl_config=60, framebuffer=4096M, max_resolution=7680x4320, max_instance=4\n",
        );
        assert_eq!((facts.framebuffer_mib, facts.heads, facts.max_instances), (Some(4096), Some(4), Some(4)));
        assert_eq!(facts.max_resolution.as_deref(), Some("7680x4320"));
        let gvt = TypeFacts::parse(
            "low_gm_size: 128MB\nhigh_gm_size: 512MB\nfence: 4\nresolution: 1920x1200\nweight: 4\n",
        );
        assert_eq!(gvt.description.len(), 5);
        assert_eq!(gvt.framebuffer_mib, None);
        assert_eq!(TypeFacts::parse("framebuffer=99999999999M, max_instance=0").framebuffer_mib, None);
    }
}
