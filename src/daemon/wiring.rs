//! Which concrete type stands behind which trait.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};

use super::args::Args;
use super::clock::{RandomIds, SystemClock};
use crate::dbus::authority::{Authority, Polkit, SameUser};
use crate::dbus::server::{self, Server};
use crate::host::sim::{SimHost, SimOptions};
use crate::host::sysfs::Sysfs;
use crate::model::Clock;
use crate::ops::Host;
use crate::saga::{FailPoints, Runner};
use crate::service::{HostWake, Parts, Service, SettingsCell};
use crate::store::Store;
use crate::xml::render::Templates;

/// Where the package installs its templates.
const INSTALLED_TEMPLATES: &str = "/usr/share/mdevirt/xml-templates";

/// Puts the service together; nothing runs yet.
pub(super) fn service(args: &Args) -> Result<Service> {
    let settings = SettingsCell::load(args.config.clone()).map_err(crate::model::Fault::from)?;
    let templates = Templates::load(&[&args.templates, Path::new(INSTALLED_TEMPLATES)]).context("read XML templates")?;
    let libvirt_uri = settings.now().config.libvirt_uri.clone();
    let host = host(args, &libvirt_uri, &templates)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let store = Store::open(&args.state_dir, Arc::clone(&clock))
        .with_context(|| format!("open the state database in {}", args.state_dir.display()))?;
    let store = Arc::new(store);
    let wake = Arc::new(HostWake::default());
    let runner = Runner::new(Arc::clone(&store), Arc::clone(&wake), FailPoints::from_env()?);
    Ok(Service::new(Parts {
        host,
        store,
        runner,
        wake,
        templates,
        settings,
        ids: Arc::new(RandomIds),
        clock,
        host_name: args.host_name.clone().map_or_else(kernel_host_name, Ok)?,
        libvirt_uri: args.sim.as_ref().map_or(libvirt_uri, |file| test_uri(file)),
        simulated: args.sim.is_some(),
    }))
}

fn host(args: &Args, uri: &str, templates: &Templates) -> Result<Host> {
    todo!()
}

fn test_uri(file: &Path) -> String {
    format!("test://{}", file.display())
}

fn kernel_host_name() -> Result<String> {
    let path = PathBuf::from("/proc/sys/kernel/hostname");
    let name = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    Ok(name.trim().to_owned())
}

/// Serves on the bus that the arguments name. On the system bus polkit decides who may change things.
pub(super) async fn bus(args: &Args, service: &Service) -> Result<Server> {
    todo!()
}
