//! One `<hostdev>`.

use std::borrow::Cow;
use std::ops::Range;

use crate::model::{DeviceApi, InvalidName, MdevUuid, PciAddress};
use crate::xml::address;
use crate::xml::error::{XmlError, shown};
use crate::xml::reader::Reader;
use crate::xml::tag::Tag;

use super::{DomainHostdev, HostdevSource, Managed};

/// Reads the element just entered; `None` if it is neither a mediated nor a PCI device.
///
/// # Errors
/// Attributes and children that libvirt would not accept, or would read otherwise than we do.
///
/// # Source
/// libvirt `src/conf/domain_conf.c`, `virDomainHostdevDefParseXML`.
pub(super) fn read<'a>(reader: &mut Reader<'a>, tag: &Tag<'a>) -> Result<Option<DomainHostdev>, XmlError> {
    let subsystem = tag.attr("mode").is_none_or(|mode| mode == "subsystem");
    let kind = tag.attr("type").unwrap_or_default();
    let no_namespace = !tag.has_namespace();
    if no_namespace && !(subsystem && matches!(&*kind, "mdev" | "pci")) {
        reader.skip()?;
        return Ok(None);
    }
    let managed = managed(reader, tag)?;
    let (display, ramfb) = (switch(reader, tag, "display")?, switch(reader, tag, "ramfb")?);
    let parts = Parts::read(reader, no_namespace)?;
    let source = match (parts.mdev, parts.pci) {
        (Some(uuid), _) if kind == "mdev" => HostdevSource::Mdev { uuid, model: model(reader, tag)? },
        (_, Some(addr)) if kind == "pci" => HostdevSource::Pci(addr),
        (_, _) => return Err(reader.malformed("a hostdev without a source address")),
    };
    let span = tag.span.start..reader.last_end().end;
    Ok(Some(DomainHostdev {
        source,
        managed,
        display,
        ramfb,
        alias: parts.alias,
        span,
        address: parts.address,
    }))
}

/// Reads a text that is one `<hostdev>` and nothing else.
pub(in crate::xml) fn fragment(xml: &str) -> Result<DomainHostdev, XmlError> {
    let (mut reader, tag) = Reader::open(xml, "hostdev")?;
    let hostdev = read(&mut reader, &tag)?;
    let wrong = || XmlError::malformed("/hostdev", "it is neither of type mdev nor of type pci");
    reader.finish()?;
    hostdev.ok_or_else(wrong)
}

/// What the children say.
#[derive(Default)]
struct Parts {
    mdev: Option<MdevUuid>,
    pci: Option<PciAddress>,
    alias: Option<String>,
    address: Range<usize>,
}

impl Parts {
    fn read(reader: &mut Reader<'_>, mut plain: bool) -> Result<Self, XmlError> {
        let depth = reader.depth();
        let (mut parts, mut sources) = (Self::default(), 0);
        while let Some(tag) = reader.child(depth)? {
            plain &= !tag.has_namespace();
            match tag.name() {
                "source" => {
                    sources += 1;
                    plain &= parts.source(reader)?;
                }
                "alias" => parts.alias = tag.attr("name").map(Cow::into_owned),
                _ => {}
            }
        }
        // libvirt goes by the local name here: what it would take for the source must be what we take for it.
        if !plain {
            return Err(XmlError::refused("hostdev", "a namespace inside a host device is not accepted"));
        }
        if sources > 1 {
            return Err(reader.malformed("a hostdev with two sources"));
        }
        Ok(parts)
    }

    /// Reads `<source>`; whether it is free of namespaces.
    fn source(&mut self, reader: &mut Reader<'_>) -> Result<bool, XmlError> {
        let depth = reader.depth();
        let (mut plain, mut addresses) = (true, 0);
        while let Some(tag) = reader.child(depth)? {
            plain &= !tag.has_namespace();
            if tag.name() != "address" {
                continue;
            }
            addresses += 1;
            self.address = tag.span.clone();
            if let Some(uuid) = tag.attr("uuid") {
                self.mdev = Some(uuid.parse().map_err(|err: InvalidName| reader.malformed(err.to_string()))?);
            } else {
                self.pci = address::read(reader, &tag).map(Some)?;
            }
        }
        if addresses > 1 {
            return Err(reader.malformed("a source with two addresses"));
        }
        Ok(plain)
    }
}

fn model(reader: &Reader<'_>, tag: &Tag<'_>) -> Result<Option<DeviceApi>, XmlError> {
    let model = tag.attr("model").map(|text| text.parse()).transpose();
    model.map_err(|err: InvalidName| reader.malformed(err.to_string()))
}

fn managed(reader: &Reader<'_>, tag: &Tag<'_>) -> Result<Managed, XmlError> {
    match tag.attr("managed").as_deref() {
        None => Ok(Managed::Absent),
        Some("") => Ok(Managed::Empty),
        Some("no") => Ok(Managed::No),
        Some("yes") => Ok(Managed::Yes),
        Some(other) => Err(reader.malformed(format!("managed='{}' (expected yes or no)", shown(other)))),
    }
}

fn switch(reader: &Reader<'_>, tag: &Tag<'_>, name: &str) -> Result<Option<bool>, XmlError> {
    match tag.attr(name).as_deref() {
        None => Ok(None),
        Some("on") => Ok(Some(true)),
        Some("off") => Ok(Some(false)),
        Some(other) => Err(reader.malformed(format!("{name}='{}' (expected on or off)", shown(other)))),
    }
}
