//! The commands and their options: the one place from which parsing, help, completions and manual pages come.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, value_parser};

use super::examples as ex;
pub use super::operation_args::*;
use crate::dbus::Bus;

/// Slice GPUs into mediated devices for virtual machines, through mdevirtd
#[derive(Debug, Parser)]
#[command(name = "mdevirtctl", version, after_help = ex::TOP, max_term_width = 100)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// Talk to mdevirtd on the system bus (the default)
    #[arg(long, global = true, conflicts_with_all = ["session", "address", "host"])]
    pub system: bool,
    /// Talk to mdevirtd on the session bus
    #[arg(long, global = true, conflicts_with_all = ["address", "host"])]
    pub session: bool,
    /// Talk to mdevirtd on the bus at this D-Bus address
    #[arg(long, global = true, conflicts_with = "host", value_name = "ADDRESS", value_parser = NonEmptyStringValueParser::new())]
    pub address: Option<String>,
    /// Talk to mdevirtd on the system bus of this host, over ssh
    #[arg(long, global = true, value_name = "[USER@]HOST", value_parser = NonEmptyStringValueParser::new())]
    pub host: Option<String>,
    /// Print JSON instead of tables
    #[arg(long, global = true)]
    pub json: bool,
    /// How long to wait for an answer, and for a job to end
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 300,
          value_parser = value_parser!(u64).range(1..=604_800))]
    pub timeout: u64,
}

