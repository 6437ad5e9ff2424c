//! Host devices into a domain's XML, and out of it again.

use crate::model::{DeviceApi, DisplayWish, InstanceUuid, MdevUuid};
use crate::xml::error::XmlError;
use crate::xml::render::Templates;

use super::edit::{Edit, apply, deeper, lead};
use super::{DomainDoc, HostdevSource, fragment, hostdev_plan};

/// What a domain shall get.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The UUID to add if the document has none.
    pub uuid: Option<InstanceUuid>,
    /// Its devices, in the order in which the guest shall find them.
    pub devices: &'a [(MdevUuid, DeviceApi)],
    /// Console wish.
    pub display: DisplayWish,
}

/// The document with exactly these devices of ours: what it had of them is written anew, everything else stays.
/// Doing it again changes nothing.
///
/// # Errors
/// Those of [`DomainDoc::parse`], [`hostdev_plan`] and [`write_hostdevs`]. What the user wrote is not judged here, see
/// [`super::check()`].
pub fn with_devices(xml: &str, wanted: &Wanted<'_>, templates: &Templates) -> Result<String, XmlError> {
    let ours: Vec<MdevUuid> = wanted.devices.iter().map(|(uuid, _)| *uuid).collect();
    let bare = without_hostdevs(xml, &ours)?;
    let plan = hostdev_plan(wanted.devices, wanted.display, &DomainDoc::parse(&bare)?)?;
    let rendered = plan.iter().map(|hostdev| templates.hostdev(hostdev)).collect::<Result<Vec<_>, _>>()?;
    write_hostdevs(&bare, wanted.uuid, &rendered)
}

/// The document with rendered `<hostdev>` elements at the end of its `<devices>` (made if it is missing) and, if it has
/// none, a `<uuid>` behind its `<name>`. A device that the document has already is left as it is there.
///
/// # Errors
/// The document or an element cannot be understood, or the document has another UUID.
pub fn write_hostdevs(
    xml: &str,
    uuid: Option<InstanceUuid>,
    rendered: &[String],
) -> Result<String, XmlError> {
    let doc = DomainDoc::parse(xml)?;
    let mut edits = Vec::new();
    match (uuid, doc.uuid) {
        (Some(wanted), None) => {
            let lead = lead(xml, doc.layout.name.start);
            edits.push(Edit::insert(doc.layout.name.end, format!("{lead}<uuid>{wanted}</uuid>")));
        }
        (Some(wanted), Some(found)) if wanted != found => {
            let why = format!("the document is of domain {found}, not of {wanted}");
            return Err(XmlError::refused("uuid", why));
        }
        (_, _) => {}
    }
    let fresh = fresh(&doc, rendered)?;
    if !fresh.is_empty() {
        edits.push(into_devices(xml, &doc, &fresh));
    }
    Ok(apply(xml, edits))
}

/// The document without the host devices that have these UUIDs, wherever they stand; nothing else changes.
///
/// # Errors
/// The document cannot be understood.
pub fn without_hostdevs(xml: &str, uuids: &[MdevUuid]) -> Result<String, XmlError> {
    let doc = DomainDoc::parse(xml)?;
    let ours = doc.hostdevs.iter().filter(|h| h.mdev_uuid().is_some_and(|uuid| uuids.contains(&uuid)));
    let edits =
        ours.map(|h| Edit::remove(h.span.start - lead(xml, h.span.start).len()..h.span.end)).collect();
    Ok(apply(xml, edits))
}

/// The document with other devices in the place of these, first the old one: each keeps its place in the guest, and
/// everything else stays. One that the document does not have is passed by.
///
/// # Errors
/// The document cannot be understood.
pub fn with_other_uuids(xml: &str, pairs: &[(MdevUuid, MdevUuid)]) -> Result<String, XmlError> {
    let doc = DomainDoc::parse(xml)?;
    let edit = |hostdev: &super::DomainHostdev| {
        let (_, new) = pairs.iter().find(|(old, _)| hostdev.mdev_uuid() == Some(*old))?;
        let empty = xml.get(hostdev.address.clone()).is_some_and(|tag| tag.ends_with("/>"));
        let end = if empty { "/>" } else { ">" };
        Some(Edit { at: hostdev.address.clone(), with: format!("<address uuid='{new}'{end}") })
    };
    Ok(apply(xml, doc.hostdevs.iter().filter_map(edit).collect()))
}

/// The elements whose devices the document does not have yet, each device once.
fn fresh<'a>(doc: &DomainDoc, rendered: &'a [String]) -> Result<Vec<&'a str>, XmlError> {
    let mut known: Vec<HostdevSource> = doc.hostdevs.iter().map(|h| h.source.clone()).collect();
    let mut fresh = Vec::new();
    for text in rendered {
        let source = fragment(text)?.source;
        if !known.iter().any(|k| k.is_same_device(&source)) {
            known.push(source);
            fresh.push(text.trim());
        }
    }
    Ok(fresh)
}

/// The one change that brings the elements in, indented as the document is.
fn into_devices(xml: &str, doc: &DomainDoc, elements: &[&str]) -> Edit {
    let Some(devices) = &doc.layout.devices else {
        let outer = lead(xml, doc.layout.name.start);
        let body = indented(elements, &deeper(outer));
        let at = doc.layout.domain_end - lead(xml, doc.layout.domain_end).len();
        return Edit::insert(at, format!("{outer}<devices>{body}{outer}</devices>"));
    };
    let Some(end) = devices.end else {
        let outer = lead(xml, devices.start.start);
        let tag = xml.get(devices.start.clone()).unwrap_or_default().trim_end_matches("/>").trim_end();
        let body = indented(elements, &deeper(outer));
        return Edit { at: devices.start.clone(), with: format!("{tag}>{body}{outer}</devices>") };
    };
    let outer = lead(xml, end);
    let beside = devices.last_child.map(|at| lead(xml, at)).filter(|lead| !lead.is_empty());
    let inner = beside.map_or_else(|| deeper(outer), str::to_owned);
    Edit::insert(end - outer.len(), indented(elements, &inner))
}

/// Each element on its own lines behind `lead`.
fn indented(elements: &[&str], lead: &str) -> String {
    let mut out = String::new();
    for element in elements {
        for (index, line) in element.lines().enumerate() {
            match (index, lead.is_empty()) {
                (0, _) | (_, false) => out.push_str(lead),
                (_, true) => out.push('\n'),
            }
            out.push_str(line);
        }
    }
    out
}
