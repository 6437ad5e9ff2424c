//! The XML that goes to libvirt, made from `xml-templates/`.
//!
//! An operator may put own templates beside ours. Each is tried out when it is loaded: it is filled with a sample, and
//! what comes out must say exactly what went in, so that a template can add to a device but never change it.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use uuid::Uuid;

use crate::model::{DeviceApi, Hostdev, MdevUuid, NewMdev, ParentAddr, PciAddress, TypeId};

use super::domain::{HostdevSource, Managed, fragment};
use super::error::XmlError;
use super::nodedev::read_new_mdev;
use super::template::{MAX_TEMPLATE, Template};

/// All templates, tried out.
#[derive(Debug, Clone)]
pub struct Templates {
    hostdev_mdev: Template,
    hostdev_vf: Template,
    nodedev_mdev: Template,
}

/// One template as it is shipped.
struct Shipped {
    name: &'static str,
    text: &'static str,
    root: &'static str,
    slots: &'static [&'static str],
}

const HOSTDEV_MDEV: Shipped = Shipped {
    name: "hostdev-mdev.xml",
    text: include_str!("../../xml-templates/hostdev-mdev.xml"),
    root: "hostdev",
    slots: &["uuid", "model", "display", "ramfb"],
};
const HOSTDEV_VF: Shipped = Shipped {
    name: "hostdev-vf.xml",
    text: include_str!("../../xml-templates/hostdev-vf.xml"),
    root: "hostdev",
    slots: &["domain", "bus", "slot", "function"],
};
const NODEDEV_MDEV: Shipped = Shipped {
    name: "nodedev-mdev.xml",
    text: include_str!("../../xml-templates/nodedev-mdev.xml"),
    root: "device",
    slots: &["parent", "type", "uuid"],
};

impl Templates {
    /// Takes each template from the first directory that has it, else the built-in one.
    ///
    /// # Errors
    /// Names the file that cannot be read, is broken, or renders another device than it was given. Only a file that is
    /// not there makes the next directory count.
    pub fn load(dirs: &[&Path]) -> Result<Self, XmlError> {
        let templates = Self {
            hostdev_mdev: HOSTDEV_MDEV.find(dirs)?,
            hostdev_vf: HOSTDEV_VF.find(dirs)?,
            nodedev_mdev: NODEDEV_MDEV.find(dirs)?,
        };
        templates.try_hostdevs()?;
        templates.try_vf()?;
        templates.try_nodedev()?;
        Ok(templates)
    }

    /// The `<hostdev>` of a mediated device: model always, display for vfio-pci, ramfb only when it is on.
    ///
    /// # Errors
    /// The template has `display` or `ramfb` where it cannot be left out.
    pub fn hostdev(&self, hostdev: &Hostdev) -> Result<String, XmlError> {
        let display = if hostdev.display { "on" } else { "off" };
        self.hostdev_mdev.fill(&[
            ("uuid", Some(&hostdev.uuid.to_string())),
            ("model", Some(hostdev.model.as_str())),
            ("display", (hostdev.model == DeviceApi::VfioPci).then_some(display)),
            ("ramfb", hostdev.ramfb.then_some("on")),
        ])
    }

    /// The `<hostdev>` of a VF that carries a vendor's own vGPU, always with `managed='no'`.
    ///
    /// # Errors
    /// None with a template that was loaded.
    pub fn hostdev_vf(&self, addr: PciAddress) -> Result<String, XmlError> {
        self.hostdev_vf.fill(&[
            ("domain", Some(&format!("{:#06x}", addr.domain()))),
            ("bus", Some(&format!("{:#04x}", addr.bus()))),
            ("slot", Some(&format!("{:#04x}", addr.slot()))),
            ("function", Some(&format!("{:#x}", addr.function()))),
        ])
    }

