//! The canonical form of what traits mean, and its digest: equal on two hosts if and only if each trait is bound to the
//! same identity on both.
//!
//! The form is one JSON object in UTF-8, trait to identity, without blanks and without a line end:
//! ```json
//! {"CUSTOM_GOLD":{"device_api":"vfio-pci","device_id":null,"framebuffer_mib":4096,"heads":4,"max_resolution":"7680x4320","name":"NVIDIA A2-4Q","type_id":null,"vendor_id":"0x10de"}}
//! ```
//! 1. Keys stand in the order of their bytes; each identity has all eight, `null` where it has no such fact.
//! 2. `vendor_id` and `device_id` are `0x` and four lower-case hexadecimal digits; blanks in `name` are single ones.
//! 3. Strings escape `"` and `\` and what is below U+0020 (`\b \f \n \r \t`, else `\u00` and two lower-case digits), and
//!    nothing else. This is Python's `json.dumps(traits, sort_keys=True, separators=(",", ":"), ensure_ascii=False)`.
//! 4. The digest is SHA-256 of these bytes, in lower-case hexadecimal digits. Revision, history, host, order and spelling of a file
//!    do not enter.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::Digest as _;

use crate::model::identity::plain_blanks;
use crate::model::pci_id::{pci_id, written};
use crate::model::{DeviceApi, InvalidName, TraitName, TypeId, TypeIdentity};

/// Greatest length in bytes of one text of an identity: of what the kernel prints into one attribute.
pub(super) const MAX_TEXT: usize = 64 * 1024;

/// SHA-256; as text 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// What a mapping means, without where it came from.
pub fn digest<'a>(traits: impl IntoIterator<Item = (&'a TraitName, &'a TypeIdentity)>) -> Digest {
    Digest::of(canonical(traits).as_bytes())
}

/// The canonical form, see the head of this file.
pub fn canonical<'a>(traits: impl IntoIterator<Item = (&'a TraitName, &'a TypeIdentity)>) -> String {
    let forms: BTreeMap<&str, IdentityForm<'_>> =
        traits.into_iter().map(|(name, identity)| (name.as_str(), IdentityForm::of(identity))).collect();
    compact(&forms)
}

/// The SHA-256 of a value as JSON in the canonical way: what was changed on the way has another one.
pub fn seal(value: &impl Serialize) -> Digest {
    Digest::of(compact(value).as_bytes())
}

/// JSON without blanks. Numbers, strings and maps with such keys cannot fail to be written into memory.
pub(super) fn compact(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// An identity as files have it. Its keys are in the canonical order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IdentityForm<'a> {
    pub(super) device_api: DeviceApi,
    pub(super) device_id: Option<PciId>,
    pub(super) framebuffer_mib: Option<u32>,
    pub(super) heads: Option<u32>,
    #[serde(borrow)]
    pub(super) max_resolution: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) name: Option<Cow<'a, str>>,
    pub(super) type_id: Option<TypeId>,
    pub(super) vendor_id: Option<PciId>,
}

/// A PCI id, in JSON a text.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct PciId(pub(super) u16);

impl<'a> IdentityForm<'a> {
    pub(super) fn of(identity: &'a TypeIdentity) -> Self {
        Self {
            device_api: identity.device_api,
            device_id: identity.device_id.map(PciId),
            framebuffer_mib: identity.framebuffer_mib,
            heads: identity.heads,
            max_resolution: identity.max_resolution.as_deref().map(Cow::Borrowed),
            name: identity.name.as_deref().map(Cow::Borrowed),
            type_id: identity.type_id.clone(),
            vendor_id: identity.vendor_id.map(PciId),
        }
    }

    /// The identity, in its one spelling.
    ///
    /// # Errors
    /// It has a name and a type id, or neither, or a text that no driver prints.
    pub(super) fn identity(self) -> Result<TypeIdentity, &'static str> {
        if self.name.is_some() == self.type_id.is_some() {
            return Err("an identity has either a name or, of a type without one, a type_id");
        }
        let name = self.name.map(|name| plain_blanks(&name));
        let texts = [name.as_deref(), self.max_resolution.as_deref()];
        if name.as_deref() == Some("") || texts.iter().flatten().any(|text| text.len() > MAX_TEXT) {
            return Err("name or max_resolution is empty or too long");
        }
        Ok(TypeIdentity {
            vendor_id: self.vendor_id.map(|id| id.0),
            device_id: self.device_id.map(|id| id.0),
            name,
            type_id: self.type_id,
            device_api: self.device_api,
            framebuffer_mib: self.framebuffer_mib,
            heads: self.heads,
            max_resolution: self.max_resolution.map(Cow::into_owned),
        })
    }
}

impl TryFrom<String> for PciId {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        pci_id(&text).map(Self)
    }
}

impl From<PciId> for String {
    fn from(id: PciId) -> Self {
        written(id.0)
    }
}

impl Digest {
    /// Of these bytes.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// The first twelve digits, enough for people to tell two apart.
    pub fn short(self) -> String {
        self.to_string().chars().take(12).collect()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let refusal = || InvalidName::new("digest", text, "expected 64 hexadecimal digits");
        let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16)?.try_into().ok()).collect();
        let digits = digits.filter(|digits| digits.len() == 64).ok_or_else(refusal)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair.iter().fold(0, |sum, digit| (sum << 4) | digit);
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Digest {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> TypeIdentity {
        TypeIdentity {
            vendor_id: Some(0x10de),
            device_id: None,
            name: Some(name.to_owned()),
            type_id: None,
            device_api: DeviceApi::VfioPci,
            framebuffer_mib: Some(4096),
            heads: Some(4),
            max_resolution: Some("7680x4320".to_owned()),
        }
    }

    /// Other programs compute the same: made with Python's json and hashlib, as the head says.
    #[test]
    fn the_form_and_its_digest_are_those_of_the_head() {
        let bare = TypeIdentity {
            device_id: Some(0x1912),
            name: None,
            type_id: Some("i915-GVTg_V5_4".parse().unwrap()),
            framebuffer_mib: None,
            heads: None,
            max_resolution: None,
            ..named("")
        };
        let (gold, bare) =
            (("CUSTOM_GOLD".parse().unwrap(), named("NVIDIA A2-4Q")), ("CUSTOM_B".parse().unwrap(), bare));
        let head = include_str!("canonical.rs").lines().nth(5).unwrap().trim_start_matches("//! ");
        assert_eq!(canonical([(&gold.0, &gold.1)]), head);
        let odd = ("CUSTOM_C".parse().unwrap(), named("\u{e4}\" \\ \u{1}\u{7f}/\u{2028}"));
        let all = [(&gold.0, &gold.1), (&odd.0, &odd.1), (&bare.0, &bare.1)];
        assert_eq!(
            digest(all).to_string(),
            "b862970403136ff24826c3b06d30d8bb950107988bd9eb38e7e0ccb045eb3adf"
        );
        assert_eq!(
            digest([]).to_string(),
            "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
    }

    #[test]
    fn a_digest_is_read_in_either_case() {
        let seen = Digest::of(b"x");
        assert_eq!(seen.to_string().to_uppercase().parse::<Digest>().unwrap(), seen);
        assert_eq!(seen.short().len(), 12);
        let short = "0".repeat(63);
        for bad in ["", &short, &format!("{short}g"), &"0".repeat(65), &format!("{short}\u{e4}")] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }
}
