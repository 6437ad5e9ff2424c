//! `trait` and `plan` as text.

use super::output::Show;
use super::table::{Sheet, Table, printable_lines};
use crate::model::{Fault, FaultKind};
use crate::service::api::{CheckDifference, LockView, PlanChange, PlanView, TraitCheck, TraitView};
use crate::text::utc;

impl Show for Vec<TraitView> {
    fn text(&self) -> String {
        let mut table = Table::new(&["TRAIT", "TYPE", "LOCAL TYPES", "LOCKED", "STATE", "REASON"]);
        for one in self {
            let locked = if one.locked { "yes" } else { "no" };
            table.row(vec![
                one.name.to_string(),
                one.type_name.clone(),
                local_types(one),
                locked.to_owned(),
                word(&one.state),
                one.reason.clone(),
            ]);
        }
        table.to_string()
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
        sheet
            .line("type", self.identity.as_ref().map_or_else(|| self.type_name.clone(), ToString::to_string));
        sheet.line("locked", if self.locked { "yes" } else { "no" });
        sheet.line("local types", local_types(self));
        let mut text = sheet.to_string();
        if !self.history.is_empty() {
            let mut table = Table::new(&["WHEN", "PARENT", "WHAT", "WAS", "IS", "REASON"]);
            for line in &self.history {
                table.row(vec![
                    utc(line.at_usec),
                    line.parent.to_string(),
                    line.kind.to_string(),
                    line.was.clone(),
                    line.now.clone(),
                    line.reason.clone(),
                ]);
            }
            text += &format!("\nHistory:\n{table}");
        }
        text
    }
}

/// Each id once, with the number of parents that have it, `nvidia-746 on 16 devices`.
fn local_types(one: &TraitView) -> String {
    let mut ids: Vec<&str> = one.local_types.iter().map(|local| local.id.as_str()).collect();
    ids.sort_unstable();
    let of = |same: &[&str]| match same.len() {
        1 => format!("{} on 1 device", same[0]),
        n => format!("{} on {n} devices", same[0]),
    };
    ids.chunk_by(|a, b| a == b).map(of).collect::<Vec<_>>().join(", ")
}

impl Show for LockView {
    fn text(&self) -> String {
        let mut sheet = Sheet::default();
        sheet.line("lock", self.path.display().to_string());
        sheet.line("revision", self.revision.to_string());
        sheet.line("digest", &self.digest);
        sheet.line("traits", self.traits.to_string());
        let mut text = sheet.to_string();
        if !self.left_out.is_empty() {
            let mut table = Table::new(&["NOT LOCKED", "REASON"]);
            for out in &self.left_out {
                table.row(vec![out.name.to_string(), out.reason.clone()]);
            }
            text += &format!("\n{table}");
        }
        text
    }
}

impl Show for TraitCheck {
    fn text(&self) -> String {
        let mut text = self.lock.as_ref().map_or_else(|| "there is no lock\n".to_owned(), Show::text);
        if self.agree {
            text += "\nthis host agrees\n";
            return text;
        }
        let mut table = Table::new(&["TRAIT", "STATE", "LOCKED", "HERE", "WHAT TO DO"]);
        for CheckDifference { name, state, locked, found, reason } in &self.differences {
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            table.row(vec![
                name.to_string(),
                word(state),
                locked.as_ref().map(ToString::to_string).unwrap_or_default(),
                found.join("; "),
                reason.clone(),
            ]);
        }
        text + &format!("\n{table}")
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
                (from, to) => format!(
                    "~ {what}: {} -> {}",
                    from.as_deref().unwrap_or_default(),
                    to.as_deref().unwrap_or_default()
                ),
            };
            text += &format!("{}\n", printable_lines(&line).trim_end());
        }
        if !self.findings.is_empty() {
            text += &format!("\nFindings:\n{}", self.findings.text());
        }
        text
    }
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
        let text =
            format!("no trait {name:?} in traits.toml; mdevirtctl trait list shows those that are there");
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
    let text = format!("this host does not agree with its lock about {}", names.join(", "));
    Err(Fault::new(FaultKind::TraitDrift, text))
}