impl Cli {
    /// The bus that was asked for.
    ///
    /// # Errors
    /// Two were; clap itself sees that only if both stand on the same side of the command.
    pub fn bus(&self) -> Result<Bus, clap::Error> {
        let Global { system, session, address, host, .. } = &self.global;
        match (system, session, address, host) {
            (_, false, None, None) => Ok(Bus::System),
            (false, true, None, None) => Ok(Bus::Session),
            (false, false, Some(address), None) => Ok(Bus::Address(address.clone())),
            (false, false, None, Some(host)) => Ok(Bus::Host(host.clone())),
            _ => Err(Self::command().error(
                ErrorKind::ArgumentConflict,
                "--system, --session, --address and --host cannot be used with each other",
            )),
        }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the health of the daemon in one screen
    #[command(after_help = ex::STATUS)]
    Status,
    /// Check what this host needs, with a fix for each failure
    #[command(after_help = ex::DOCTOR)]
    Doctor,
    /// Look at devices that can be sliced
    #[command(subcommand, after_help = ex::DEVICE)]
    Device(DeviceCommand),
    /// Look at the types that devices offer
    #[command(subcommand, after_help = ex::TYPE)]
    Type(TypeCommand),
    /// Show what each resource provider has
    #[command(after_help = ex::INVENTORY)]
    Inventory,
    /// Look at traits, lock them, compare and accept what they mean
    #[command(subcommand, after_help = ex::TRAIT)]
    Trait(TraitCommand),
    /// Show what a configuration would change; nothing is touched
    #[command(after_help = ex::PLAN)]
    Plan {
        /// A configuration, instead of the daemon's own files as they are now
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Look at the virtual machines in the books
    #[command(subcommand, after_help = ex::INSTANCE)]
    Instance(InstanceCommand),
    /// Say what a domain wants that libvirt alone starts
    #[command(subcommand, after_help = ex::DOMAIN)]
    Domain(DomainCommand),
    /// Book devices for a domain that somebody else owns
    #[command(subcommand, after_help = ex::CLAIM)]
    Claim(ClaimCommand),
    /// Book and make devices, write them into a domain, define and start it
    #[command(after_help = ex::SPAWN)]
    Spawn(SpawnArgs),
    /// Stop and undefine a domain and give its devices back
    #[command(after_help = ex::DESTROY)]
    Destroy(VerbArgs),
    /// Start the domain of an instance, with the same devices
    #[command(after_help = ex::START)]
    Start(VerbArgs),
    /// Stop the domain of an instance; its devices stay booked
    #[command(after_help = ex::STOP)]
    Stop(VerbArgs),
    /// Stop and start the domain of an instance at once; a device that is lost is made again
    #[command(after_help = ex::REBOOT)]
    Reboot(VerbArgs),
    /// Save the memory of a guest and switch it off; its devices stay booked
    #[command(after_help = ex::SUSPEND)]
    Suspend(VerbArgs),
    /// Go on where a guest was suspended
    #[command(after_help = ex::SUSPEND)]
    Resume(VerbArgs),
    /// Start another definition with the same devices, for repair
    #[command(after_help = ex::RESCUE)]
    Rescue(DefinitionArgs),
    /// Go back to the definition before the rescue
    #[command(after_help = ex::RESCUE)]
    Unrescue(VerbArgs),
    /// Take another definition for good; the devices stay
    #[command(after_help = ex::REBUILD)]
    Rebuild(DefinitionArgs),
    /// One more device for an instance, also while it runs
    #[command(after_help = ex::ATTACH)]
    Attach(AttachArgs),
    /// One device less, also while it runs
    #[command(after_help = ex::ATTACH)]
    Detach(DetachArgs),
    /// Give an instance another flavor; to be confirmed or reverted then
    #[command(after_help = ex::RESIZE)]
    Resize(ResizeArgs),
    /// Bring an instance to another host, switched off and to be confirmed or reverted then, or while it runs
    #[command(after_help = ex::MIGRATE)]
    Migrate(MigrateArgs),
    /// Let the result of a resize or a migration stand; what was before goes
    #[command(after_help = ex::MIGRATE)]
    Confirm(Instance),
    /// Go back behind a resize or a migration, exactly
    #[command(after_help = ex::MIGRATE)]
    Revert(Instance),
    /// Bring an instance here whose host is dead; see to it that it stays dead
    #[command(after_help = ex::EVACUATE)]
    Evacuate(EvacuateArgs),
    /// Make the lost devices of an instance again, or those of all instances
    #[command(after_help = ex::RESTORE)]
    Restore(RestoreArgs),
    /// Compare books, hardware and domains, and do what is safe about the differences
    #[command(after_help = ex::RECONCILE)]
    Reconcile {
        /// Show what would be done, do nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Look at operations under way and ended ones
    #[command(subcommand, after_help = ex::JOB)]
    Job(JobCommand),
    /// Print what changes, until interrupted
    #[command(after_help = ex::MONITOR)]
    Monitor,
    /// Check, show or import a configuration
    #[command(subcommand, after_help = ex::CONFIG)]
    Config(ConfigCommand),
    /// Have the daemon read its configuration again
    #[command(after_help = ex::RELOAD)]
    Reload,
    /// Answer a hook of libvirt
    #[command(subcommand, after_help = ex::HOOK)]
    Hook(HookCommand),
    /// Print a completion script for a shell
    #[command(after_help = ex::COMPLETIONS)]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a directory
    #[command(hide = true, after_help = ex::MAN)]
    Man {
        /// An existing directory
        directory: PathBuf,
    },
}

/// `hook ...`.
#[derive(Debug, Subcommand)]
pub enum HookCommand {
    /// libvirt's qemu hook; libvirt itself gives the arguments
    #[command(after_help = ex::HOOK, disable_help_flag = true)]
    Qemu {
        /// Guest, operation, sub-operation and extra argument
        #[arg(value_name = "ARGUMENT", allow_hyphen_values = true, trailing_var_arg = true)]
        arguments: Vec<std::ffi::OsString>,
    },
}

/// `device ...`.
#[derive(Debug, Subcommand)]
pub enum DeviceCommand {
    /// List them
    #[command(after_help = ex::DEVICE)]
    List,
    /// Show one, with its types and the devices on it
    #[command(after_help = ex::DEVICE)]
    Show {
        /// PCI address or libvirt's node name
        #[arg(value_name = "ADDRESS")]
        device: String,
    },
}

/// `type ...`.
#[derive(Debug, Subcommand)]
pub enum TypeCommand {
    /// List them, each with the devices that offer it
    #[command(after_help = ex::TYPE)]
    List,
}

/// `trait ...`.
#[derive(Debug, Subcommand)]
pub enum TraitCommand {
    /// List them, each with what it is on this host
    #[command(after_help = ex::TRAIT)]
    List,
    /// Show one, with its history
    #[command(after_help = ex::TRAIT)]
    Show {
        /// Its name
        #[arg(value_name = "TRAIT")]
        name: String,
    },
    /// Write the lock: pin each trait that stands well to what it means now
    #[command(after_help = ex::TRAIT_LOCK)]
    Lock,
    /// Compare this host with its lock; exit code 5 if they differ
    #[command(after_help = ex::TRAIT_LOCK)]
    Check,
    /// Take what a drifted trait, or enabled type, is now for what it shall be
    #[command(after_help = ex::TRAIT_ACCEPT)]
    Accept {
        /// A trait, or a key of enabled_mdev_types
        #[arg(value_name = "TRAIT")]
        word: String,
        /// Why; kept in the history
        #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
        reason: String,
        /// The device whose type is taken, where devices differ
        #[arg(long, value_name = "ADDRESS")]
        parent: Option<String>,
    },
    /// Print what the traits of this host mean, for `trait verify` on any host
    #[command(after_help = ex::TRAIT_EXPORT)]
    Export,
    /// Compare exports of any number of hosts, without a daemon; exit code 5 if they differ
    #[command(after_help = ex::TRAIT_VERIFY)]
    Verify {
        /// Files that `trait export` printed
        #[arg(value_name = "FILE", required = true, value_parser = NonEmptyStringValueParser::new())]
        files: Vec<String>,
    },
}

/// `instance ...`.
#[derive(Debug, Subcommand)]
pub enum InstanceCommand {
    /// List them with what they hold
    #[command(after_help = ex::INSTANCE)]
    List,
    /// Show one
    #[command(after_help = ex::INSTANCE)]
    Show(Instance),
    /// Print the document with which another host can take it over when this one is dead
    #[command(after_help = ex::EVACUATE)]
    Export {
        /// Whose.
        #[command(flatten)]
        of: Instance,
        /// Write it to this file instead of standard output; it has the guest's secrets
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Clear away what is left here of an instance that lives on another host
    #[command(after_help = ex::EVACUATE)]
    Forget(Instance),
}

/// `domain ...`.
#[derive(Debug, Subcommand)]
pub enum DomainCommand {
    /// Write a flavor and host devices into its definition: it gets them each time it starts
    #[command(after_help = ex::DOMAIN)]
    Request {
        /// Name or UUID of a domain of libvirt
        domain: String,
        /// Flavor extra specs, as for spawn
        #[arg(long, value_name = "SPECS", required_unless_present = "clear")]
        flavor: Option<String>,
        /// Take the wish out again; host devices stay where they are
        #[arg(long, conflicts_with = "flavor")]
        clear: bool,
    },
}

/// `claim ...`.
#[derive(Debug, Subcommand)]
pub enum ClaimCommand {
    /// Book and make devices
    #[command(after_help = ex::CLAIM)]
    Create(ClaimArgs),
    /// Give them back
    #[command(after_help = ex::CLAIM)]
    Release(VerbArgs),
}

/// `job ...`.
#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// List them
    #[command(after_help = ex::JOB)]
    List,
    /// Show one, also one of an earlier daemon
    #[command(after_help = ex::JOB)]
    Show {
        /// Its id
        id: String,
    },
}

/// `config ...`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check a file and its drop-ins, without the daemon
    #[command(after_help = ex::CONFIG_CHECK)]
    Check {
        /// The file
        #[arg(default_value = "/etc/mdevirt/mdevirt.toml")]
        file: PathBuf,
    },
    /// Show the configuration in force
    #[command(after_help = ex::CONFIG_SHOW)]
    Show {
        /// Show the built-in defaults instead, without the daemon
        #[arg(long)]
        default: bool,
    },
    /// Turn a nova.conf into a configuration; say what could not be carried over and where nova misled
    #[command(after_help = ex::CONFIG_IMPORT)]
    ImportNova {
        /// The nova.conf, or - for standard input
        file: String,
        /// Write it to this new file instead of standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Write a draft of traits.toml to this new file: one trait for each enabled type
        #[arg(long, value_name = "FILE", long_help = ex::TRAITS_DRAFT)]
        traits: Option<PathBuf>,
    },
}
