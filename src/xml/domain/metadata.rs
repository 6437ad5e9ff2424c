//! What a domain says in its metadata that it wants, and what it has: `<m:vgpu xmlns:m="urn:mdevirt:domain:1"
//! flavor="resources:VGPU=1" held="..."/>`.
//!
//! libvirt keeps one element for each namespace below `<metadata>`, and does not look into it.

use std::ops::Range;

use crate::xml::error::XmlError;
use crate::xml::reader::Reader;
use crate::xml::tag::Tag;

use super::edit::{Edit, apply, deeper, lead};
use super::{DomainDoc, Layout};

/// The namespace of our element.
pub const METADATA: &str = "urn:mdevirt:domain:1";

/// Our element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vgpu {
    /// Flavor extra specs, if it asks for something.
    pub flavor: Option<String>,
    /// What it has while it runs, in words that this room does not read.
    pub held: Option<String>,
}

/// Where metadata is, in bytes of the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MetadataSpan {
    /// The start tag, or the whole element if it is `<metadata/>`.
    start: Range<usize>,
    /// Where the end tag begins; `None` for `<metadata/>`.
    end: Option<usize>,
    /// Our element.
    ours: Option<Range<usize>>,
}

/// Reads the `<metadata>` just entered, of this domain.
pub(super) fn read<'a>(
    reader: &mut Reader<'a>,
    domain: &Tag<'a>,
    tag: &Tag<'a>,
) -> Result<(MetadataSpan, Option<Vgpu>), XmlError> {
    let depth = reader.depth();
    let (mut ours, mut vgpu) = (None, None);
    while let Some(child) = reader.child(depth)? {
        if !is_ours(&child, &[tag, domain]) {
            continue;
        }
        if ours.is_some() {
            return Err(reader.malformed(format!("two elements of {METADATA}")));
        }
        let attr = |name| child.attr(name).map(std::borrow::Cow::into_owned);
        vgpu = Some(Vgpu { flavor: attr("flavor"), held: attr("held") });
        let end = reader.skip()?.end.max(child.span.end);
        ours = Some(child.span.start..end);
    }
    let end = (!tag.empty).then(|| reader.last_end().start);
    Ok((MetadataSpan { start: tag.span.clone(), end, ours }, vgpu))
}

/// Whether it is `vgpu` of our namespace, by whatever prefix; `outer` are the elements around it, from the nearest.
fn is_ours(tag: &Tag<'_>, outer: &[&Tag<'_>]) -> bool {
    let name = tag.start.name();
    let (key, local) = match name.as_ref().split_once(':') {
        Some((prefix, local)) => (format!("xmlns:{prefix}"), local),
        None => ("xmlns".to_owned(), name.as_ref()),
    };
    let mut scopes = std::iter::once(tag).chain(outer.iter().copied());
    local == "vgpu" && scopes.find_map(|scope| scope.attr(&key)).is_some_and(|space| space == METADATA)
}

/// The document with this element of ours, in the place of the one that it has; without it for `None`. Everything else stays.
///
/// # Errors
/// The document cannot be understood.
pub fn with_vgpu(xml: &str, vgpu: Option<&Vgpu>) -> Result<String, XmlError> {
    with_element(xml, vgpu.map(|vgpu| in_namespace(&vgpu_element(vgpu))))
}

/// The document with this element of ours, given without its namespace as by [`vgpu_element`].
///
/// # Errors
/// The document cannot be understood.
pub fn with_vgpu_element(xml: &str, element: &str) -> Result<String, XmlError> {
    with_element(xml, Some(in_namespace(element)))
}

/// Our element as libvirt takes it, which gives it its namespace.
pub fn vgpu_element(vgpu: &Vgpu) -> String {
    let attribute = |name: &str, value: &Option<String>| {
        value.as_deref().map(|value| format!(" {name}=\"{}\"", escaped(value))).unwrap_or_default()
    };
    format!("<vgpu{}{}/>", attribute("flavor", &vgpu.flavor), attribute("held", &vgpu.held))
}

fn in_namespace(element: &str) -> String {
    element.replacen("<vgpu", &format!("<m:vgpu xmlns:m=\"{METADATA}\""), 1)
}

fn with_element(xml: &str, element: Option<String>) -> Result<String, XmlError> {
    let doc = DomainDoc::parse(xml)?;
    let edit = match (&doc.layout.metadata, element) {
        (Some(MetadataSpan { ours: Some(ours), .. }), Some(with)) => Edit { at: ours.clone(), with },
        (Some(MetadataSpan { ours: Some(ours), .. }), None) => {
            Edit::remove(ours.start - lead(xml, ours.start).len()..ours.end)
        }
        (Some(metadata), Some(element)) => into_metadata(xml, metadata, &element),
        (None, Some(element)) => as_metadata(xml, &doc.layout, &element),
        (_, None) => return Ok(xml.to_owned()),
    };
    Ok(apply(xml, vec![edit]))
}

