//! `trait verify`: compares exports of any number of hosts, without a daemon.

use super::input::read_text;
use super::output::{Output, Show, Stop};
use super::table::Table;
use crate::catalog::{
    Difference, DifferenceKind, Export, LockMark, MAX_EXPORT_BYTES, TraitState, Verdict, verify,
};
use crate::model::{Fault, FaultKind, TypeIdentity};

/// `trait verify`. The verdict goes to standard output also if it is a failure.
///
/// # Errors
/// `InvalidRequest` with the name of a file that cannot be read or is no export; `TraitMismatch` if hosts disagree.
pub(super) fn verify_files(files: &[String], output: Output) -> Result<(), Stop> {
    let exports = files.iter().map(|file| export(file)).collect::<Result<Vec<Export>, Fault>>()?;
    let verdict = verify(&exports);
    output.print(&verdict)?;
    if verdict.agree {
        return Ok(());
    }
    let text = format!(
        "hosts disagree about traits: {} differences in {} exports",
        verdict.differences.len(),
        verdict.hosts
    );
    Err(Fault::new(FaultKind::TraitMismatch, text).into())
}

fn export(file: &str) -> Result<Export, Fault> {
    let text = read_text(file, MAX_EXPORT_BYTES, FaultKind::InvalidRequest)?;
    Export::parse(text.as_bytes(), file)
}

impl Show for Verdict {
    fn text(&self) -> String {
        if self.agree {
            return format!("agreed: {} traits on {} hosts\n", self.traits, self.hosts);
        }
        let mut table = Table::new(&["TRAIT", "HOST", "HAS", "EXPECTED"]);
        for difference in &self.differences {
            table.row(row(difference));
        }
        table.to_string()
    }
}

/// A lock stands in the place of a trait, in brackets, which no trait has.
fn row(difference: &Difference) -> Vec<String> {
    let name = difference.trait_name.as_ref().map_or_else(|| "(lock)".to_owned(), ToString::to_string);
    let (has, expected) = match difference.kind {
        DifferenceKind::Lock => (lock(difference.lock.as_ref()), lock(difference.expected_lock.as_ref())),
        DifferenceKind::Missing
        | DifferenceKind::Extra
        | DifferenceKind::Identity
        | DifferenceKind::State => (
            standing(difference.state, difference.identity.as_ref()),
            standing(difference.expected_state, difference.expected_identity.as_ref()),
        ),
    };
    vec![name, difference.host.clone(), has, expected]
}

fn lock(lock: Option<&LockMark>) -> String {
    lock.map_or_else(
        || "no lock".to_owned(),
        |mark| format!("revision {}, digest {}", mark.revision, mark.digest.short()),
    )
}

/// The identity, after the state if that is not `ok`; nothing if there is no such trait.
fn standing(state: Option<TraitState>, identity: Option<&TypeIdentity>) -> String {
    match (state, identity) {
        (None, _) => String::new(),
        (Some(TraitState::Ok), Some(identity)) => identity.to_string(),
        (Some(state), Some(identity)) => format!("{state}: {identity}"),
        (Some(state), None) => state.to_string(),
    }
}
