//! What libvirt does not give, read from sysfs below a root directory (`/`, or a planted tree in tests). Rank 2.
//!
//! 1. A path is built from checked values only ([`PciAddress`], [`ParentAddr`], [`TypeId`], [`MdevUuid`], numbers); no text
//!    from outside becomes a path component.
//! 2. What is not there is `None` or empty; any other failure is [`HostError::Unreadable`], never "nothing".
//! 3. Nothing here writes but `create`, whose head says why.
//!
//! What a driver states of its types (`types`, `offers`) is remembered. Everything else is answered from disk each time.

mod create;
mod offers;
mod scan;
mod types;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::host::HostError;
use crate::model::{MdevUuid, NodeName, ParentAddr, PciAddress, TypeId};

/// The kernel gives one page for an attribute; what is longer is not one.
const ATTRIBUTE_LIMIT: u64 = 64 * 1024;
const MDEV_DEVICES: &str = "sys/bus/mdev/devices";

/// A device tree on a root directory. Cheap to clone; clones share what is remembered.
#[derive(Debug, Clone)]
pub struct Sysfs {
    root: Arc<Path>,
    described: Arc<types::Described>,
    stated: Arc<offers::Stated>,
}

/// How many virtual functions a physical function has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SriovCounts {
    /// Enabled now (`sriov_numvfs`).
    pub enabled: u32,
    /// The most it can have (`sriov_totalvfs`); `None` if the driver does not say.
    pub most: Option<u32>,
}

/// A mediated device that exists in the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveMdev {
    /// The kernel's name of its parent, `0000:3b:00.0` or `mtty`.
    pub parent: String,
    /// Its type; `None` if the link is not there yet.
    pub type_id: Option<TypeId>,
}