fn into_metadata(xml: &str, metadata: &MetadataSpan, element: &str) -> Edit {
    let Some(end) = metadata.end else {
        let outer = lead(xml, metadata.start.start);
        let tag = xml.get(metadata.start.clone()).unwrap_or_default().trim_end_matches("/>").trim_end();
        let with = format!("{tag}>{}{element}{outer}</metadata>", deeper(outer));
        return Edit { at: metadata.start.clone(), with };
    };
    let outer = lead(xml, end);
    Edit::insert(end - outer.len(), format!("{}{element}", deeper(outer)))
}

/// Behind the name, where libvirt has it nearly.
fn as_metadata(xml: &str, layout: &Layout, element: &str) -> Edit {
    let outer = lead(xml, layout.name.start);
    let with = format!("{outer}<metadata>{}{element}{outer}</metadata>", deeper(outer));
    Edit::insert(layout.name.end, with)
}

/// An attribute's value; line ends would be read back as blanks.
fn escaped(text: &str) -> String {
    let text = quick_xml::escape::escape(text);
    text.replace('\n', "&#10;").replace('\t', "&#9;").replace('\r', "&#13;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLAIN: &str = "<domain type='kvm'>\n  <name>a</name>\n  <memory>1</memory>\n</domain>\n";

    fn wish(flavor: &str) -> Vgpu {
        Vgpu { flavor: Some(flavor.to_owned()), held: None }
    }

    fn read(xml: &str) -> Option<Vgpu> {
        DomainDoc::parse(xml).unwrap().vgpu
    }

    #[test]
    fn found_by_its_namespace_whatever_the_prefix() {
        let with = |metadata: &str| PLAIN.replace("<memory>", &format!("{metadata}<memory>"));
        for ours in [
            "<metadata><m:vgpu xmlns:m='urn:mdevirt:domain:1' flavor='f'/></metadata>",
            "<metadata><vgpu xmlns='urn:mdevirt:domain:1' flavor='f'><x/></vgpu></metadata>",
            "<metadata xmlns:q='urn:mdevirt:domain:1'><q:vgpu flavor='f'>t</q:vgpu></metadata>",
            "<metadata><a:b xmlns:a='urn:other'/><m:vgpu flavor='f' xmlns:m='urn:mdevirt:domain:1'/></metadata>",
        ] {
            assert_eq!(read(&with(ours)), Some(wish("f")), "{ours}");
        }
        for other in [
            "<metadata><m:vgpu xmlns:m='urn:other' flavor='f'/></metadata>",
            "<metadata><vgpu flavor='f'/></metadata>",
            "<metadata><a><m:vgpu xmlns:m='urn:mdevirt:domain:1' flavor='f'/></a></metadata>",
            "<other><m:vgpu xmlns:m='urn:mdevirt:domain:1' flavor='f'/></other>",
            "<metadata><m:other xmlns:m='urn:mdevirt:domain:1' flavor='f'/></metadata>",
        ] {
            assert_eq!(read(&with(other)), None, "{other}");
        }
        let two = "<metadata><m:vgpu xmlns:m='urn:mdevirt:domain:1'/><m:vgpu xmlns:m='urn:mdevirt:domain:1'/></metadata>";
        assert!(DomainDoc::parse(with(two)).is_err());
    }

    #[test]
    fn written_where_the_document_has_its_place() {
        let made = with_vgpu(PLAIN, Some(&wish("resources:VGPU=1"))).unwrap();
        assert_eq!(
            made,
            "<domain type='kvm'>\n  <name>a</name>\n  <metadata>\n    <m:vgpu xmlns:m=\"urn:mdevirt:domain:1\" \
             flavor=\"resources:VGPU=1\"/>\n  </metadata>\n  <memory>1</memory>\n</domain>\n"
        );
        assert_eq!(with_vgpu(&made, Some(&wish("resources:VGPU=1"))).unwrap(), made);
        for metadata in
            ["<metadata/>", "<metadata></metadata>", "<metadata>\n    <x xmlns='u'/>\n  </metadata>"]
        {
            let xml = PLAIN.replace("<memory>", &format!("{metadata}\n  <memory>"));
            let made = with_vgpu(&xml, Some(&wish("f"))).unwrap();
            assert_eq!(read(&made), Some(wish("f")), "{made}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_and_taken_out_again(flavor in "[ -~\n\té]{0,40}", other in "[ -~]{0,20}") {
            let made = with_vgpu(PLAIN, Some(&wish(&flavor))).unwrap();
            prop_assert_eq!(read(&made), Some(wish(&flavor)));
            let both = Vgpu { held: Some(flavor.clone()), ..wish(&other) };
            let changed = with_vgpu_element(&made, &vgpu_element(&both)).unwrap();
            prop_assert_eq!(read(&changed), Some(both));
            prop_assert_eq!(with_vgpu(&changed, Some(&wish(&flavor))).unwrap(), made);
            prop_assert_eq!(read(&with_vgpu(&changed, None).unwrap()), None);
        }
    }
}
