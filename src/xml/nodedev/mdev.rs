//! `<capability type='mdev'>`.

use crate::model::{InvalidName, MdevUuid, NodeName, ParentAddr, TypeId};
use crate::xml::error::XmlError;
use crate::xml::error::shown;
use crate::xml::intake::REPLACEMENT;
use crate::xml::reader::Reader;
use crate::xml::tag::Tag;

use super::MdevNode;
use super::parse::{decimal_attr, exact_text};

/// More attributes than any device has: one line of an AP matrix each, 256 adapters and 512 domains at most.
const MAX_ATTRS: usize = 1024;

/// A mediated device while it is read.
#[derive(Default)]
pub(super) struct MdevDraft {
    uuid: Option<MdevUuid>,
    type_id: Option<TypeId>,
    parent_addr: Option<ParentAddr>,
    iommu_group: Option<u32>,
    attrs: Vec<(String, String)>,
}

/// Reads the capability.
///
/// # Errors
/// Any part that cannot be understood: a device is never taken with half of its attributes.
pub(super) fn read(reader: &mut Reader<'_>) -> Result<MdevDraft, XmlError> {
    let depth = reader.depth();
    let mut draft = MdevDraft::default();
    while let Some(tag) = reader.child(depth)? {
        match tag.name() {
            "type" => draft.type_id = type_id(reader, &tag)?,
            "uuid" => draft.uuid = Some(uuid(reader)?),
            "parent_addr" => draft.parent_addr = parent_addr(&exact_text(reader)?),
            "iommuGroup" => draft.iommu_group = decimal_attr(reader, &tag, "number")?,
            "attr" => draft.attrs.extend(attr(reader, &tag)?),
            _ => {}
        }
        if draft.attrs.len() > MAX_ATTRS {
            return Err(XmlError::LimitExceeded { what: "attributes of one mdev", limit: MAX_ATTRS });
        }
    }
    Ok(draft)
}

impl MdevDraft {
    /// `name` stands in for a missing `<uuid>`.
    pub(super) fn finish(self, name: Option<&NodeName>) -> Result<MdevNode, XmlError> {
        let uuid = self.uuid.or_else(|| name.and_then(|name| uuid_in(name.as_str())));
        let uuid = uuid.ok_or_else(|| {
            XmlError::malformed("/device/capability", "there is no <uuid>, and the name is no mdev_<uuid>")
        })?;
        let (type_id, parent_addr, iommu_group) = (self.type_id, self.parent_addr, self.iommu_group);
        Ok(MdevNode { uuid, type_id, parent_addr, iommu_group, attrs: self.attrs })
    }
}

/// The 36 characters behind `mdev_`, in which libvirt turned `-` into `_`.
///
/// # Source
/// libvirt 7.0 `node_device_udev.c`: `mdev_<uuid>`; since 7.8 `_<parent>` follows.
fn uuid_in(name: &str) -> Option<MdevUuid> {
    let rest = name.strip_prefix("mdev_")?;
    let (uuid, rest) = rest.split_at_checked(36)?;
    (rest.is_empty() || rest.starts_with('_')).then(|| uuid.replace('_', "-").parse().ok()).flatten()
}

fn uuid(reader: &mut Reader<'_>) -> Result<MdevUuid, XmlError> {
    let text = reader.text()?;
    text.parse().map_err(|err: InvalidName| reader.malformed(err.to_string()))
}

fn type_id(reader: &Reader<'_>, tag: &Tag<'_>) -> Result<Option<TypeId>, XmlError> {
    let Some(id) = tag.attr("id") else { return Ok(None) };
    id.parse().map(Some).map_err(|err: InvalidName| reader.malformed(err.to_string()))
}

/// The parent in mdevctl's spelling, which for css and AP differs from libvirt's node name.
///
/// # Source
/// Linux: bus ids `0.0.00b2` (css) and `matrix` (vfio_ap); libvirt names them `css_0_0_00b2` and `ap_matrix`.
fn parent_addr(text: &str) -> Option<ParentAddr> {
    let text = text.trim();
    let css = text.split('.').count() == 3 && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'.');
    match text {
        "matrix" => "ap_matrix".parse().ok(),
        _ if css => format!("css_{}", text.replace('.', "_")).parse().ok(),
        _ => text.parse().ok(),
    }
}

/// `<attr name='assign_adapter' value='3'/>`; libvirt drops one without a value, and so do we.
fn attr(reader: &Reader<'_>, tag: &Tag<'_>) -> Result<Option<(String, String)>, XmlError> {
    let (Some(name), Some(value)) = (tag.attr("name"), tag.attr("value")) else { return Ok(None) };
    if !is_attr_name(&name) || value.contains(REPLACEMENT) {
        return Err(reader.malformed(format!("'{}' is no attribute of a device", shown(&name))));
    }
    Ok(Some((name.into_owned(), value.into_owned())))
}

/// mdevctl writes the value to a file of this name below the device: no step up, nothing hidden.
fn is_attr_name(name: &str) -> bool {
    let plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
    };
    name.len() <= 128 && name.split('/').all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_names_carry_the_uuid() {
        let want = "e38f8857-e8ba-4559-b696-d9c39e499710";
        for name in [
            "mdev_e38f8857_e8ba_4559_b696_d9c39e499710",
            "mdev_e38f8857_e8ba_4559_b696_d9c39e499710_0000_3b_00_0",
        ] {
            assert_eq!(uuid_in(name).unwrap().to_string(), want);
        }
        for name in [
            "mdev_",
            "mdev_e38f8857",
            "mdev_e38f8857_e8ba_4559_b696_d9c39e49971",
            "mdev_e38f8857_e8ba_4559_b696_d9c39e4997100",
            "mdev_e38f8857_e8ba_4559_b696_d9c39e49971g",
            "pci_e38f8857_e8ba_4559_b696_d9c39e499710",
        ] {
            assert_eq!(uuid_in(name), None, "{name}");
        }
    }

    #[test]
    fn parents_get_libvirts_names() {
        for (text, want) in [
            ("0000:3b:00.0", "pci_0000_3b_00_0"),
            ("0.0.00b2", "css_0_0_00b2"),
            ("matrix", "ap_matrix"),
            ("mtty", "mtty"),
        ] {
            assert_eq!(parent_addr(text).unwrap().node_name(), want);
        }
        assert_eq!(parent_addr("../../x"), None);
    }

    #[test]
    fn attribute_names_stay_below_the_device() {
        for good in ["assign_adapter", "nvidia/vgpu_params"] {
            assert!(is_attr_name(good), "{good}");
        }
        for bad in ["", "../../../remove", "/x", "x/", "a//b", ".hidden", "a b", "a\u{fffd}"] {
            assert!(!is_attr_name(bad), "{bad}");
        }
    }
}
