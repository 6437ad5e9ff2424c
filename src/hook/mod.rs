//! libvirt's qemu hook (rank 6): what `mdevirtctl hook qemu NAME OPERATION SUB-OPERATION EXTRA` answers.
//!
//! 1. The domain XML on standard input is left unread and nothing is printed: libvirt takes that for "unchanged".
//! 2. No call to libvirt, which waits for the hook, and none to the daemon, which may wait for libvirt.
//! 3. A name is a name: `--help` and `$(x)` are guests like any other, and no part of it is interpreted.
//!
//! mdevirt makes the devices of its instances itself before it starts their domains, so there is nothing to decide here
//! for them; domains that somebody else starts are somebody else's.

use std::ffi::OsString;

/// The points of a guest's life at which libvirt calls.
///
/// # Source
/// libvirt `docs/hooks.rst`, "/etc/libvirt/hooks/qemu".
const OPERATIONS: [&str; 9] =
    ["prepare", "start", "started", "stopped", "release", "migrate", "restore", "reconnect", "attach"];

/// Whether libvirt called in the way that its documentation promises; the answer to such a call is silence.
pub fn is_call(arguments: &[OsString]) -> bool {
    let [_, operation, _, _] = arguments else { return false };
    OPERATIONS.iter().any(|known| operation == known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(arguments: &[&str]) -> bool {
        is_call(&arguments.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn any_name_is_a_guest() {
        for name in ["web-01", "--help", "$(touch pwned);id #", ".."] {
            assert!(call(&[name, "prepare", "begin", "-"]), "{name}");
        }
    }

    #[test]
    fn other_calls_are_wrong_usage() {
        assert!(!call(&["web-01", "explode", "begin", "-"]));
        assert!(!call(&["web-01", "prepare"]));
        assert!(!call(&[]));
    }
}
