//! The `<address domain= bus= slot= function=/>` that node devices and domains share.

use crate::model::PciAddress;

use super::error::{XmlError, shown};
use super::reader::Reader;
use super::tag::Tag;

/// Reads a host's PCI address; a part that is left out is 0.
///
/// # Source
/// libvirt `src/conf/device_conf.c`, `virPCIDeviceAddressParseXML`: numbers in C's spelling (`0x1f`, `31`, `037`).
pub(super) fn read(reader: &Reader<'_>, tag: &Tag<'_>) -> Result<PciAddress, XmlError> {
    let part = |name: &str| -> Result<u32, XmlError> {
        let Some(text) = tag.attr(name) else { return Ok(0) };
        number(&text).ok_or_else(|| reader.malformed(format!("{name}='{}' is no number", shown(&text))))
    };
    let byte = |name: &str| -> Result<u8, XmlError> {
        u8::try_from(part(name)?).map_err(|_| reader.malformed(format!("{name} is above 0xff")))
    };
    let addr = PciAddress::new(part("domain")?, byte("bus")?, byte("slot")?, byte("function")?);
    addr.ok_or_else(|| reader.malformed("slot is above 0x1f or function above 7"))
}

/// A number in C's spelling: the prefix tells the base.
fn number(text: &str) -> Option<u32> {
    let (digits, base) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
    if plain { u32::from_str_radix(digits, base).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        for (text, want) in
            [("0x1f", Some(31)), ("0X1F", Some(31)), ("31", Some(31)), ("037", Some(31)), ("0", Some(0))]
        {
            assert_eq!(number(text), want, "{text}");
        }
        for text in ["", "0x", "1f", "+1", "-1", " 1", "08", "0x100000000"] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
