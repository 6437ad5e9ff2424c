//! What is wrong with the host devices of a domain, before libvirt is asked and before any device is made.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{DeviceApi, Finding, FindingKind, MdevUuid, PciAddress};
use crate::xml::error::{XmlError, shown};

use super::{DomainDoc, DomainHostdev, HostdevSource, Managed};

/// What the host knows of devices that a domain may name.
#[derive(Debug, Clone, Default)]
pub struct DeviceFacts {
    /// Device API of mediated devices, from their parents.
    pub device_api: BTreeMap<MdevUuid, DeviceApi>,
    /// VFs that carry a vendor's own vGPU and must stay on the vendor's driver.
    pub vendor_vfio: BTreeSet<PciAddress>,
}

/// Something about a domain that its owner should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// How bad it is.
    pub severity: Severity,
    /// The host device, or `name`.
    pub about: String,
    /// What is wrong and what to do.
    pub text: String,
}

/// How bad a [`Remark`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The domain must not be started like this.
    Refusal,
    /// It will start, but not do what its owner may think.
    Warning,
}

impl Remark {
    /// The remark as a line for `status`, about a domain.
    pub fn finding(&self, domain: &str) -> Finding {
        let kind = match self.severity {
            Severity::Refusal => FindingKind::Conflict,
            Severity::Warning => FindingKind::ConfigWarning,
        };
        Finding::new(kind, domain, format!("{}: {}", self.about, self.text))
    }
}

/// Looks at the domain as a whole; the remarks on its devices are in their order. Changes nothing.
///
/// # Source
/// libvirt `src/qemu/qemu_validate.c`, `qemuValidateDomainDeviceDefHostdev` and its callees (9.0, 11.3).
pub fn check(doc: &DomainDoc, facts: &DeviceFacts) -> Vec<Remark> {
    let mut remarks = Remarks::default();
    remarks.name(&doc.name);
    for hostdev in &doc.hostdevs {
        remarks.console(doc, hostdev);
        match &hostdev.source {
            HostdevSource::Mdev { uuid, model } => {
                remarks.model(hostdev, *model, facts.device_api.get(uuid).copied());
            }
            HostdevSource::Pci(addr) if facts.vendor_vfio.contains(addr) => remarks.vendor_vf(hostdev),
            HostdevSource::Pci(_) => {}
        }
        remarks.alias(hostdev);
    }
    remarks.only_once(doc);
    remarks.all
}

/// The refusals among the remarks as one error.
///
/// # Errors
/// There is at least one.
pub fn refuse(remarks: &[Remark]) -> Result<(), XmlError> {
    let mut refusals = remarks.iter().filter(|r| r.severity == Severity::Refusal);
    let Some(first) = refusals.next() else { return Ok(()) };
    let rest = refusals.map(|r| format!("; {}: {}", r.about, r.text));
    let why = std::iter::once(first.text.clone()).chain(rest).collect::<String>();
    Err(XmlError::refused(first.about.clone(), why))
}

#[derive(Default)]
struct Remarks {
    all: Vec<Remark>,
}

impl Remarks {
    fn add(&mut self, severity: Severity, about: &impl ToString, text: impl Into<String>) {
        self.all.push(Remark { severity, about: about.to_string(), text: text.into() });
    }

    /// libvirt makes paths of names, and checks them for slashes only.
    ///
    /// # Source
    /// Seen on libvirt 9.0: defining `..` fails, and takes the snapshot directory of all domains with it.
    fn name(&mut self, name: &str) {
        if matches!(name, "." | "..") {
            let text =
                format!("a domain must not be called '{name}': libvirt would use it as a path, take another");
            self.add(Severity::Refusal, &"name", text);
        }
    }

    fn console(&mut self, doc: &DomainDoc, hostdev: &DomainHostdev) {
        let about = &hostdev.source;
        let (display, ramfb) = (hostdev.display == Some(true), hostdev.ramfb == Some(true));
        if display && !doc.has_graphics {
            let text = "display='on' needs a <graphics> element in <devices>: add one or write display='off'";
            self.add(Severity::Refusal, about, text);
        }
        if ramfb && !display {
            let text =
                "ramfb='on' without display='on' shows nothing and keeps the device from being unplugged";
            self.add(Severity::Warning, about, text);
        }
    }

    fn model(&mut self, hostdev: &DomainHostdev, model: Option<DeviceApi>, wanted: Option<DeviceApi>) {
        let about = &hostdev.source;
        match (model, wanted) {
            (None, Some(api)) => {
                self.add(Severity::Refusal, about, format!("model missing: write model='{api}'"));
            }
            (None, None) => {
                let text =
                    "model missing: write the device API of its parent (vfio-pci, vfio-ccw or vfio-ap)";
                self.add(Severity::Refusal, about, text);
            }
            (Some(model), Some(api)) if model != api => {
                let text = format!("model='{model}' does not fit the device: write model='{api}'");
                self.add(Severity::Refusal, about, text);
            }
            (Some(model), _) => {
                let console = hostdev.display.is_some() || hostdev.ramfb.is_some();
                if console && model != DeviceApi::VfioPci {
                    let text = format!("display and ramfb are for model='vfio-pci' only, this is {model}");
                    self.add(Severity::Refusal, about, text);
                }
            }
        }
    }

    fn vendor_vf(&mut self, hostdev: &DomainHostdev) {
        match hostdev.managed {
            Managed::Yes => {
                let text = "it carries a vGPU and must stay on its vendor's driver: write managed='no'";
                self.add(Severity::Refusal, &hostdev.source, text);
            }
            Managed::Empty => {
                let text = "managed='' is taken for 'no' here and refused elsewhere: write managed='no'";
                self.add(Severity::Warning, &hostdev.source, text);
            }
            Managed::Absent | Managed::No => {}
        }
    }

    fn alias(&mut self, hostdev: &DomainHostdev) {
        let Some(alias) = &hostdev.alias else { return };
        let keeps = |rest: &str| rest.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
        // The name that libvirt itself gives in the XML of a running domain.
        let counted = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
        if alias.strip_prefix("hostdev").is_some_and(counted) {
            return;
        }
        if !alias.strip_prefix("ua-").is_some_and(keeps) {
            let text = format!(
                "libvirt drops the alias '{}' (it keeps ua- followed by letters, digits, '_', '-')",
                shown(alias)
            );
            self.add(Severity::Warning, &hostdev.source, text);
        }
    }

    /// What a domain may have once: a device, a ramfb, an AP matrix.
    fn only_once(&mut self, doc: &DomainDoc) {
        let named = |keep: fn(&DomainHostdev) -> bool| -> Vec<&HostdevSource> {
            doc.hostdevs.iter().filter(|h| keep(h)).map(|h| &h.source).collect()
        };
        if let [first, second, ..] = named(|h| h.ramfb == Some(true))[..] {
            let text = format!("only one host device may have ramfb='on', and {first} has it");
            self.add(Severity::Refusal, second, text);
        }
        if let [first, second, ..] = named(|h| h.model() == Some(DeviceApi::VfioAp))[..] {
            self.add(
                Severity::Refusal,
                second,
                format!("only one vfio-ap device is possible, and {first} is one"),
            );
        }
        for (index, hostdev) in doc.hostdevs.iter().enumerate() {
            if doc.hostdevs.iter().take(index).any(|other| other.source.is_same_device(&hostdev.source)) {
                self.add(Severity::Refusal, &hostdev.source, "the domain names it twice: remove one");
            }
        }
    }
}
