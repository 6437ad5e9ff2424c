//! `<capability type='pci'>`.

use crate::model::{MdevType, PciAddress};
use crate::xml::address;
use crate::xml::error::{XmlError, shown};
use crate::xml::reader::Reader;
use crate::xml::tag::Tag;

use super::parse::{Draft, decimal, decimal_attr, some_text};
use super::types;
use super::{IommuGroup, PciNode};

/// A PCI function while it is read.
#[derive(Default)]
pub(super) struct PciDraft {
    /// Domain, bus, slot, function.
    place: [Option<u32>; 4],
    vendor_id: Option<u16>,
    device_id: Option<u16>,
    product: Option<String>,
    numa_node: Option<u32>,
    iommu_group: Option<IommuGroup>,
    physical_function: Option<PciAddress>,
    has_virtual_functions: bool,
}

/// Reads the capability; its types go to the device's.
pub(super) fn read(reader: &mut Reader<'_>, draft: &mut Draft) -> Result<(), XmlError> {
    let depth = reader.depth();
    let mut pci = draft.pci.take().unwrap_or_default();
    while let Some(tag) = reader.child(depth)? {
        match tag.name() {
            "domain" => pci.place[0] = Some(number(reader)?),
            "bus" => pci.place[1] = Some(number(reader)?),
            "slot" => pci.place[2] = Some(number(reader)?),
            "function" => pci.place[3] = Some(number(reader)?),
            "vendor" => pci.vendor_id = id(reader, &tag)?,
            "product" => {
                pci.device_id = id(reader, &tag)?;
                pci.product = some_text(&reader.text()?);
            }
            // -1 is the kernel's word for "not known".
            "numa" => pci.numa_node = tag.attr("node").and_then(|n| n.parse().ok()),
            "iommuGroup" => pci.iommu_group = iommu_group(reader, &tag)?,
            "capability" => match tag.attr("type").as_deref() {
                Some("phys_function") => pci.physical_function = addresses(reader)?.first().copied(),
                Some("virt_functions") => pci.has_virtual_functions = true,
                Some(types::CAPABILITY) => types::read(reader, draft.types.get_or_insert_default())?,
                Some(_) | None => {}
            },
            _ => {}
        }
    }
    draft.pci = Some(pci);
    Ok(())
}

impl PciDraft {
    pub(super) fn finish(self, types: Option<Vec<MdevType>>) -> Result<PciNode, XmlError> {
        let addr = address(self.place).ok_or_else(|| {
            XmlError::malformed("/device/capability", "domain, bus, slot and function are no PCI address")
        })?;
        Ok(PciNode {
            addr,
            vendor_id: self.vendor_id,
            device_id: self.device_id,
            product: self.product,
            numa_node: self.numa_node,
            iommu_group: self.iommu_group,
            physical_function: self.physical_function,
            has_virtual_functions: self.has_virtual_functions,
            types,
        })
    }
}

fn address(place: [Option<u32>; 4]) -> Option<PciAddress> {
    let [domain, bus, slot, function] = place;
    let byte = |n: Option<u32>| n.and_then(|n| u8::try_from(n).ok());
    PciAddress::new(domain?, byte(bus)?, byte(slot)?, byte(function)?)
}

/// In this capability libvirt prints the address in decimal, everywhere else in hexadecimal.
fn number(reader: &mut Reader<'_>) -> Result<u32, XmlError> {
    let text = reader.text()?;
    decimal(reader, &text)
}

/// `id='0x1eb8'`.
fn id(reader: &Reader<'_>, tag: &Tag<'_>) -> Result<Option<u16>, XmlError> {
    let Some(text) = tag.attr("id") else { return Ok(None) };
    let digits = text.trim().trim_start_matches("0x");
    match u16::from_str_radix(digits, 16) {
        Ok(id) => Ok(Some(id)),
        Err(_) => Err(reader.malformed(format!("{} is no PCI id", shown(&text)))),
    }
}

/// `<iommuGroup number='33'>` with its members.
fn iommu_group<'a>(reader: &mut Reader<'a>, tag: &Tag<'a>) -> Result<Option<IommuGroup>, XmlError> {
    let number = decimal_attr(reader, tag, "number")?;
    let members = addresses(reader)?;
    Ok(number.map(|number| IommuGroup { number, members }))
}

fn addresses(reader: &mut Reader<'_>) -> Result<Vec<PciAddress>, XmlError> {
    let depth = reader.depth();
    let mut all = Vec::new();
    while let Some(tag) = reader.child(depth)? {
        if tag.name() == "address" {
            all.push(address::read(reader, &tag)?);
        }
    }
    Ok(all)
}
