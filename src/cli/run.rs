//! From arguments to an exit code.

use std::process::ExitCode;

use clap::Parser;

use super::args::{
    AttachArgs, ClaimCommand, Cli, Command, ConfigCommand, DefinitionArgs, DetachArgs, DeviceCommand,
    DomainCommand, HookCommand, InstanceCommand, JobCommand, MigrateArgs, TraitCommand, TypeCommand,
    VerbArgs,
};
use super::output::{Output, Stop};
use super::session::Session;
use super::travel::{self, Side};
use super::{books, config, doctor, generate, hardware, monitor, operate, traits, upkeep, verify};
use crate::dbus::{Bus, Client};
use crate::model::{Fault, FaultKind, InvalidName, OpKind};
use crate::service::api::{AcceptRequest, OperateWith};

/// The program.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = Output { json: cli.global.json };
    let bus = match cli.bus() {
        Ok(bus) => bus,
        Err(err) => err.exit(),
    };
    if let Command::Hook(HookCommand::Qemu { arguments }) = &cli.command
        && let Some(code) = crate::hook::qemu(arguments, &bus)
    {
        return code;
    }
    match run(cli, &bus, output) {
        Ok(()) | Err(Stop::ReaderGone) => ExitCode::SUCCESS,
        Err(Stop::Fault(fault)) => {
            output.failure(&fault);
            ExitCode::from(fault.kind.exit_code())
        }
    }
}

/// Commands that need no daemon come first.
fn run(cli: Cli, bus: &Bus, output: Output) -> Result<(), Stop> {
    match &cli.command {
        Command::Completions { shell } => generate::completions(*shell),
        Command::Man { directory } => generate::man(directory),
        Command::Hook(HookCommand::Qemu { arguments }) => misused_hook(arguments),
        Command::Trait(TraitCommand::Verify { files }) => verify::verify_files(files, output),
        Command::Config(ConfigCommand::Check { file }) => config::check(file, output),
        Command::Config(ConfigCommand::Show { default: true }) => config::show_default(output),
        Command::Config(ConfigCommand::ImportNova { file, output: target, traits }) => {
            config::import_nova(file, target.as_deref(), traits.as_deref(), output)
        }
        Command::Config(ConfigCommand::Show { default: false })
        | Command::Status
        | Command::Doctor
        | Command::Trait(_)
        | Command::Plan { .. }
        | Command::Device(_)
        | Command::Type(_)
        | Command::Inventory
        | Command::Instance(_)
        | Command::Domain(_)
        | Command::Claim(_)
        | Command::Spawn(_)
        | Command::Destroy(_)
        | Command::Start(_)
        | Command::Stop(_)
        | Command::Reboot(_)
        | Command::Suspend(_)
        | Command::Resume(_)
        | Command::Rescue(_)
        | Command::Unrescue(_)
        | Command::Rebuild(_)
        | Command::Attach(_)
        | Command::Detach(_)
        | Command::Resize(_)
        | Command::Migrate(_)
        | Command::Confirm(_)
        | Command::Revert(_)
        | Command::Evacuate(_)
        | Command::Restore(_)
        | Command::Reconcile { .. }
        | Command::Job(_)
        | Command::Monitor
        | Command::Reload => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime =
                runtime.map_err(|err| Fault::new(FaultKind::Internal, format!("cannot start: {err}")))?;
            runtime.block_on(talk(cli, bus, output))
        }
    }
}

fn misused_hook(arguments: &[std::ffi::OsString]) -> Result<(), Stop> {
    // Alone it asks for help; with three more arguments it is the name of a guest.
    if arguments == ["--help"] {
        return generate::help_of(&["hook", "qemu"]);
    }
    let text = "hook qemu: expected GUEST OPERATION SUB-OPERATION EXTRA, as libvirt gives them";
    Err(Fault::new(FaultKind::InvalidRequest, text).into())
}

