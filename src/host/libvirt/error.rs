//! libvirt's errors turned into [`HostError`]. The only file that looks at libvirt's codes and message texts.
//!
//! Texts are matched where there is no code: what mdevctl, the kernel and QEMU said arrives as INTERNAL_ERROR with their words
//! in it. A text that is not known here becomes `Refused` (or `Unreadable`) with the words kept, never a guess.

use virt::error::{Error, ErrorNumber};

use crate::host::HostError;

/// What a call is for: how its failure is told, and what a lost answer means.
#[derive(Debug, Clone)]
pub(super) struct Doing {
    kind: Kind,
    /// An infinitive, `create`.
    verb: &'static str,
    /// What it is done to, `mdev 1fc0.. on 0000:3b:00.0`.
    subject: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Change,
    /// A change that hands libvirt XML.
    Define,
    /// A change that a device of the guest may not allow.
    Save,
}

impl Doing {
    /// A call that changes nothing, so that a lost answer costs nothing.
    pub(super) fn read(subject: impl Into<String>) -> Self {
        Self { kind: Kind::Read, verb: "read", subject: subject.into() }
    }

    /// A call that changes something.
    pub(super) fn change(verb: &'static str, subject: impl Into<String>) -> Self {
        Self { kind: Kind::Change, verb, subject: subject.into() }
    }

    /// A call that changes something and hands libvirt XML, which it may find wrong.
    pub(super) fn define(verb: &'static str, subject: impl Into<String>) -> Self {
        Self { kind: Kind::Define, verb, subject: subject.into() }
    }

    /// The saving of a guest's memory, which a device of it may not allow.
    pub(super) fn save(subject: impl Into<String>) -> Self {
        Self { kind: Kind::Save, verb: "save", subject: subject.into() }
    }

    /// Whether it changes something, and so may take its time.
    pub(super) fn is_change(&self) -> bool {
        self.kind != Kind::Read
    }

    /// The failure when no answer will come.
    pub(super) fn answer_lost(&self, why: &str) -> HostError {
        match self.kind {
            Kind::Read => HostError::Unreachable(clean(why)),
            Kind::Change | Kind::Define | Kind::Save => {
                HostError::OutcomeUnknown(format!("the attempt to {} {}", self.verb, self.subject))
            }
        }
    }
}

/// The failure of a call. `open`: the connection stood after it; if not, even an error that came with no text is its loss.
///
/// # Source
/// libvirt `virnetclient.c`: a call on a closed socket fails before it is sent, with the text matched here; a thread that
/// waits while another one finds the socket broken can return without any error set.
pub(super) fn host_error(err: &Error, open: bool, doing: &Doing) -> HostError {
    if open {
        return classify(err.code().known(), err.message(), doing);
    }
    if err.message().contains("client socket is closed") {
        return HostError::Unreachable(clean(err.message()));
    }
    doing.answer_lost(err.message())
}

/// The named object is not there (any more).
pub(super) fn is_gone(err: &Error) -> bool {
    matches!(err.code().known(), Some(ErrorNumber::NoNodeDevice | ErrorNumber::NoDomain))
}

/// The driver does not have this call at all.
pub(super) fn is_unsupported(err: &Error) -> bool {
    matches!(err.code().known(), Some(ErrorNumber::NoSupport))
}

/// The driver has the call but not one of the flags.
pub(super) fn is_unsupported_flag(err: &Error) -> bool {
    matches!(err.code().known(), Some(ErrorNumber::InvalidArg)) && err.message().contains("unsupported flags")
}

/// libvirt says the object is in the wrong state for the call: it runs already, does not run, is not persistent.
pub(super) fn is_wrong_state(err: &Error) -> bool {
    matches!(err.code().known(), Some(ErrorNumber::OperationInvalid))
}

/// The job that was asked for is a migration from another host, of which only that host knows how far it is.
///
/// # Source
/// libvirt `qemu_driver.c`, `qemuDomainGetJobInfoMigrationStats`.
pub(super) fn is_of_source_only(err: &Error) -> bool {
    matches!(err.code().known(), Some(ErrorNumber::OperationUnsupported))
        && err.message().contains("only on the source host")
}