impl Sysfs {
    /// A tree below `root`, which need not exist.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into().into(), described: Arc::default(), stated: Arc::default() }
    }

    /// The root directory it looks below.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The kernel's names of all mdev parents, in text order; empty without the mdev module.
    ///
    /// # Errors
    /// `Unreadable`.
    ///
    /// # Source
    /// Linux `Documentation/driver-api/vfio-mediated-device.rst`: every parent has a link in `class/mdev_bus`.
    pub fn mdev_bus(&self) -> Result<Vec<String>, HostError> {
        self.names_in("sys/class/mdev_bus")
    }

    /// The kernel's word for this boot; another one after each boot.
    ///
    /// # Errors
    /// `Unreadable`.
    ///
    /// # Source
    /// Linux `Documentation/admin-guide/sysctl/kernel.rst`, `random/boot_id`: a UUID generated the first time it is read.
    pub fn boot_id(&self) -> Result<Option<String>, HostError> {
        Ok(self.text("proc/sys/kernel/random/boot_id")?.filter(|id| !id.is_empty()))
    }

    /// The kernel's release, `6.12.48+deb13-amd64`.
    ///
    /// # Errors
    /// `Unreadable`.
    pub fn kernel_release(&self) -> Result<Option<String>, HostError> {
        Ok(self.text("proc/sys/kernel/osrelease")?.map(|text| text.trim().to_owned()))
    }

    /// Version of the module that drives a PCI function, as the module states it; `None` if it states none.
    ///
    /// # Errors
    /// `Unreadable`.
    ///
    /// # Source
    /// Linux `Documentation/ABI/stable/sysfs-module`, `version`: the value of `MODULE_VERSION`.
    pub fn driver_version(&self, addr: PciAddress) -> Result<Option<String>, HostError> {
        let text = self.text(&format!("{}/driver/module/version", pci(addr)))?;
        Ok(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
    }

    /// Whether this tree has the PCI function at all.
    ///
    /// # Errors
    /// `Unreadable`.
    pub fn has_function(&self, addr: PciAddress) -> Result<bool, HostError> {
        let path = pci(addr);
        Ok(present(&path, std::fs::metadata(self.root.join(&path)))?.is_some())
    }

    /// libvirt's address of the parent that the kernel calls `name`; `None` for a name that is none, and for a device of an
    /// unknown kind that is not there.
    ///
    /// # Errors
    /// `Unreadable`.
    ///
    /// # Source
    /// libvirt `node_device_udev.c`, `udevGenerateDeviceName`, and its fixed name for the AP matrix.
    pub fn parent_called(&self, name: &str) -> Result<Option<ParentAddr>, HostError> {
        let Ok(checked) = name.parse::<NodeName>() else { return Ok(None) };
        if let Ok(addr) = name.parse::<PciAddress>() {
            return Ok(Some(ParentAddr::Pci(addr)));
        }
        let css = name.split('.').count() == 3 && name.bytes().all(|b| b.is_ascii_hexdigit() || b == b'.');
        let subsystem = match name {
            "matrix" => Some("ap".to_owned()),
            _ if css => Some("css".to_owned()),
            _ => self.link_name(&format!("sys/class/mdev_bus/{}/subsystem", checked.as_str()))?,
        };
        Ok(subsystem.and_then(|subsystem| format!("{subsystem}_{}", flat(name)).parse().ok()))
    }

    /// The mediated device of this UUID, if the kernel has one.
    ///
    /// # Errors
    /// `Unreadable`.
    ///
    /// # Source
    /// Linux `drivers/vfio/mdev`: a UUID is unique among active devices; the device lies below its parent and has the
    /// link `mdev_type`.
    pub fn active_mdev(&self, uuid: MdevUuid) -> Result<Option<ActiveMdev>, HostError> {
        let path = format!("{MDEV_DEVICES}/{uuid}");
        let Some(target) = self.link(&path)? else { return Ok(None) };
        let parent = target.parent().and_then(Path::file_name).and_then(|n| n.to_str());
        let Some(parent) = parent.filter(|name| !name.is_empty() && *name != "..") else {
            return Err(unreadable(&path, "it is no link into its parent's directory"));
        };
        let type_id = self.link_name(&format!("{path}/mdev_type"))?.and_then(|name| name.parse().ok());
        Ok(Some(ActiveMdev { parent: parent.to_owned(), type_id }))
    }

    /// Whether the kernel has the mdev bus, so that a device that is not on it does not exist.
    pub fn has_mdev_bus(&self) -> bool {
        self.root.join(MDEV_DEVICES).is_dir()
    }

    /// UUIDs of all mediated devices in the kernel, in order; empty without the mdev module.
    ///
    /// # Errors
    /// `Unreadable`.
    pub fn active_mdevs(&self) -> Result<Vec<MdevUuid>, HostError> {
        let mut all: Vec<MdevUuid> =
            self.names_in(MDEV_DEVICES)?.iter().filter_map(|name| name.parse().ok()).collect();
        all.sort();
        Ok(all)
    }

    /// The driver that is bound to a PCI function.
    ///
    /// # Errors
    /// `Unreadable`.
    pub fn driver(&self, addr: PciAddress) -> Result<Option<String>, HostError> {
        self.link_name(&format!("{}/driver", pci(addr)))
    }

    /// The physical function of a virtual one.
    ///
    /// # Errors
    /// `Unreadable`.
    pub fn physical_function(&self, addr: PciAddress) -> Result<Option<PciAddress>, HostError> {
        let path = format!("{}/physfn", pci(addr));
        self.link_name(&path)?
            .map(|name| name.parse().map_err(|err| unreadable(&path, format!("{err}"))))
            .transpose()
    }

    /// The virtual functions of a physical one, with their numbers, in number order. A number may be missing.
    ///
    /// # Errors
    /// `Unreadable`.
    ///
    /// # Source
    /// Linux `Documentation/ABI/testing/sysfs-bus-pci`, `virtfnN`.
    pub fn virtual_functions(&self, addr: PciAddress) -> Result<Vec<(u32, PciAddress)>, HostError> {
        let directory = pci(addr);
        let mut found = Vec::new();
        for name in self.names_in(&directory)? {
            let Some(number) = name.strip_prefix("virtfn").and_then(|n| n.parse::<u32>().ok()) else {
                continue;
            };
            let path = format!("{directory}/virtfn{number}");
            if let Some(target) = self.link_name(&path)? {
                found.push((number, target.parse().map_err(|err| unreadable(&path, format!("{err}")))?));
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Virtual functions enabled and possible; `None` for a device without SR-IOV.
    ///
    /// # Errors
    /// `Unreadable`, also when a count is no number.
    pub fn sriov(&self, addr: PciAddress) -> Result<Option<SriovCounts>, HostError> {
        let Some(enabled) = self.number(&format!("{}/sriov_numvfs", pci(addr)))? else { return Ok(None) };
        let most = self.number(&format!("{}/sriov_totalvfs", pci(addr)))?;
        Ok(Some(SriovCounts { enabled, most }))
    }

    /// The members of every IOMMU group that has PCI functions, in address order.
    ///
    /// # Errors
    /// `Unreadable`.
    pub fn iommu_groups(&self) -> Result<BTreeMap<u32, Vec<PciAddress>>, HostError> {
        let mut groups: BTreeMap<u32, Vec<PciAddress>> = BTreeMap::new();
        for addr in self.names_in("sys/bus/pci/devices")?.iter().filter_map(|name| name.parse().ok()) {
            if let Some(number) = self.iommu_group(&pci(addr))? {
                groups.entry(number).or_default().push(addr);
            }
        }
        groups.values_mut().for_each(|members| members.sort_unstable());
        Ok(groups)
    }

    /// The number of the group that a device is in.
    fn iommu_group(&self, device: &str) -> Result<Option<u32>, HostError> {
        let path = format!("{device}/iommu_group");
        let Some(group) = self.link_name(&path)? else { return Ok(None) };
        group.parse().map(Some).map_err(|_| unreadable(&path, "the group has no number"))
    }

    fn number(&self, path: &str) -> Result<Option<u32>, HostError> {
        let Some(text) = self.text(path)? else { return Ok(None) };
        text.trim().parse().map(Some).map_err(|_| unreadable(path, "it holds no number"))
    }

    fn text(&self, path: &str) -> Result<Option<String>, HostError> {
        let mut bytes = Vec::new();
        let read =
            File::open(self.root.join(path)).and_then(|f| f.take(ATTRIBUTE_LIMIT).read_to_end(&mut bytes));
        let text = present(path, read)?.map(|_| String::from_utf8_lossy(&bytes).into_owned());
        Ok(text)
    }

    fn link(&self, path: &str) -> Result<Option<PathBuf>, HostError> {
        present(path, std::fs::read_link(self.root.join(path)))
    }

    /// The last component of a link's target; the target itself need not exist.
    fn link_name(&self, path: &str) -> Result<Option<String>, HostError> {
        let Some(target) = self.link(path)? else { return Ok(None) };
        let name = target.file_name().and_then(|n| n.to_str()).map(str::to_owned);
        name.map(Some).ok_or_else(|| unreadable(path, "its target has no plain name"))
    }

    /// Entries of a directory in text order, without those whose name is not UTF-8 (the kernel makes none).
    fn names_in(&self, path: &str) -> Result<Vec<String>, HostError> {
        let Some(entries) = present(path, std::fs::read_dir(self.root.join(path)))? else {
            return Ok(Vec::new());
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|err| unreadable(path, err.to_string()))?;
            names.extend(entry.file_name().into_string());
        }
        names.sort_unstable();
        Ok(names)
    }
}

fn pci(addr: PciAddress) -> String {
    format!("sys/bus/pci/devices/{addr}")
}

/// Whether `name` is what the kernel calls the device that libvirt calls `parent`.
///
/// # Source
/// libvirt `node_device_udev.c`, `udevGenerateDeviceName`: `<subsystem>_<kernel name>`, each byte that is not a letter or
/// digit turned into `_`; so a PCI address comes back whole and other names are compared in that form.
pub(super) fn is_kernel_name_of(name: &str, parent: &ParentAddr) -> bool {
    match parent {
        ParentAddr::Pci(addr) => name.parse() == Ok(*addr),
        ParentAddr::Node(node) => {
            node.as_str().strip_suffix(&flat(name)).is_some_and(|subsystem| subsystem.ends_with('_'))
        }
    }
}

fn flat(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// `NotFound` is an answer; so is `NotADirectory`, which a vanishing device can give.
fn present<T>(path: &str, result: io::Result<T>) -> Result<Option<T>, HostError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(err) => Err(unreadable(path, err.to_string())),
    }
}

fn unreadable(path: &str, why: impl Into<String>) -> HostError {
    HostError::Unreadable { what: format!("/{path}"), why: why.into() }
}
