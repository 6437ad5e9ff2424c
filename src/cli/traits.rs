//! `trait` and `plan` as text.

use super::output::Show;
use super::table::{Sheet, Table, printable};
use crate::model::{Fault, FaultKind, ParentAddr, TypeId, TypeIdentity};
use crate::service::api::{
    CheckDifference, HistoryLine, LockView, PlanChange, PlanView, TraitCheck, TraitView,
};
use crate::text::utc;

impl Show for Vec<TraitView> {
    fn text(&self) -> String {
        let mut table = Table::new(&["TRAIT", "TYPE", "STATE", "LOCKED", "LOCAL TYPES"]);
        for one in self {
            table.row(vec![
                one.name.to_string(),
                one.type_name.clone(),
                word(&one.state),
                yes_no(one.locked).to_owned(),
                local_types(one),
            ]);
        }
        table.to_string() + &reasons(self.iter().map(|one| one.reason.as_str()))
    }
}

impl Show for TraitView {
    fn text(&self) -> String {
        let mut sheet = Sheet::default();
        sheet.line("trait", self.name.to_string());
        sheet.line("state", word(&self.state));
        if !self.reason.is_empty() {
            sheet.line("reason", &self.reason);
        }
        let identity = self.identity.as_ref().map(ToString::to_string);
        sheet.line("type", identity.as_ref().unwrap_or(&self.type_name));
        sheet.line("locked", yes_no(self.locked));
        let mut text = sheet.to_string();
        if !self.local_types.is_empty() {
            let mut table = Table::new(&["PARENT", "TYPE ID"]);
            for local in &self.local_types {
                table.row(vec![local.parent.to_string(), local.id.to_string()]);
            }
            text += &format!("\nLocal types:\n{table}");
        }
        if !self.history.is_empty() {
            text += &format!("\nHistory:\n{}", history(&self.history));
        }
        text
    }
}

/// One change of all parents on which it was the same, `was` and `now` below each other, since both may be long.
fn history(lines: &[HistoryLine]) -> String {
    let same = |a: &HistoryLine, b: &HistoryLine| {
        let key = |one: &HistoryLine| (utc(one.at_usec), one.kind, one.was.clone(), one.now.clone());
        key(a) == key(b) && a.reason == b.reason
    };
    let of = |same: &[HistoryLine]| {
        let HistoryLine { at_usec, parent, kind, was, now, reason } = &same[0];
        let place = if same.len() == 1 { parent.to_string() } else { format!("{} parents", same.len()) };
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        let head = format!("{}  {kind} on {place}{reason}", utc(*at_usec));
        [head, format!("  was:  {was}"), format!("  now:  {now}")]
            .map(|line| printable(&line) + "\n")
            .concat()
    };
    lines.chunk_by(same).map(of).collect()
}

fn yes_no(answer: bool) -> &'static str {
    if answer { "yes" } else { "no" }
}

/// Each id once, with where it is: `nvidia-746 on 16 parents`.
fn local_types(one: &TraitView) -> String {
    let mut all: Vec<(&TypeId, &ParentAddr)> =
        one.local_types.iter().map(|local| (&local.id, &local.parent)).collect();
    all.sort_unstable();
    let of = |same: &[(&TypeId, &ParentAddr)]| match same {
        [(id, parent)] => format!("{id} on {parent}"),
        more => format!("{} on {} parents", more[0].0, more.len()),
    };
    all.chunk_by(|a, b| a.0 == b.0).map(of).collect::<Vec<_>>().join(", ")
}

/// Below a table, since a sentence would make a column of it too wide to read.
fn reasons<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let lines: String =
        all.filter(|reason| !reason.is_empty()).map(|reason| printable(reason) + "\n").collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

impl Show for LockView {
    fn text(&self) -> String {
        let mut text = lock(self);
        if !self.left_out.is_empty() {
            let mut table = Table::new(&["TRAIT", "REASON"]);
            for out in &self.left_out {
                table.row(vec![out.name.to_string(), out.reason.clone()]);
            }
            text += &format!("\nNot locked:\n{table}");
        }
        text
    }
}

fn lock(lock: &LockView) -> String {
    let mut sheet = Sheet::default();
    sheet.line("lock", lock.path.display().to_string());
    sheet.line("revision", lock.revision.to_string());
    sheet.line("digest", &lock.digest);
    sheet.line("traits", lock.traits.to_string());
    sheet.to_string()
}

impl Show for TraitCheck {
    /// What a lock leaves out differs, so it is not told twice.
    fn text(&self) -> String {
        let head = match (&self.lock, self.agree) {
            (None, _) => "there is no lock; `mdevirtctl trait lock` writes one\n".to_owned(),
            (Some(known), true) => lock(known) + "\nthis host agrees with its lock\n",
            (Some(known), false) => lock(known),
        };
        if self.agree {
            return head;
        }
        // One below the other, so that what differs in two long identities can be seen.
        let mut table = Table::new(&["TRAIT", "STATE", "WHERE", "TYPE"]);
        for CheckDifference { name, state, locked, found, .. } in &self.differences {
            let mut row = |place: &str, identity: Option<&TypeIdentity>| {
                let identity = identity.map(ToString::to_string).unwrap_or_default();
                table.row(vec![name.to_string(), word(state), place.to_owned(), identity]);
            };
            row("lock", locked.as_ref());
            found.iter().for_each(|identity| row("host", Some(identity)));
            if found.is_empty() {
                row("host", None);
            }
        }
        format!("{head}\n{table}") + &reasons(self.differences.iter().map(|one| one.reason.as_str()))
    }
}

impl Show for PlanView {
    fn text(&self) -> String {
        let mut text = if self.changes.is_empty() { "no change\n".to_owned() } else { String::new() };
        for PlanChange { kind, name, field, from, to } in &self.changes {
            let what = format!("{kind} {name} {field}");
            let line = match (from, to) {
                (None, Some(to)) => format!("+ {} {to}", what.trim_end()),
                (Some(from), None) => format!("- {} {from}", what.trim_end()),
                (from, to) => format!("~ {what}: {} -> {}", side(from.as_ref()), side(to.as_ref())),
            };
            text += &format!("{}\n", printable(&line).trim_end());
        }
        if !self.findings.is_empty() {
            text += &format!("\nFindings:\n{}", self.findings.text());
        }
        text
    }
}

/// An empty list of traits, for one, is a value too.
fn side(value: Option<&String>) -> &str {
    value.map(String::as_str).filter(|text| !text.is_empty()).unwrap_or("-")
}

/// The word of a value that is one in JSON.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The trait of this name.
///
/// # Errors
/// `TraitUnmapped`.
pub(super) fn find_trait(traits: Vec<TraitView>, name: &str) -> Result<TraitView, Fault> {
    traits.into_iter().find(|one| one.name.as_str() == name).ok_or_else(|| {
        let text = format!(
            "no trait {} in traits.toml; mdevirtctl trait list shows those that are there",
            name.escape_debug()
        );
        Fault::new(FaultKind::TraitUnmapped, text)
    })
}

/// The failure of a check: exit code 5.
///
/// # Errors
/// `TraitDrift` if anything differs.
pub(super) fn verdict(check: &TraitCheck) -> Result<(), Fault> {
    if check.agree {
        return Ok(());
    }
    let names: Vec<&str> = check.differences.iter().map(|one| one.name.as_str()).collect();
    let names = names.join(", ");
    let text = match check.lock {
        Some(_) => format!("this host differs from its lock in {names}"),
        None => format!("there is no lock, and not every trait stands well: {names}"),
    };
    Err(Fault::new(FaultKind::TraitDrift, text))
}
