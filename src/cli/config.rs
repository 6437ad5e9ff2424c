//! `config`: what needs no daemon is done here, with the same functions that the daemon uses.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::input::read_text;
use super::output::{Output, Show, Stop};
use super::table::{printable, printable_lines};
use crate::config::{self, Config, Imported, Loaded, MAX_FILE_BYTES};
use crate::model::{Fault, FaultKind, Finding};

/// `config check`.
///
/// # Errors
/// `InvalidMdevConfig` with everything that is wrong, or the file is not there.
pub fn check(file: &Path, output: Output) -> Result<(), Stop> {
    if !file.exists() {
        let message = format!("{}: there is no such file", file.display().to_string().escape_debug());
        return Err(Fault::new(FaultKind::InvalidMdevConfig, message).into());
    }
    let Loaded { config, warnings, files } = config::load(file).map_err(Fault::from)?;
    output.print(&Checked { files, enabled_types: config.enabled.len(), warnings })
}

/// `config show --default`.
///
/// # Errors
/// Standard output cannot be written.
pub fn show_default(output: Output) -> Result<(), Stop> {
    show(config::to_toml(&Config::default()), output)
}

/// A configuration as the daemon tells it.
///
/// # Errors
/// As [`show_default`].
pub fn show(toml: String, output: Output) -> Result<(), Stop> {
    output.print(&Shown(toml))
}

/// `config import-nova`.
///
/// # Errors
/// `InvalidMdevConfig` with everything that is wrong, or a file cannot be read or made.
pub fn import_nova(file: &str, target: Option<&Path>, output: Output) -> Result<(), Stop> {
    let text = read_text(file, MAX_FILE_BYTES, FaultKind::InvalidMdevConfig)?;
    let Imported { toml, notes } = config::import(&text, file).map_err(Fault::from)?;
    if let Some(target) = target {
        write_new(target, &toml)?;
    }
    if !output.json {
        for note in &notes {
            // Beside the configuration, which may go into a file or a pipe.
            let _ = writeln!(io::stderr(), "note: {}", printable(note));
        }
    }
    output.print(&ImportedTo { toml, notes, file: target.map(Path::to_owned) })
}

/// Never over a configuration that is there.
fn write_new(target: &Path, toml: &str) -> Result<(), Fault> {
    let written = File::create_new(target).and_then(|mut file| {
        file.write_all(toml.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|err| {
        let message = format!("{}: cannot be written: {err}", target.display().to_string().escape_debug());
        Fault::new(FaultKind::InvalidRequest, message)
    })
}

#[derive(Debug, Serialize)]
struct Checked {
    files: Vec<PathBuf>,
    enabled_types: usize,
    warnings: Vec<Finding>,
}

impl Show for Checked {
    fn text(&self) -> String {
        let files: Vec<String> =
            self.files.iter().map(|file| printable(&file.display().to_string())).collect();
        let head = format!("{}: good, {} types enabled\n", files.join(", "), self.enabled_types);
        if self.warnings.is_empty() { head } else { format!("{head}\nWarnings:\n{}", self.warnings.text()) }
    }
}

/// TOML as it is, and its content as JSON.
#[derive(Debug)]
struct Shown(String);

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        toml::from_str::<toml::Table>(&self.0).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl Show for Shown {
    fn text(&self) -> String {
        printable_lines(&self.0) + "\n"
    }
}

#[derive(Debug, Serialize)]
struct ImportedTo {
    toml: String,
    notes: Vec<String>,
    file: Option<PathBuf>,
}

impl Show for ImportedTo {
    fn text(&self) -> String {
        match &self.file {
            Some(file) => format!("written to {}\n", printable(&file.display().to_string())),
            None => printable_lines(&self.toml) + "\n",
        }
    }
}
