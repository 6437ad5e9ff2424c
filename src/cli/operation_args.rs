//! What operations on instances are given on the command line.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};

use crate::model::DisplayWish;

/// An instance by name or UUID.
#[derive(Debug, Args)]
pub struct Instance {
    /// Its name or UUID
    #[arg(value_name = "INSTANCE", value_parser = NonEmptyStringValueParser::new())]
    pub instance: String,
}

/// How an operation is begun and waited for.
#[derive(Debug, Args)]
pub struct JobArgs {
    /// An id of your own: the same id again is the same operation, done once
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub operation_id: Option<String>,
    /// Print the job and do not wait for its end
    #[arg(long)]
    pub no_wait: bool,
}

/// An operation on an instance.
#[derive(Debug, Args)]
pub struct VerbArgs {
    /// Whose.
    #[command(flatten)]
    pub of: Instance,
    /// How.
    #[command(flatten)]
    pub job: JobArgs,
}

/// `restore`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// Name or UUID; every instance that lacks a device if it is left out
    #[arg(value_name = "INSTANCE", value_parser = NonEmptyStringValueParser::new())]
    pub instance: Option<String>,
    /// How.
    #[command(flatten)]
    pub job: JobArgs,
}

/// `spawn`.
#[derive(Debug, Args)]
pub struct SpawnArgs {
    /// The domain XML, or - for standard input
    #[arg(value_name = "DOMAIN.xml")]
    pub domain: String,
    /// Flavor extra specs, key=value separated by commas
    ///
    /// resources{S}:CLASS=N, trait{S}:NAME=required|forbidden, required{S}=NAME,!NAME or required{S}=in:NAME,NAME (one of
    /// them), group_policy=isolate|none, numa=required|preferred|ignore. {S} is nothing, a number or a word: keys with the
    /// same one make a group.
    #[arg(long, value_name = "SPECS", value_parser = NonEmptyStringValueParser::new())]
    pub flavor: String,
    /// Whether the guest's console shows the first device
    #[arg(long, value_name = "on|off", default_value = "off", hide_possible_values = true)]
    pub display: Display,
    /// Show what would be done, do nothing
    #[arg(long, conflicts_with = "no_wait")]
    pub dry_run: bool,
    /// How.
    #[command(flatten)]
    pub job: JobArgs,
}

/// `rescue` and `rebuild`.
#[derive(Debug, Args)]
pub struct DefinitionArgs {
    /// Whose.
    #[command(flatten)]
    pub verb: VerbArgs,
    /// The domain XML, of the same name and UUID and without host devices of ours, or - for standard input
    #[arg(value_name = "DOMAIN.xml")]
    pub domain: String,
}

/// `attach`.
#[derive(Debug, Args)]
pub struct AttachArgs {
    /// Whose.
    #[command(flatten)]
    pub verb: VerbArgs,
    /// Flavor extra specs of the further device, as for spawn
    #[arg(long, value_name = "SPECS", value_parser = NonEmptyStringValueParser::new())]
    pub flavor: String,
}

/// `detach`.
#[derive(Debug, Args)]
pub struct DetachArgs {
    /// Whose.
    #[command(flatten)]
    pub verb: VerbArgs,
    /// UUID of the device
    #[arg(value_name = "DEVICE")]
    pub device: String,
}

/// `resize`.
#[derive(Debug, Args)]
pub struct ResizeArgs {
    /// Whose.
    #[command(flatten)]
    pub of: Instance,
    /// The new flavor, as for spawn; an empty text for no devices
    #[arg(long, value_name = "SPECS")]
    pub flavor: String,
    /// Whether the guest's console shows the first device
    #[arg(long, value_name = "on|off", default_value = "off", hide_possible_values = true)]
    pub display: Display,
    /// To another host, as for migrate
    #[arg(long, value_name = "HOST", value_parser = NonEmptyStringValueParser::new())]
    pub to: Option<String>,
}

/// `migrate`.
#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// Whose.
    #[command(flatten)]
    pub of: Instance,
    /// The target: `[USER@]HOST`, reached over ssh, or the D-Bus address of a bus
    #[arg(long, value_name = "HOST", value_parser = NonEmptyStringValueParser::new())]
    pub to: String,
    /// Another flavor on the target, as for resize
    #[arg(long, value_name = "SPECS")]
    pub flavor: Option<String>,
    /// Take devices of another type there, if the flavor allows them; the guest finds other hardware
    #[arg(long)]
    pub allow_type_change: bool,
    /// Confirm it at once: there is no way back then
    #[arg(long)]
    pub confirm: bool,
    /// Move it while it runs; there is nothing to confirm then
    #[arg(long, conflicts_with_all = ["flavor", "allow_type_change", "confirm"])]
    pub live: bool,
    /// How it goes while it runs.
    #[command(flatten)]
    pub way: LiveArgs,
}

impl MigrateArgs {
    /// A resize to another host: the guest's devices change there anyway.
    pub fn of_resize(args: ResizeArgs, to: String) -> Self {
        let way = LiveArgs::default();
        let flavor = Some(args.flavor);
        Self { of: args.of, to, flavor, allow_type_change: true, confirm: false, live: false, way }
    }
}

/// How a guest goes while it runs.
#[derive(Debug, Default, Args)]
pub struct LiveArgs {
    /// With --live: the most that is sent, in MiB/s
    #[arg(long, value_name = "MIB", requires = "live", value_parser = clap::value_parser!(u32).range(1..))]
    pub bandwidth: Option<u32>,
    /// With --live: the longest time for which the guest may stand still at the end, in milliseconds
    #[arg(long, value_name = "MS", requires = "live", value_parser = clap::value_parser!(u32).range(1..))]
    pub downtime: Option<u32>,
    /// With --live: how libvirt reaches libvirt there, if not by qemu+ssh://HOST/system
    #[arg(long, value_name = "URI", requires = "live", value_parser = NonEmptyStringValueParser::new())]
    pub uri: Option<String>,
}

/// `evacuate`.
#[derive(Debug, Args)]
pub struct EvacuateArgs {
    /// What `instance export` wrote while the old host lived, or - for standard input
    #[arg(value_name = "DOCUMENT")]
    pub document: String,
    /// Take devices of another type here, if the flavor allows them
    #[arg(long)]
    pub allow_type_change: bool,
}

/// `claim create`.
#[derive(Debug, Args)]
pub struct ClaimArgs {
    /// UUID of the domain
    #[arg(long, value_name = "UUID")]
    pub instance: String,
    /// A name for people
    #[arg(long, default_value = "", hide_default_value = true)]
    pub name: String,
    /// Flavor extra specs, key=value separated by commas
    ///
    /// resources{S}:CLASS=N, trait{S}:NAME=required|forbidden, required{S}=NAME,!NAME or required{S}=in:NAME,NAME (one of
    /// them), group_policy=isolate|none, numa=required|preferred|ignore. {S} is nothing, a number or a word: keys with the
    /// same one make a group.
    #[arg(long, value_name = "SPECS", value_parser = NonEmptyStringValueParser::new())]
    pub flavor: String,
    /// How.
    #[command(flatten)]
    pub job: JobArgs,
}

/// `--display`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Display {
    /// `display='on'` and `ramfb='on'`.
    On,
    /// Neither.
    Off,
}

impl From<Display> for DisplayWish {
    fn from(display: Display) -> Self {
        match display {
            Display::On => Self::On,
            Display::Off => Self::Off,
        }
    }
}
