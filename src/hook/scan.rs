//! Whether a domain can concern us, from its text alone: libvirt calls the hook for every guest of the host, and most have no
//! device of ours.

use crate::xml::domain::METADATA;

/// Whose a domain may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Concern {
    /// It has our metadata: without us it does not have what its user asked for.
    Ours,
    /// It has a mediated device, which may be ours or somebody else's.
    Device,
    /// Neither.
    Nobody,
}

/// Says more than is true at worst, never less: libvirt writes the text, with quotes of either kind and without needless references.
pub(super) fn concern(xml: &[u8]) -> Concern {
    let text = String::from_utf8_lossy(xml);
    if text.contains(METADATA) {
        return Concern::Ours;
    }
    if text.contains("'mdev'") || text.contains("\"mdev\"") { Concern::Device } else { Concern::Nobody }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_by_namespace_or_device() {
        let cases = [
            ("<metadata><m:vgpu xmlns:m=\"urn:mdevirt:domain:1\"/></metadata>", Concern::Ours),
            ("<hostdev mode='subsystem' type='mdev' model='vfio-pci'>", Concern::Device),
            ("<hostdev type=\"mdev\">", Concern::Device),
            ("<hostdev mode='subsystem' type='pci'>", Concern::Nobody),
            ("<name>mdev</name>", Concern::Nobody),
            ("", Concern::Nobody),
        ];
        for (xml, wanted) in cases {
            assert_eq!(concern(xml.as_bytes()), wanted, "{xml}");
        }
    }
}
