//! Which concrete type stands behind which trait.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};

use super::args::Args;
use super::clock::{RandomIds, SystemClock};
use crate::dbus::{self, Authority, Bus, Polkit, SameUser, Server};
use crate::host::sim::{Script, SimHost, SimOptions};
use crate::host::{Hypervisor, NodeDevices};
use crate::model::{Clock, Fault};
use crate::ops::{CardLocks, Host};
use crate::saga::{FailPoints, Runner, Stop, Wake};
use crate::service::{Parts, Service, SettingsCell};
use crate::store::Store;
use crate::xml::render::Templates;

/// Where the package installs its templates.
const INSTALLED_TEMPLATES: &str = "/usr/share/mdevirt/xml-templates";

/// Puts the service together; nothing runs yet.
pub(super) async fn service(args: &Args) -> Result<Service> {
    let settings = SettingsCell::load(args.config.clone()).map_err(Fault::from)?;
    let templates =
        Templates::load(&[&args.templates, Path::new(INSTALLED_TEMPLATES)]).context("read XML templates")?;
    let libvirt_uri = match &args.sim {
        Some(file) => test_uri(file)?,
        None => settings.now().config.libvirt_uri.clone(),
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let store = Store::open(&args.state_dir, Arc::clone(&clock));
    let store =
        Arc::new(store.with_context(|| format!("open the state database in {}", args.state_dir.display()))?);
    let host = host(args, &libvirt_uri, &templates).await?;
    let (wake, stop) = (Arc::new(Wake::default()), Arc::new(Stop::default()));
    let runner = Runner::new(
        Arc::clone(&store),
        Arc::clone(&wake),
        Arc::clone(&stop),
        Arc::new(FailPoints::from_environment()?),
    );
    let host_name = args.host_name.clone().map_or_else(kernel_host_name, Ok)?;
    Ok(Service::new(Parts {
        host,
        store,
        runner,
        wake,
        stop,
        templates,
        settings,
        ids: Arc::new(RandomIds),
        clock,
        host_name,
        libvirt_uri,
        simulated: args.sim.is_some(),
        by_itself: true,
    }))
}

async fn host(args: &Args, uri: &str, templates: &Templates) -> Result<Host> {
    let (nodes, hypervisor) = base(args, uri, templates)?;
    let cards = Arc::new(CardLocks::default());
    let Some(file) = &args.sim else { return Ok(Host { nodes, hypervisor, cards }) };
    let script =
        args.sim_script.as_deref().map(Script::load).transpose().context("read the simulator's script")?;
    let options = SimOptions { state_file: args.sim_state.clone(), script: script.unwrap_or_default() };
    let sim = SimHost::new(nodes, hypervisor, options).await;
    let sim = sim.with_context(|| format!("simulate the host of {}", file.display()))?;
    Ok(Host { nodes: sim.clone(), hypervisor: sim, cards })
}

/// libvirt: the host's own, or its in-process test driver below the simulator.
#[cfg(feature = "libvirt")]
fn base(_: &Args, uri: &str, templates: &Templates) -> Result<(Arc<dyn NodeDevices>, Arc<dyn Hypervisor>)> {
    use crate::host::{libvirt::LibvirtHost, sysfs::Sysfs};
    let libvirt = LibvirtHost::new(uri, Sysfs::new("/"), templates.clone());
    Ok((libvirt.clone(), libvirt))
}

/// Without libvirt only a simulated host can be served, read by the simulator itself.
#[cfg(not(feature = "libvirt"))]
fn base(args: &Args, _: &str, _: &Templates) -> Result<(Arc<dyn NodeDevices>, Arc<dyn Hypervisor>)> {
    let file =
        args.sim.as_deref().context("this mdevirtd was built without libvirt: start it with --sim FILE")?;
    let host = crate::host::sim::FileHost::load(file)?;
    Ok((host.clone(), host))
}

fn test_uri(file: &Path) -> Result<String> {
    let path = file.canonicalize().with_context(|| format!("find {}", file.display()))?;
    Ok(format!("test://{}", path.display()))
}

fn kernel_host_name() -> Result<String> {
    let path = "/proc/sys/kernel/hostname";
    let name = std::fs::read_to_string(path).with_context(|| format!("read {path}"))?;
    Ok(name.trim().to_owned())
}

/// Serves on the bus that the arguments name. On the system bus polkit decides who may change things.
pub(super) async fn bus(args: &Args, service: &Service) -> Result<Server> {
    let bus = match &args.address {
        Some(address) => Bus::Address(address.clone()),
        None if args.session => Bus::Session,
        None => Bus::System,
    };
    let connection =
        dbus::connect(&bus, None).await.with_context(|| format!("connect to {}", bus.describe()))?;
    let authority: Arc<dyn Authority> = match bus {
        Bus::System | Bus::Host(_) => Arc::new(Polkit::new(&connection).await?),
        Bus::Session | Bus::Address(_) => Arc::new(SameUser::new(&connection).await?),
    };
    Ok(dbus::serve(connection, Arc::new(service.clone()), authority).await?)
}
