//! The fault script at work: counts calls and says which of them fail and what changes when.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::script::{After, Call, Change, ChangeRule, FailKind, FailRule, Script};
use crate::host::HostError;
use crate::model::{InstanceUuid, ParentAddr};

/// One call as the rules see it.
#[derive(Debug)]
pub(super) struct CallSite {
    pub(super) call: Call,
    pub(super) parent: Option<ParentAddr>,
    pub(super) instance: Option<InstanceUuid>,
    /// For messages, `creating ... on ...`.
    pub(super) what: String,
}

impl CallSite {
    fn fits(&self, call: Call, parent: Option<&ParentAddr>, instance: Option<&InstanceUuid>) -> bool {
        (call == Call::Any || call == self.call)
            && parent.is_none_or(|p| self.parent.as_ref() == Some(p))
            && instance.is_none_or(|i| self.instance.as_ref() == Some(i))
    }
}

/// What becomes of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It goes ahead.
    Go,
    /// It goes ahead and its answer is lost.
    LoseAnswer(HostError),
    /// It fails before it does anything.
    Fail(HostError),
    /// libvirt is away; whether this was the last such call.
    Away {
        /// The error.
        error: HostError,
        /// libvirt is back after this call.
        last: bool,
    },
}

/// The rules in force. In-process tests add to them while the simulator runs.
#[derive(Debug, Default)]
pub struct Faults {
    rules: Mutex<Rules>,
}

#[derive(Debug, Default)]
struct Rules {
    fails: Vec<(FailRule, u32)>,
    changes: Vec<(ChangeRule, u32)>,
    failed: u64,
}

impl Faults {
    /// The rules of a script.
    pub fn new(script: Script) -> Self {
        let faults = Self::default();
        script.fail.into_iter().for_each(|rule| faults.fail(rule));
        script.change.into_iter().for_each(|rule| faults.change(rule));
        faults
    }

    /// Adds a failure; calls are counted from now on.
    pub fn fail(&self, rule: FailRule) {
        self.lock().fails.push((rule, 0));
    }

    /// Adds a change; one without `after` comes with the next call.
    pub fn change(&self, rule: ChangeRule) {
        self.lock().changes.push((rule, 0));
    }

    /// How many calls fell under a rule of failure since the rules were last forgotten.
    pub fn failed_calls(&self) -> u64 {
        self.lock().failed
    }

    /// Forgets all rules.
    pub fn clear(&self) {
        *self.lock() = Rules::default();
    }

    /// Counts the call and decides it.
    pub(super) fn begin(&self, site: &CallSite) -> Verdict {
        let mut verdict = Verdict::Go;
        let mut rules = self.lock();
        for (rule, seen) in &mut rules.fails {
            let unconcerned = rule.kind == FailKind::Unreachable && site.call.is_of_kernel();
            if unconcerned || !site.fits(rule.call, rule.parent.as_ref(), rule.instance.as_ref()) {
                continue;
            }
            *seen = seen.saturating_add(1);
            let end = if rule.times == 0 { u32::MAX } else { rule.nth.saturating_add(rule.times) };
            if verdict == Verdict::Go && (rule.nth..end).contains(seen) {
                verdict = fail(rule.kind, &site.what, *seen + 1 == end);
            }
        }
        rules.failed += u64::from(verdict != Verdict::Go);
        verdict
    }

    /// The changes that are due before any call.
    pub(super) fn due_at_once(&self) -> Vec<Change> {
        self.take_due(|_| false)
    }

    /// Counts the call as answered and hands out the changes that are due now.
    pub(super) fn due(&self, site: &CallSite) -> Vec<Change> {
        self.take_due(|after| site.fits(after.call, after.parent.as_ref(), after.instance.as_ref()))
    }

    fn take_due(&self, counts: impl Fn(&After) -> bool) -> Vec<Change> {
        let mut due = Vec::new();
        self.lock().changes.retain_mut(|(rule, seen)| {
            if let Some(after) = &rule.after {
                *seen += u32::from(counts(after));
                if *seen < after.count {
                    return true;
                }
            }
            due.push(rule.change.clone());
            false
        });
        due
    }

    fn lock(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fail(kind: FailKind, what: &str, last: bool) -> Verdict {
    let text = format!("{what} (fault script)");
    Verdict::Fail(match kind {
        FailKind::Unreachable => return Verdict::Away { error: HostError::Unreachable(text), last },
        FailKind::AnswerLost => return Verdict::LoseAnswer(HostError::OutcomeUnknown(text)),
        FailKind::OutcomeUnknown => HostError::OutcomeUnknown(text),
        FailKind::NotFound => HostError::NotFound(text),
        FailKind::InUse => HostError::InUse(text),
        FailKind::NoRoom => HostError::NoRoom(text),
        FailKind::InvalidXml => HostError::InvalidXml(text),
        FailKind::Unreadable => HostError::Unreadable { what: text, why: "it was to fail".to_owned() },
        FailKind::NotSupported => HostError::NotSupported(text),
        FailKind::Refused => HostError::Refused(text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create_on(parent: &str) -> CallSite {
        CallSite {
            call: Call::Create,
            parent: Some(parent.parse().unwrap()),
            instance: None,
            what: "create".into(),
        }
    }

    fn fails(faults: &Faults, site: &CallSite) -> bool {
        faults.begin(site) != Verdict::Go
    }

    #[test]
    fn the_nth_call_on_a_parent_fails_and_no_other() {
        let faults = Faults::new(
            Script::parse("[[fail]]\ncall='create'\nparent='0000:84:00.0'\nnth=2\ntimes=2\nkind='no-room'")
                .unwrap(),
        );
        let (a, b) = (create_on("0000:84:00.0"), create_on("0000:85:00.0"));
        let got = [&a, &b, &a, &b, &a, &a].map(|site| fails(&faults, site));
        assert_eq!(got, [false, false, true, false, true, false]);
        assert_eq!(faults.failed_calls(), 2);
    }

    #[test]
    fn any_call_for_ever_until_cleared() {
        let faults = Faults::new(Script::parse("[[fail]]\ncall='any'\ntimes=0\nkind='unreachable'").unwrap());
        for _ in 0..3 {
            assert!(matches!(faults.begin(&create_on("mtty_mtty")), Verdict::Away { last: false, .. }));
        }
        faults.clear();
        assert_eq!(faults.begin(&create_on("mtty_mtty")), Verdict::Go);
    }

    #[test]
    fn the_last_call_without_libvirt_is_marked() {
        let faults = Faults::new(Script::parse("[[fail]]\ncall='any'\ntimes=2\nkind='unreachable'").unwrap());
        let site = create_on("mtty_mtty");
        assert!(matches!(faults.begin(&site), Verdict::Away { last: false, .. }));
        assert!(matches!(faults.begin(&site), Verdict::Away { last: true, .. }));
    }

    #[test]
    fn changes_come_once_and_in_time() {
        let faults = Faults::new(
            Script::parse(
                "[[change]]\nafter={call='create',count=2}\ndo={parent-gone='mtty_mtty'}\n[[change]]\ndo={parent-gone='ap_matrix'}",
            )
            .unwrap(),
        );
        let site = create_on("0000:84:00.0");
        let gone = |name: &str| vec![Change::ParentGone(name.parse().unwrap())];
        assert_eq!(faults.due_at_once(), gone("ap_matrix"));
        let got: Vec<_> = (0..3).map(|_| faults.due(&site)).collect();
        assert_eq!(got, [vec![], gone("mtty_mtty"), vec![]]);
    }
}
