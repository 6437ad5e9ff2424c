//! `config`: what needs no daemon is done here, with the same functions that the daemon uses.

use std::fs::{self, File};
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

/// A file and its drop-ins as one text, checked.
///
/// # Errors
/// `InvalidMdevConfig` with everything that is wrong, or the file is not there.
pub fn as_toml(file: &Path) -> Result<String, Stop> {
    if !file.exists() {
        let message = format!("{}: there is no such file", file.display().to_string().escape_debug());
        return Err(Fault::new(FaultKind::InvalidMdevConfig, message).into());
    }
    Ok(config::to_toml(&config::load(file).map_err(Fault::from)?.config))
}

/// `config import-nova`: the configuration, and a draft of its traits if a file is named for it.
///
/// # Errors
/// `InvalidMdevConfig` with everything that is wrong, or a file cannot be read or made; then neither is there.
pub fn import_nova(
    file: &str,
    target: Option<&Path>,
    traits_target: Option<&Path>,
    output: Output,
) -> Result<(), Stop> {
    let text = read_text(file, MAX_FILE_BYTES, FaultKind::InvalidMdevConfig)?;
    let Imported { toml, traits, traps, notes } = config::import(&text, file).map_err(Fault::from)?;
    let written = [(target, &toml), (traits_target, &traits)];
    write_all_new(written.into_iter().filter_map(|(path, text)| Some((path?, text))))?;
    if !output.json {
        // Beside the configuration, which may go into a file or a pipe.
        let say = |word: &str, text: &str| drop(writeln!(io::stderr(), "{word}: {}", printable(text)));
        traps.iter().for_each(|trap| say("trap", trap));
        notes.iter().for_each(|note| say("note", note));
        if traits_target.is_none() {
            say("note", "nova.conf has no traits; --traits FILE writes a draft of traits.toml");
        }
    }
    let (file, traits_file) = (target.map(Path::to_owned), traits_target.map(Path::to_owned));
    output.print(&ImportedTo { toml, traits, traps, notes, file, traits_file })
}

/// All of the files or none of them.
fn write_all_new<'a>(files: impl Iterator<Item = (&'a Path, &'a String)>) -> Result<(), Fault> {
    let mut made: Vec<&Path> = Vec::new();
    for (path, text) in files {
        if let Err(fault) = write_new(path, text) {
            // What was made a moment ago; if it cannot be taken back, the fault is still the one to tell.
            made.iter().for_each(|path| drop(fs::remove_file(path)));
            return Err(fault);
        }
        made.push(path);
    }
    Ok(())
}

/// Never over a file that is there; one that cannot be written whole is taken away again.
fn write_new(target: &Path, toml: &str) -> Result<(), Fault> {
    let written = File::create_new(target).and_then(|mut file| {
        let whole = file.write_all(toml.as_bytes()).and_then(|()| file.sync_all());
        whole.inspect_err(|_| drop(fs::remove_file(target)))
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
    traits: String,
    traps: Vec<String>,
    notes: Vec<String>,
    file: Option<PathBuf>,
    traits_file: Option<PathBuf>,
}

impl Show for ImportedTo {
    fn text(&self) -> String {
        let written = |path: &PathBuf| format!("written to {}\n", printable(&path.display().to_string()));
        let config = self.file.as_ref().map_or_else(|| printable_lines(&self.toml) + "\n", written);
        // Beside a configuration on standard output a line more would be a line of it.
        let traits = self.traits_file.as_ref().filter(|_| self.file.is_some()).map(written);
        config + &traits.unwrap_or_default()
    }
}
