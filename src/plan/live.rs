//! Whether a running guest with a virtual device may go from one host to another, by what the hosts run.
//!
//! 1. What a host does not tell is no obstacle; what it tells and does not fit is one.
//! 2. A refusal names both sides.
//!
//! # Source
//! nova, `doc/source/admin/virtual-gpu.rst`, on live migration: libvirt 8.6, QEMU 8.1, Linux 5.18, and the vendor's driver of one
//! branch on both hosts. The first number of NVIDIA's version is its branch (NVIDIA, `Virtual GPU Software Lifecycle`).

use serde::{Deserialize, Serialize};

use crate::model::{Fault, FaultKind, Version, Versions};

const LIBVIRT: Version = Version(8, 6, 0);
const QEMU: Version = Version(8, 1, 0);
/// How libvirt reaches libvirt on another host.
const TRANSPORTS: [&str; 5] =
    ["qemu+ssh://", "qemu+tls://", "qemu+tcp://", "qemu+libssh://", "qemu+libssh2://"];
const KERNEL: Version = Version(5, 18, 0);

/// What the source of a live migration says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveSide {
    /// What runs its guests.
    pub versions: Versions,
    /// Version of the driver of each device, in their order; `None` where nothing tells it.
    pub drivers: Vec<Option<String>>,
}

/// Whether guests with virtual devices can go from or to a host while they run.
///
/// # Errors
/// `NotSupported` with what is too old.
pub fn check_versions(host: &str, versions: &Versions) -> Result<(), Fault> {
    let needed = [
        ("libvirt", Some(versions.libvirt), LIBVIRT),
        ("QEMU", Some(versions.qemu), QEMU),
        ("Linux", versions.kernel, KERNEL),
    ];
    let old = needed.into_iter().find(|(_, has, least)| has.is_some_and(|has| has < *least));
    let Some((what, Some(has), least)) = old else { return Ok(()) };
    let text = format!(
        "live migration with mediated devices needs {what} {least} or later, {host} has {has}; migrate it without --live, the guest \
         switched off"
    );
    Err(Fault::new(FaultKind::NotSupported, text))
}

/// Whether a URI is one that says where to go and nothing else: libvirt runs programs that some parameters of a URI name, as
/// root.
///
/// # Errors
/// `InvalidRequest`.
///
/// # Source
/// libvirt `docs/uri.rst`: `command`, `netcat` and `proxy` of the remote driver.
pub fn check_uri(uri: &str) -> Result<(), Fault> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-@:[]%".contains(c);
    let to_host =
        TRANSPORTS.iter().find_map(|transport| uri.strip_prefix(transport)?.strip_suffix("/system"));
    let fits =
        to_host.is_some_and(|host| !host.is_empty() && !host.starts_with('-') && host.chars().all(plain));
    if fits {
        return Ok(());
    }
    let text = format!(
        "the URI {uri:?} of the target's libvirt: expected qemu+ssh://[USER@]HOST[:PORT]/system, or qemu+tls, qemu+tcp, qemu+libssh or \
         qemu+libssh2, without parameters"
    );
    Err(Fault::new(FaultKind::InvalidRequest, text))
}

/// Whether the state of a device that one driver saved is for another one to load.
///
/// # Errors
/// `Incompatible` with both versions.
pub fn check_drivers(
    (from, theirs): (&str, Option<&str>),
    (to, ours): (&str, Option<&str>),
) -> Result<(), Fault> {
    let (Some(theirs), Some(ours)) = (theirs, ours) else { return Ok(()) };
    if branch(theirs) == branch(ours) {
        return Ok(());
    }
    let text = format!(
        "the driver of {from} is {theirs}, that of {to} is {ours}: a device moves while it runs only within one branch of the driver; \
         migrate it without --live, the guest switched off"
    );
    Err(Fault::new(FaultKind::Incompatible, text))
}

fn branch(version: &str) -> &str {
    version.split('.').next().unwrap_or(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(libvirt: Version, qemu: Version, kernel: Option<Version>) -> Result<(), Fault> {
        check_versions("host-2", &Versions { libvirt, qemu, kernel })
    }

    #[test]
    fn the_floors_are_included() {
        versions(LIBVIRT, QEMU, Some(KERNEL)).unwrap();
        versions(Version(11, 3, 0), Version(10, 0, 0), None).unwrap();
        for (libvirt, qemu, kernel, word) in [
            (Version(8, 5, 9), QEMU, KERNEL, "libvirt 8.6.0 or later, host-2 has 8.5.9"),
            (LIBVIRT, Version(7, 2, 19), KERNEL, "QEMU 8.1.0 or later, host-2 has 7.2.19"),
            (LIBVIRT, QEMU, Version(5, 17, 0), "Linux 5.18.0 or later, host-2 has 5.17.0"),
        ] {
            let fault = versions(libvirt, qemu, Some(kernel)).unwrap_err();
            assert!(fault.kind == FaultKind::NotSupported && fault.message.contains(word), "{fault}");
        }
    }

    #[test]
    fn a_uri_says_where_to_go_and_nothing_else() {
        for fine in [
            "qemu+ssh://root@gpu-02/system",
            "qemu+tls://gpu-02.example:16514/system",
            "qemu+tcp://[fd00::2]/system",
        ] {
            check_uri(fine).unwrap();
        }
        for bad in [
            "",
            "qemu:///system",
            "qemu+ssh:///system",
            "qemu+ssh://gpu-02/session",
            "qemu+ssh://gpu-02/system?command=/tmp/x",
            "qemu+ssh://gpu-02/?command=/tmp/x&/system",
            "qemu+ssh://-oProxyCommand=x/system",
            "qemu+ext://gpu-02/system",
            "qemu+ssh://a b/system",
        ] {
            assert_eq!(check_uri(bad).unwrap_err().kind, FaultKind::InvalidRequest, "{bad}");
        }
    }

    #[test]
    fn drivers_of_one_branch_fit_and_an_unknown_one_is_no_obstacle() {
        let fits = |a, b| check_drivers(("host-1", a), ("host-2", b));
        fits(Some("550.54.16"), Some("550.90.05")).unwrap();
        fits(None, Some("550.54.16")).unwrap();
        fits(Some("535.1"), None).unwrap();
        let fault = fits(Some("535.161.05"), Some("550.54.16")).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Incompatible);
        assert!(fault.message.contains("host-1 is 535.161.05, that of host-2 is 550.54.16"), "{fault}");
    }
}
