//! Which attributes each host device of a domain gets: decided for the domain, not device by device.

use crate::model::{DeviceApi, DisplayWish, Hostdev, MdevUuid};
use crate::xml::error::XmlError;

use super::{DomainDoc, HostdevSource};

/// Host devices for `devices`, in their order, in a domain that already has those of `doc`.
///
/// With [`DisplayWish::On`] the first vfio-pci device gets `display='on'` and `ramfb='on'`.
///
/// # Errors
/// The wish cannot be met (no `<graphics>`, no vfio-pci device, a ramfb of the user's), or a second vfio-ap device.
///
/// # Source
/// libvirt `src/qemu/qemu_validate.c`: one ramfb, one vfio-ap, graphics for display; display for vfio-pci only.
pub fn hostdev_plan(
    devices: &[(MdevUuid, DeviceApi)],
    wish: DisplayWish,
    doc: &DomainDoc,
) -> Result<Vec<Hostdev>, XmlError> {
    only_one_ap(devices, doc)?;
    let console = match wish {
        DisplayWish::Off => None,
        DisplayWish::On => Some(console_device(devices, doc)?),
    };
    let hostdev = |(uuid, model): &(MdevUuid, DeviceApi)| {
        let on = console == Some(*uuid);
        Hostdev { uuid: *uuid, model: *model, display: on, ramfb: on }
    };
    Ok(devices.iter().map(hostdev).collect())
}

fn console_device(devices: &[(MdevUuid, DeviceApi)], doc: &DomainDoc) -> Result<MdevUuid, XmlError> {
    let first = devices.iter().find(|(_, api)| *api == DeviceApi::VfioPci);
    let Some((uuid, _)) = first else {
        return Err(XmlError::refused(
            "display",
            "no device of this domain is a vfio-pci device: ask for display off",
        ));
    };
    let about = HostdevSource::Mdev { uuid: *uuid, model: None }.to_string();
    if !doc.has_graphics {
        let why = "display='on' needs a <graphics> element in <devices>: add one or ask for display off";
        return Err(XmlError::refused(about, why));
    }
    if let Some(other) = doc.hostdevs.iter().find(|h| h.ramfb == Some(true)) {
        let why = format!(
            "only one host device may have ramfb='on', and {} has it: ask for display off",
            other.source
        );
        return Err(XmlError::refused(about, why));
    }
    Ok(*uuid)
}

fn only_one_ap(devices: &[(MdevUuid, DeviceApi)], doc: &DomainDoc) -> Result<(), XmlError> {
    let theirs =
        doc.hostdevs.iter().filter(|h| h.model() == Some(DeviceApi::VfioAp)).filter_map(|h| h.mdev_uuid());
    let ours = devices.iter().filter(|(_, api)| *api == DeviceApi::VfioAp).map(|(uuid, _)| *uuid);
    let mut all = theirs.chain(ours);
    match (all.next(), all.next()) {
        (Some(first), Some(second)) => {
            let why = format!("only one vfio-ap device is possible in a domain, and mdev {first} is one");
            Err(XmlError::refused(format!("mdev {second}"), why))
        }
        _ => Ok(()),
    }
}