/// What libvirt says when the connection broke that it had to libvirt on another host; ours stands.
pub(super) fn is_peer_lost(err: &Error) -> bool {
    ["client socket is closed", "Lost connection to destination host"]
        .iter()
        .any(|text| err.message().contains(text))
}

/// QEMU got EIO for a device that was made a moment ago; the next attempt works.
///
/// # Source
/// nova `libvirt/driver.py`, `_hard_reboot`, which retries once.
pub(super) fn is_fresh_group_error(err: &Error) -> bool {
    err.message().contains("error getting device from group") && err.message().contains("Input/output error")
}

/// Text of libvirt made fit for one line: no control characters, at most 600 characters.
pub(super) fn clean(text: &str) -> String {
    let one_line: String =
        text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(600).collect();
    one_line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn classify(code: Option<ErrorNumber>, text: &str, doing: &Doing) -> HostError {
    use ErrorNumber as E;
    let (verb, subject, words) = (doing.verb, doing.subject.clone(), clean(text));
    if doing.kind == Kind::Read {
        return match code {
            Some(E::NoNodeDevice | E::NoDomain) => HostError::NotFound(subject),
            Some(E::NoSupport) => HostError::NotSupported(format!("{verb} {subject}: {words}")),
            Some(_) | None => HostError::Unreadable { what: subject, why: words },
        };
    }
    if has_no_room(text) {
        return HostError::NoRoom(format!("{subject}: {words}"));
    }
    if let Some(whose) = in_use(text) {
        return HostError::InUse(match whose {
            InUse::Itself => subject,
            InUse::Device => format!("a device of {subject} ({words})"),
        });
    }
    if has_no_parent(text) {
        return HostError::NotFound(format!("the parent of {subject}"));
    }
    match (code, doing.kind) {
        (Some(E::NoNodeDevice | E::NoDomain), _) => HostError::NotFound(subject),
        (Some(E::DeviceMissing), _) => HostError::NotFound(format!("a device of {subject} ({words})")),
        (
            Some(
                E::XmlError
                | E::XmlDetail
                | E::XmlInvalidSchema
                | E::ConfigUnsupported
                | E::InvalidArg
                | E::OsType,
            ),
            Kind::Define,
        ) => HostError::InvalidXml(words),
        // QEMU's word on a device without migration comes as either; a guest in the wrong state does not come here.
        (Some(E::OperationInvalid | E::ConfigUnsupported), Kind::Save) => {
            HostError::NotSupported(format!("{verb} {subject}: {words}"))
        }
        (Some(E::NoSupport | E::OperationUnsupported | E::ArgumentUnsupported), _) => {
            HostError::NotSupported(format!("{verb} {subject}: {words}"))
        }
        (Some(_) | None, Kind::Read | Kind::Change | Kind::Define | Kind::Save) => {
            HostError::Refused(format!("cannot {verb} {subject}: {words}"))
        }
    }
}

/// # Source
/// mdevctl `main.rs` (its check before it writes `create`); the kernel's ENOSPC as C and as Rust programs print it.
fn has_no_room(text: &str) -> bool {
    ["No available instances", "No space left on device", "os error 28"]
        .iter()
        .any(|known| text.contains(known))
}

/// # Source
/// libvirt `node_device_conf.c` and `node_device_driver.c`, 9.0 and 11.3: the parent named in the XML is unknown; mdevctl: it is
/// there and no driver makes it a parent.
fn has_no_parent(text: &str) -> bool {
    let known = [
        "invalid parent device",
        "unable to find parent device",
        "Unable to find address for parent device",
        "Unable to find parent device",
    ];
    known.iter().any(|known| text.contains(known))
}

enum InUse {
    Itself,
    Device,
}

/// # Source
/// libvirt `node_device_driver.c` (the VFIO group of the device is open), `virhostdev.c` (another domain has it).
fn in_use(text: &str) -> Option<InUse> {
    if text.contains("device in use") {
        return Some(InUse::Itself);
    }
    text.contains("is in use by driver").then_some(InUse::Device)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ErrorNumber as E;

    #[test]
    fn real_texts_of_changes() {
        let doing = Doing::change("destroy", "mdev m");
        let row = |code, text| classify(Some(code), text, &doing);
        let group = "internal error: Unable to destroy 'mdev_1fc01460_67d7_4303_a5ea_69a57b994f50_0000_3b_00_0': device in use";
        assert_eq!(row(E::InternalError, group), HostError::InUse("mdev m".into()));
        let other = "Requested operation is not valid: mediated device 1fc01460-67d7-4303-a5ea-69a57b994f50 is in use by driver QEMU, domain render-07";
        assert!(
            matches!(row(E::OperationInvalid, other), HostError::InUse(text) if text.contains("render-07"))
        );
        for text in [
            "internal error: Unable to start mediated device: Error: No available instances of nvidia-19 on 0000:00:10.0",
            "internal error: Unable to start mediated device: Error: failed to create mdev, No space left on device (os error 28)",
        ] {
            assert!(matches!(row(E::InternalError, text), HostError::NoRoom(_)), "{text}");
        }
        assert_eq!(row(E::NoNodeDevice, "Node device not found"), HostError::NotFound("mdev m".into()));
        let missing = row(
            E::DeviceMissing,
            "device not found: mediated device '1fc01460-67d7-4303-a5ea-69a57b994f50' not found",
        );
        assert!(matches!(missing, HostError::NotFound(text) if text.contains("1fc01460")));
        for (code, text) in [
            (E::ConfigUnsupported, "unsupported configuration: invalid parent device 'pci_0000_77_00_0'"),
            (
                E::InternalError,
                "internal error: Unable to create mediated device: Error: Unable to find parent device '0000:00:11.0'",
            ),
        ] {
            assert_eq!(row(code, text), HostError::NotFound("the parent of mdev m".into()));
        }
        let support = "this function is not supported by the connection driver: virNodeDeviceDefineXML";
        assert!(matches!(row(E::NoSupport, support), HostError::NotSupported(_)));
        let mdevctl = "internal error: Unable to start mediated device: Error: Multiple definitions found for u\nsee mdevctl";
        assert_eq!(
            row(E::InternalError, mdevctl),
            HostError::Refused("cannot destroy mdev m: internal error: Unable to start mediated device: Error: Multiple definitions found for u see mdevctl".into())
        );
    }

    #[test]
    fn only_calls_that_hand_over_xml_blame_it() {
        let text = "XML error: Missing required attribute 'model' in element 'hostdev'";
        let define = Doing::define("define", "domain d");
        assert!(matches!(classify(Some(E::XmlError), text, &define), HostError::InvalidXml(_)));
        let vfio = "unsupported configuration: Mediated host device assignment requires VFIO support";
        let start = Doing::change("start", "domain d");
        assert!(matches!(classify(Some(E::ConfigUnsupported), vfio, &start), HostError::Refused(_)));
    }

    #[test]
    fn a_failed_read_is_unknown_and_never_absent() {
        let doing = Doing::read("node devices");
        let failed = classify(Some(E::InternalError), "an unknown libvirt error occurred", &doing);
        assert!(matches!(failed, HostError::Unreadable { .. }));
        // A code this crate has no name for must not be taken for one it has.
        assert!(matches!(classify(None, "", &doing), HostError::Unreadable { .. }));
        let busy = "mediated device x is in use by driver QEMU, domain d";
        assert!(matches!(classify(Some(E::OperationInvalid), busy, &doing), HostError::Unreadable { .. }));
    }

    #[test]
    fn a_lost_answer_matters_only_if_something_was_changed() {
        assert!(matches!(Doing::read("x").answer_lost("EOF"), HostError::Unreachable(_)));
        let lost = Doing::change("create", "mdev m").answer_lost("EOF");
        assert_eq!(lost, HostError::OutcomeUnknown("the attempt to create mdev m".into()));
    }

    #[test]
    fn texts_are_one_short_line() {
        assert_eq!(clean(" a\n\tb\u{1b}[31m \0c "), "a b [31m c");
        assert_eq!(clean(&"x".repeat(9999)).len(), 600);
    }
}
