//! PCI ids as files and JSON write them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::id::InvalidName;

/// Reads a vendor or device id: four hexadecimal digits in either case, with or without `0x`.
///
/// # Errors
/// It is something else.
pub(crate) fn pci_id(text: &str) -> Result<u16, InvalidName> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let plain = digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let id = if plain { u16::from_str_radix(digits, 16).ok() } else { None };
    id.ok_or_else(|| InvalidName::new("PCI id", text, "expected four hexadecimal digits, as in 0x10de"))
}

/// The one form that is written.
pub(crate) fn written(id: u16) -> String {
    format!("{id:#06x}")
}

/// For serde: `"0x10de"` or `null`.
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Serialize, Serializer, pci_id, written};

    pub(crate) fn serialize<S: Serializer>(id: &Option<u16>, serializer: S) -> Result<S::Ok, S::Error> {
        id.map(written).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u16>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| pci_id(&text).map_err(serde::de::Error::custom)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_one_value_in_every_spelling() {
        for text in ["0x10de", "10de", "10DE", "0X10dE"] {
            assert_eq!(pci_id(text).unwrap(), 0x10de, "{text}");
        }
        assert_eq!(written(0x25), "0x0025");
        for text in ["", "0x", "10d", "0x010de", "+10d", "-10d", " 10de", "10dg", "0x0x10de", "4318d"] {
            assert!(pci_id(text).is_err(), "{text}");
        }
    }
}
