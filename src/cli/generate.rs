//! Completions and manual pages, from the definitions.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use super::args::Cli;
use super::output::{Stop, text};
use crate::model::{Fault, FaultKind};

/// `completions`.
///
/// # Errors
/// Standard output cannot be written.
pub fn completions(shell: Shell) -> Result<(), Stop> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "mdevirtctl", &mut script);
    text(&String::from_utf8_lossy(&script))
}

/// The help of a command that takes `--help` for something else.
///
/// # Errors
/// Standard output cannot be written.
pub fn help_of(path: &[&str]) -> Result<(), Stop> {
    let mut root = Cli::command();
    root.build();
    let inner = path.iter().try_fold(&mut root, |command, name| command.find_subcommand_mut(name));
    text(&inner.map(|command| command.render_long_help().to_string()).unwrap_or_default())
}

/// `man`: one page a command.
///
/// # Errors
/// The directory cannot be written.
pub fn man(directory: &Path) -> Result<(), Stop> {
    clap_mangen::generate_to(Cli::command(), directory).map_err(|err| {
        let message = format!("{}: cannot be written: {err}", directory.display().to_string().escape_debug());
        Stop::Fault(Fault::new(FaultKind::InvalidRequest, message))
    })
}