    /// The `<device>` that makes a mediated device.
    ///
    /// # Errors
    /// None with a template that was loaded.
    pub fn nodedev(&self, new: &NewMdev) -> Result<String, XmlError> {
        self.nodedev_mdev.fill(&[
            ("parent", Some(&new.parent.node_name())),
            ("type", Some(new.type_id.as_str())),
            ("uuid", Some(&new.uuid.to_string())),
        ])
    }

    fn try_hostdevs(&self) -> Result<(), XmlError> {
        for (model, display, ramfb) in [
            (DeviceApi::VfioPci, true, true),
            (DeviceApi::VfioPci, false, false),
            (DeviceApi::VfioCcw, false, false),
        ] {
            let sample = Hostdev { uuid: SAMPLE, model, display, ramfb };
            let text = self.hostdev(&sample)?;
            let got = fragment(&text).map_err(|err| self.hostdev_mdev.broken(&err.to_string()))?;
            let same = got.source == HostdevSource::Mdev { uuid: SAMPLE, model: Some(model) }
                && got.managed == Managed::No
                && got.display == (model == DeviceApi::VfioPci).then_some(display)
                && got.ramfb == ramfb.then_some(true);
            self.hostdev_mdev.unless(same)?;
        }
        Ok(())
    }

    fn try_vf(&self) -> Result<(), XmlError> {
        let Some(sample) = PciAddress::new(0x1, 0xa1, 0x02, 4) else { return Ok(()) };
        let got =
            fragment(&self.hostdev_vf(sample)?).map_err(|err| self.hostdev_vf.broken(&err.to_string()))?;
        self.hostdev_vf.unless(got.source == HostdevSource::Pci(sample) && got.managed == Managed::No)
    }

    fn try_nodedev(&self) -> Result<(), XmlError> {
        let template = &self.nodedev_mdev;
        let broken = |err: &dyn std::fmt::Display| template.broken(&err.to_string());
        let parent: ParentAddr = "mtty_mtty".parse().map_err(|err| broken(&err))?;
        let type_id: TypeId = "mtty-1".parse().map_err(|err| broken(&err))?;
        let sample = NewMdev { uuid: SAMPLE, parent, type_id, device_api: DeviceApi::VfioPci };
        let (parent, mdev) = read_new_mdev(&self.nodedev(&sample)?).map_err(|err| broken(&err))?;
        let same = mdev.uuid == SAMPLE
            && mdev.type_id.as_ref() == Some(&sample.type_id)
            && parent.is_some_and(|name| name.as_str() == sample.parent.node_name());
        template.unless(same)
    }
}

/// Any UUID whose digits differ.
const SAMPLE: MdevUuid = MdevUuid(Uuid::from_u128(0x0123_4567_89ab_4cde_8f01_2345_6789_abcd));

impl Template {
    fn broken(&self, why: &str) -> XmlError {
        XmlError::Template { file: self.file.clone(), why: why.to_owned() }
    }

    fn unless(&self, same: bool) -> Result<(), XmlError> {
        let why =
            "what it renders is not the device it was given: keep every slot where it is, and managed='no'";
        if same { Ok(()) } else { Err(self.broken(why)) }
    }
}

impl Shipped {
    fn find(&self, dirs: &[&Path]) -> Result<Template, XmlError> {
        for dir in dirs {
            let path = dir.join(self.name);
            let file = path.display().to_string().escape_debug().to_string();
            match read(&path) {
                Ok(text) => return Template::parse(&file, &text, self.root, self.slots),
                Err(err) if err.kind() == ErrorKind::NotFound => {}
                Err(err) => return Err(XmlError::Template { file, why: err.to_string() }),
            }
        }
        Template::parse(&format!("built-in {}", self.name), self.text.as_bytes(), self.root, self.slots)
    }
}

/// At most one byte more than a template may have.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let limit = u64::try_from(MAX_TEMPLATE).unwrap_or(u64::MAX).saturating_add(1);
    let mut text = Vec::new();
    File::open(path)?.take(limit).read_to_end(&mut text)?;
    Ok(text)
}
