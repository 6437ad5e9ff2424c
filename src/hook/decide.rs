//! From the daemon's answer, or its silence, to what libvirt is told.

use super::scan::Concern;
use crate::model::{Fault, FaultKind};

/// What is printed, and the exit code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// For standard output: what libvirt takes instead of the domain; empty leaves it as it is.
    pub(super) domain_xml: String,
    /// For standard error, which libvirt shows to whoever wanted the guest; empty for nothing.
    pub(super) line: String,
    pub(super) code: u8,
}

/// How many parents a line names.
const REASONS: usize = 3;

/// Whether libvirt asks before the guest runs. Operations of a later libvirt are none of ours, and refuse nothing.
///
/// # Source
/// libvirt `docs/hooks.rst`, "/etc/libvirt/hooks/qemu".
pub(super) fn may_refuse(operation: &str) -> bool {
    matches!(operation, "prepare" | "migrate" | "restore")
}

/// The answer for a domain that concerns us.
pub(super) fn decide(operation: &str, concern: Concern, outcome: Result<String, Fault>) -> Answer {
    match outcome {
        // libvirt takes another XML at these points alone.
        Ok(domain_xml) if operation != "prepare" => Answer { domain_xml, ..Answer::default() },
        Ok(_) => Answer::default(),
        Err(fault) if !is_silence(&fault, concern) => {
            Answer { line: line(&told(&fault)), code: refusal(&fault), ..Answer::default() }
        }
        Err(fault) if concern == Concern::Ours => {
            let text = format!(
                "mdevirtd gives no answer ({}), so the guest does not start without its device; look at `systemctl status mdevirtd`",
                fault.message
            );
            Answer { line: line(&text), code: refusal(&fault), ..Answer::default() }
        }
        Err(fault) => {
            let text = format!(
                "mdevirtd gives no answer ({}); the guest has a mediated device without metadata of ours, so it is left alone",
                fault.message
            );
            Answer { line: line(&text), ..Answer::default() }
        }
    }
}

/// Whether nobody was there to answer; for a guest that may well be somebody else's, also whether the bus or an older daemon did not
/// let us ask.
fn is_silence(fault: &Fault, concern: Concern) -> bool {
    use FaultKind as K;
    let nobody = matches!(fault.kind, K::HostUnreachable | K::Timeout | K::ShuttingDown);
    let not_let_in = matches!(fault.kind, K::AccessDenied | K::NotSupported | K::Internal);
    nobody || (not_let_in && concern == Concern::Device)
}

/// Never 0.
fn refusal(fault: &Fault) -> u8 {
    fault.kind.exit_code().max(1)
}

/// The message and, of parents that could not serve, the first few: libvirt shows one line.
fn told(fault: &Fault) -> String {
    let reasons = fault.reasons();
    let (some, rest) = reasons.split_at(reasons.len().min(REASONS));
    let more = if rest.is_empty() { String::new() } else { format!("; and {} more", rest.len()) };
    if some.is_empty() {
        fault.message.clone()
    } else {
        format!("{} ({}{more})", fault.message, some.join("; "))
    }
}

/// One line, whatever the message names.
fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fault(kind: FaultKind) -> Result<String, Fault> {
        Err(Fault::new(kind, "line one\nline\ttwo"))
    }

    #[test]
    fn only_migration_and_restore_get_another_xml() {
        let answer = |operation| decide(operation, Concern::Ours, Ok("<domain/>".to_owned())).domain_xml;
        assert_eq!([answer("prepare"), answer("migrate"), answer("restore")], ["", "<domain/>", "<domain/>"]);
    }

    #[test]
    fn a_refusal_is_one_line_and_a_code() {
        for concern in [Concern::Ours, Concern::Device] {
            let answer = decide("prepare", concern, fault(FaultKind::NoCapacity));
            assert_eq!((answer.line.as_str(), answer.code), ("line one line two", 3));
        }
    }

    #[test]
    fn the_first_parents_are_named() {
        let parents: Vec<_> = (0..5).map(|n| json!({"parent": format!("p{n}"), "reason": "taken"})).collect();
        let of = |count: usize| {
            let fault = Fault::new(FaultKind::NoCapacity, "no room").with_details(json!(parents[..count]));
            decide("migrate", Concern::Ours, Err(fault)).line
        };
        assert_eq!(of(2), "no room (p0: taken; p1: taken)");
        assert_eq!(of(5), "no room (p0: taken; p1: taken; p2: taken; and 2 more)");
    }

    #[test]
    fn silence_keeps_our_guests_from_starting_and_nobody_elses() {
        for kind in [FaultKind::HostUnreachable, FaultKind::Timeout, FaultKind::ShuttingDown] {
            let ours = decide("prepare", Concern::Ours, fault(kind));
            assert!(ours.code != 0 && ours.line.contains("systemctl status mdevirtd"), "{ours:?}");
            let other = decide("prepare", Concern::Device, fault(kind));
            assert!(other.code == 0 && other.line.contains("left alone"), "{other:?}");
        }
    }

    #[test]
    fn a_bus_that_does_not_let_us_ask_is_no_reason_against_somebody_elses_guest() {
        for kind in [FaultKind::AccessDenied, FaultKind::NotSupported, FaultKind::Internal] {
            assert_ne!(decide("prepare", Concern::Ours, fault(kind)).code, 0);
            assert_eq!(decide("prepare", Concern::Device, fault(kind)).code, 0);
        }
    }

    #[test]
    fn where_the_guest_runs_or_is_gone_nothing_is_refused() {
        for operation in
            ["start", "started", "stopped", "release", "reconnect", "attach", "of-a-later-libvirt"]
        {
            assert!(!may_refuse(operation), "{operation}");
        }
    }
}
