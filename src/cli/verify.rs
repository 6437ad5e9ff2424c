//! `trait verify`: compares exports of any number of hosts, without a daemon.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::output::{Output, Show, Stop};
use super::table::Table;
use crate::catalog::verify::{Verdict, verify};
use crate::catalog::{Export, MAX_EXPORT_BYTES};
use crate::model::{Fault, FaultKind};

impl Show for Verdict {
    fn text(&self) -> String {
        if self.agree {
            return format!("{} hosts agree\n", self.hosts);
        }
        let mut table = Table::new(&["TRAIT", "HOST", "TYPE", "EXPECTED"]);
        for one in &self.differences {
            // Two types of one name differ in what the name does not say.
            let full = one.type_name == one.expected;
            let shown = |name: &str, identity: Option<&crate::model::TypeIdentity>| match identity {
                Some(identity) if full => identity.to_string(),
                Some(_) | None => name.to_owned(),
            };
            table.row(vec![
                one.name.clone(),
                one.host.clone(),
                shown(&one.type_name, one.identity.as_ref()),
                shown(&one.expected, one.expected_identity.as_ref()),
            ]);
        }
        table.to_string()
    }
}

/// Reads the files and prints what differs.
///
/// # Errors
/// `InvalidRequest` naming the file that is no export, `TraitMismatch` if anything differs.
pub(super) fn run(files: &[PathBuf], output: Output) -> Result<(), Stop> {
    let mut exports = files.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
    tell_apart(&mut exports, files);
    let verdict = verify(&exports);
    output.print(&verdict)?;
    if verdict.agree {
        return Ok(());
    }
    let text = format!("{} differences among {} hosts", verdict.differences.len(), verdict.hosts);
    Err(Fault::new(FaultKind::TraitMismatch, text).into())
}

fn read(file: &Path) -> Result<Export, Fault> {
    let origin = file.display().to_string();
    let limit = u64::try_from(MAX_EXPORT_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|open| open.take(limit).read_to_end(&mut bytes));
    read.map_err(|err| {
        Fault::new(FaultKind::InvalidRequest, format!("{}: cannot be read: {err}", origin.escape_debug()))
    })?;
    Export::parse(&bytes, &origin)
}

/// Hosts of one name are called by their files as well.
fn tell_apart(exports: &mut [Export], files: &[PathBuf]) {
    let mut names: HashMap<String, usize> = HashMap::new();
    exports.iter().for_each(|export| *names.entry(export.host.clone()).or_default() += 1);
    for (export, file) in exports.iter_mut().zip(files) {
        if names.get(&export.host).is_some_and(|count| *count > 1) {
            export.host = format!("{} ({})", export.host, file.display());
        }
    }
}
