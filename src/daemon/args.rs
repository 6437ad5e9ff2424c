//! Arguments of `mdevirtd`.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Compute driver daemon for mediated devices and vGPUs on libvirt hosts.
#[derive(Debug, Clone, Parser)]
#[command(name = "mdevirtd", version, after_help = EXAMPLES)]
pub struct Args {
    /// Configuration file; files in FILE.d/*.toml are read after it.
    #[arg(long, value_name = "FILE", default_value = "/etc/mdevirt/mdevirt.toml")]
    pub config: PathBuf,

    /// Directory of the state database.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/mdevirt")]
    pub state_dir: PathBuf,

    /// Serve on the session bus; callers must have this process's user id.
    #[arg(long, conflicts_with = "address")]
    pub session: bool,

    /// Serve on the bus at this D-Bus address; callers must have this process's user id.
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,

    /// Simulate the host described by a libvirt test-driver file.
    #[arg(long, value_name = "FILE")]
    pub sim: Option<PathBuf>,

    /// Keep the simulated host's made devices and domains in this file, as hardware keeps them across restarts.
    #[arg(long, value_name = "FILE", requires = "sim")]
    pub sim_state: Option<PathBuf>,

    /// Let the simulated host fail as this script says.
    #[arg(long, value_name = "FILE", requires = "sim")]
    pub sim_script: Option<PathBuf>,

    /// Directory of XML templates; a template that is missing there is taken from the installed ones.
    #[arg(long, value_name = "DIR", default_value = "/etc/mdevirt/xml-templates")]
    pub templates: PathBuf,

    /// Name of this host in provider names; the kernel's host name by default.
    #[arg(long, value_name = "NAME")]
    pub host_name: Option<String>,

    /// Print what the traits of this host are bound to, as `mdevirtctl trait export` does, and end; nothing is served.
    #[arg(long)]
    pub export_traits: bool,

    /// Where log lines go and how they look; `auto` is the journal below systemd, text elsewhere.
    #[arg(long, value_enum, default_value_t = LogFormat::Auto)]
    pub log_format: LogFormat,
}

/// See [`Args::log_format`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// The journal below systemd, text elsewhere.
    Auto,
    /// The systemd journal, with fields.
    Journal,
    /// Lines for people on standard error.
    Text,
    /// One JSON object a line on standard error.
    Json,
}

const EXAMPLES: &str = "Examples:
  mdevirtd                                            as systemd starts it
  mdevirtd --session --sim two-m60.xml --state-dir d  a simulated host on the session bus";
