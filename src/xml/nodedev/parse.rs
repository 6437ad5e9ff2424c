//! `<device>` to a value: the frame, and which capability makes it what.

use crate::model::{Finding, FindingKind, NodeName};
use crate::xml::error::{XmlError, shown};
use crate::xml::intake::{REPLACEMENT, lenient};
use crate::xml::reader::Reader;
use crate::xml::tag::Tag;

use super::mdev::{self, MdevDraft};
use super::pci::{self, PciDraft};
use super::types::{self, Types};
use super::{MdevNode, NodeDevice, NodeKind};

/// Reads one node device, at most [`crate::xml::MAX_BYTES`] long.
///
/// # Errors
/// The document is not well-formed, is no `<device>`, lacks what identifies the device, or is over a limit. A single
/// type that cannot be understood is no error: it is left out and named in [`NodeDevice::findings`].
///
/// # Source
/// libvirt `formatnode.html`; `src/conf/node_device_conf.c` 9.0 and 11.3.
pub fn parse(xml: &[u8]) -> Result<NodeDevice, XmlError> {
    let text = lenient(xml, "bytes of a node device's XML")?;
    Draft::read(&text)?.finish()
}

/// Reads the document that makes a mediated device: name of the parent, and the device. It has no name of its own.
pub(in crate::xml) fn read_new_mdev(xml: &str) -> Result<(Option<NodeName>, MdevNode), XmlError> {
    let draft = Draft::read(xml)?;
    let mdev = draft.mdev.ok_or_else(|| XmlError::malformed("/device", "there is no mdev capability"))?;
    Ok((draft.parent, mdev.finish(None)?))
}

/// A device while it is read.
#[derive(Default)]
pub(super) struct Draft {
    name: Option<NodeName>,
    parent: Option<NodeName>,
    driver: Option<String>,
    pub(super) pci: Option<PciDraft>,
    pub(super) mdev: Option<MdevDraft>,
    pub(super) types: Option<Types>,
}

impl Draft {
    fn read(xml: &str) -> Result<Self, XmlError> {
        let (mut reader, _) = Reader::open(xml, "device")?;
        let mut draft = Self::default();
        while let Some(tag) = reader.child(1)? {
            match tag.name() {
                "name" if draft.name.is_none() => draft.name = Some(node_name(&mut reader)?),
                "parent" if draft.parent.is_none() => draft.parent = Some(node_name(&mut reader)?),
                "driver" => draft.driver = driver(&mut reader)?,
                "capability" => capability(&mut reader, &tag, &mut draft)?,
                _ => {}
            }
        }
        reader.finish()?;
        Ok(draft)
    }

    fn finish(self) -> Result<NodeDevice, XmlError> {
        let name = self.name.ok_or_else(|| XmlError::malformed("/device", "there is no <name>"))?;
        let mut left_out = Vec::new();
        let types = self.types.map(|types| types.finish(&mut left_out));
        let kind = match (self.pci, self.mdev, types) {
            (_, Some(mdev), _) => NodeKind::Mdev(mdev.finish(Some(&name))?),
            (Some(pci), None, types) => NodeKind::Pci(pci.finish(types)?),
            (None, None, Some(types)) => NodeKind::Parent(types),
            (None, None, None) => NodeKind::Other,
        };
        let finding = |text: String| Finding::new(FindingKind::MalformedInput, name.as_str(), text);
        let findings = left_out.into_iter().map(finding).collect();
        Ok(NodeDevice { name, parent_name: self.parent, driver: self.driver, kind, findings })
    }
}

fn capability<'a>(reader: &mut Reader<'a>, tag: &Tag<'a>, draft: &mut Draft) -> Result<(), XmlError> {
    match tag.attr("type").as_deref() {
        Some("pci") => pci::read(reader, draft),
        Some("mdev") => {
            draft.mdev = Some(mdev::read(reader)?);
            Ok(())
        }
        Some(types::CAPABILITY) => types::read(reader, draft.types.get_or_insert_default()),
        Some(_) | None => nested_types(reader, draft),
    }
}

/// The types of a capability that matters for nothing else (css, ap_matrix, ccwgroup).
fn nested_types(reader: &mut Reader<'_>, draft: &mut Draft) -> Result<(), XmlError> {
    let depth = reader.depth();
    while let Some(tag) = reader.child(depth)? {
        if tag.name() == "capability" && tag.attr("type").as_deref() == Some(types::CAPABILITY) {
            types::read(reader, draft.types.get_or_insert_default())?;
        }
    }
    Ok(())
}

fn driver(reader: &mut Reader<'_>) -> Result<Option<String>, XmlError> {
    let depth = reader.depth();
    let mut name = None;
    while let Some(tag) = reader.child(depth)? {
        if tag.name() == "name" {
            name = some_text(&exact_text(reader)?);
        }
    }
    Ok(name)
}

fn node_name(reader: &mut Reader<'_>) -> Result<NodeName, XmlError> {
    let text = reader.text()?;
    text.trim().parse().map_err(|err: crate::model::InvalidName| reader.malformed(err.to_string()))
}

/// The text of the element just entered, which must not have lost a character on the way in.
pub(super) fn exact_text(reader: &mut Reader<'_>) -> Result<String, XmlError> {
    let text = reader.text()?;
    if text.contains(REPLACEMENT) {
        return Err(reader.malformed(format!("{} is not text in UTF-8", shown(&text))));
    }
    Ok(text.into_owned())
}

/// Without blanks at the ends; `None` if nothing is left.
pub(super) fn some_text(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The attribute as a decimal number, `None` if it is not there.
pub(super) fn decimal_attr(reader: &Reader<'_>, tag: &Tag<'_>, name: &str) -> Result<Option<u32>, XmlError> {
    tag.attr(name).map(|text| decimal(reader, &text)).transpose()
}

/// A decimal number: digits only.
pub(super) fn decimal(reader: &Reader<'_>, text: &str) -> Result<u32, XmlError> {
    let text = text.trim();
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = if digits { text.parse().ok() } else { None };
    number.ok_or_else(|| reader.malformed(format!("{} is no number", shown(text))))
}
