//! `<domain>` to [`DomainDoc`].

use crate::model::{InstanceUuid, InvalidName};
use crate::xml::error::XmlError;
use crate::xml::intake::strict;
use crate::xml::reader::Reader;
use crate::xml::tag::Tag;

use super::numa::Numatune;
use super::{DevicesSpan, DomainDoc, DomainHostdev, Layout, Vgpu, hostdev, metadata};

/// More host devices than any domain has.
const MAX_HOSTDEVS: usize = 256;

impl DomainDoc {
    /// Reads a domain, at most [`crate::xml::MAX_BYTES`] long.
    ///
    /// # Errors
    /// The document is not well-formed, is no `<domain>`, has no name, names a host device that cannot be understood,
    /// or is over a limit.
    ///
    /// # Source
    /// libvirt `formatdomain.html`; which elements count is that of `virDomainDefParseXML` (XPath `./devices/hostdev`).
    pub fn parse(xml: impl AsRef<[u8]>) -> Result<Self, XmlError> {
        let text = strict(xml.as_ref(), "bytes of a domain's XML")?;
        let (mut reader, domain) = Reader::open(text, "domain")?;
        let mut draft = Draft::default();
        while let Some(tag) = reader.child(1)? {
            match tag.name() {
                "name" if draft.name.is_none() => draft.name(&mut reader, &tag)?,
                "uuid" if draft.uuid.is_none() => draft.uuid = Some(uuid(&mut reader)?),
                "numatune" => draft.numatune.read(&mut reader)?,
                "metadata" if draft.layout.metadata.is_none() => {
                    let (span, vgpu) = metadata::read(&mut reader, &domain, &tag)?;
                    (draft.layout.metadata, draft.vgpu) = (Some(span), vgpu);
                }
                "devices" => draft.devices(&mut reader, &tag)?,
                _ => {}
            }
        }
        draft.layout.domain_end = reader.last_end().start;
        reader.finish()?;
        draft.finish()
    }
}

/// A domain while it is read.
#[derive(Default)]
struct Draft {
    uuid: Option<InstanceUuid>,
    name: Option<String>,
    has_graphics: bool,
    numatune: Numatune,
    hostdevs: Vec<DomainHostdev>,
    vgpu: Option<Vgpu>,
    layout: Layout,
}

impl Draft {
    fn name<'a>(&mut self, reader: &mut Reader<'a>, tag: &Tag<'a>) -> Result<(), XmlError> {
        self.name = Some(reader.text()?.into_owned());
        self.layout.name = tag.span.start..reader.last_end().end;
        Ok(())
    }

    fn devices<'a>(&mut self, reader: &mut Reader<'a>, tag: &Tag<'a>) -> Result<(), XmlError> {
        let depth = reader.depth();
        let mut last_child = None;
        while let Some(child) = reader.child(depth)? {
            last_child = Some(child.span.start);
            match child.name() {
                "graphics" => self.has_graphics = true,
                "hostdev" => self.hostdevs.extend(hostdev::read(reader, &child)?),
                _ => {}
            }
            if self.hostdevs.len() > MAX_HOSTDEVS {
                return Err(XmlError::LimitExceeded {
                    what: "host devices of one domain",
                    limit: MAX_HOSTDEVS,
                });
            }
        }
        let end = (!tag.empty).then(|| reader.last_end().start);
        self.layout.devices.get_or_insert(DevicesSpan { start: tag.span.clone(), end, last_child });
        Ok(())
    }

    fn finish(self) -> Result<DomainDoc, XmlError> {
        let name = self.name.filter(|name| !name.is_empty());
        Ok(DomainDoc {
            uuid: self.uuid,
            name: name.ok_or_else(|| XmlError::malformed("/domain", "there is no <name>"))?,
            has_graphics: self.has_graphics,
            memory_nodes: self.numatune.finish(),
            hostdevs: self.hostdevs,
            vgpu: self.vgpu,
            layout: self.layout,
        })
    }
}

fn uuid(reader: &mut Reader<'_>) -> Result<InstanceUuid, XmlError> {
    let text = reader.text()?;
    text.parse().map_err(|err: InvalidName| reader.malformed(err.to_string()))
}