async fn talk(cli: Cli, bus: &Bus, output: Output) -> Result<(), Stop> {
    let session = Session::open(&cli, bus).await?;
    let client = session.client();
    let here = Side::here(&session, cli.global.host.as_deref());
    match cli.command {
        Command::Status => output.print(&client.status().await?),
        Command::Doctor => doctor::doctor(client, output).await,
        Command::Trait(command) => of_traits(client, command, output).await,
        Command::Plan { config: None } => output.print(&client.plan(None).await?),
        Command::Plan { config: Some(file) } => {
            output.print(&client.plan(Some(&config::as_toml(&file)?)).await?)
        }
        Command::Device(DeviceCommand::List) => output.print(&client.devices().await?),
        Command::Device(DeviceCommand::Show { device }) => {
            output.print(&hardware::find_device(client.devices().await?, &device)?)
        }
        Command::Type(TypeCommand::List) => output.print(&hardware::host_types(&client.devices().await?)),
        Command::Inventory => output.print(&client.inventory().await?),
        Command::Instance(InstanceCommand::List) => output.print(&client.instances().await?),
        Command::Instance(InstanceCommand::Show(of)) => {
            output.print(&books::find_instance(client.instances().await?, &of.instance)?)
        }
        Command::Domain(DomainCommand::Request { domain, flavor, .. }) => {
            let devices = client.request_for_domain(&domain, flavor.as_deref()).await?;
            output.print(&operate::Wanted { domain, flavor, devices })
        }
        Command::Claim(ClaimCommand::Create(args)) => operate::claim(&session, args, output).await,
        Command::Claim(ClaimCommand::Release(args)) => plain(&session, OpKind::Release, &args, output).await,
        Command::Spawn(args) => operate::spawn(&session, args, output).await,
        Command::Destroy(args) => plain(&session, OpKind::Destroy, &args, output).await,
        Command::Start(args) => plain(&session, OpKind::Start, &args, output).await,
        Command::Stop(args) => plain(&session, OpKind::Stop, &args, output).await,
        Command::Instance(InstanceCommand::Export { of, output: file }) => {
            travel::export(&here, &of, file.as_deref(), output).await
        }
        Command::Instance(InstanceCommand::Forget(of)) => travel::forget(&here, &of, output).await,
        Command::Resize(args) => match args.to.clone() {
            None => travel::resize(&here, &args, output).await,
            Some(to) => travel::migrate(&here, &MigrateArgs::of_resize(args, to), output).await,
        },
        Command::Migrate(args) => travel::migrate(&here, &args, output).await,
        Command::Confirm(of) => travel::confirm(&here, &of, output).await,
        Command::Revert(of) => travel::revert(&here, &of, output).await,
        Command::Evacuate(args) => travel::evacuate(&here, &args, output).await,
        Command::Reboot(args) => plain(&session, OpKind::Reboot, &args, output).await,
        Command::Suspend(args) => plain(&session, OpKind::Suspend, &args, output).await,
        Command::Resume(args) => plain(&session, OpKind::Resume, &args, output).await,
        Command::Unrescue(args) => plain(&session, OpKind::Unrescue, &args, output).await,
        Command::Restore(args) => upkeep::restore(&session, args, output).await,
        Command::Reconcile { dry_run } => output.print(&client.reconcile(dry_run).await?),
        Command::Rescue(args) => defined(&session, OpKind::Rescue, &args, output).await,
        Command::Rebuild(args) => defined(&session, OpKind::Rebuild, &args, output).await,
        Command::Attach(AttachArgs { verb, flavor }) => {
            let with = OperateWith { flavor: Some(flavor), ..OperateWith::default() };
            operate::verb(&session, OpKind::Attach, &verb, with, output).await
        }
        Command::Detach(DetachArgs { verb, device }) => {
            let device = Some(device.parse().map_err(|e: InvalidName| Fault::from(e))?);
            let with = OperateWith { device, ..OperateWith::default() };
            operate::verb(&session, OpKind::Detach, &verb, with, output).await
        }
        Command::Job(JobCommand::List) => output.print(&client.jobs().await?),
        Command::Job(JobCommand::Show { id }) => {
            output.print(&client.job(id.parse().map_err(Fault::from)?).await?)
        }
        Command::Monitor => monitor::monitor(&session, output).await,
        Command::Config(ConfigCommand::Show { .. }) => config::show(client.config_text().await?, output),
        Command::Reload => output.print(&client.reload().await?),
        // Done by `run`, without a session.
        Command::Config(ConfigCommand::Check { .. } | ConfigCommand::ImportNova { .. })
        | Command::Completions { .. }
        | Command::Hook(_)
        | Command::Man { .. } => Ok(()),
    }
}

async fn plain(session: &Session, op: OpKind, args: &VerbArgs, output: Output) -> Result<(), Stop> {
    operate::verb(session, op, args, OperateWith::default(), output).await
}

async fn defined(session: &Session, op: OpKind, args: &DefinitionArgs, output: Output) -> Result<(), Stop> {
    operate::verb(session, op, &args.verb, operate::with_domain(&args.domain)?, output).await
}

async fn of_traits(client: &Client, command: TraitCommand, output: Output) -> Result<(), Stop> {
    match command {
        TraitCommand::List => output.print(&client.traits().await?),
        TraitCommand::Show { name } => output.print(&traits::find_trait(client.traits().await?, &name)?),
        TraitCommand::Lock => output.print(&client.trait_lock().await?),
        TraitCommand::Check => {
            let check = client.trait_check().await?;
            output.print(&check)?;
            Ok(traits::verdict(&check)?)
        }
        TraitCommand::Accept { word, reason, parent } => {
            let parent =
                parent.map(|text| text.parse()).transpose().map_err(|e: InvalidName| Fault::from(e))?;
            output.print(&client.trait_accept(&AcceptRequest { word, reason, parent }).await?)
        }
        // Done by `run`, without a session.
        TraitCommand::Verify { .. } => Ok(()),
        TraitCommand::Export => output.print_document(&client.trait_export().await?),
    }
}
