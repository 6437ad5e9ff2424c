//! The daemon: wiring, boot order, systemd (rank 7, the only room that names concrete types).
//!
//! Boot order: arguments, log, configuration (a bad one ends the start), store, host, open sagas taken up, bus name, the
//! first look at the host with the restores that it begins, `READY=1`. A libvirt that is away holds none of it up. Shutdown is a crash with manners: sagas stop after the step at work and the next start takes them up.

mod args;
mod clock;
mod logging;
mod systemd;
mod wiring;

pub use args::Args;

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use crate::model::Fault;
use crate::service::Service;
use crate::service::api::UseCases;

/// How long a step at work may take to come to its end when the daemon is told to stop.
const STOP_DEADLINE: Duration = Duration::from_secs(20);

/// Runs the daemon until it is told to stop.
///
/// # Errors
/// What kept it from starting, the whole chain.
pub fn run(args: &Args) -> Result<()> {
    logging::start(args.log_format)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("mdevirtd")
        .enable_all()
        .build()
        .context("start the runtime")?;
    runtime.block_on(serve(args))
}

/// The exit code for what kept the daemon from starting; 2, a bad configuration, is not worth another try.
pub fn exit_code(err: &anyhow::Error) -> u8 {
    err.downcast_ref::<Fault>().map_or(1, |fault| fault.kind.exit_code())
}

async fn serve(args: &Args) -> Result<()> {
    // Signals are caught before anything is made, so that an early SIGTERM is not lost.
    let mut term = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    let mut int = signal(SignalKind::interrupt()).context("listen for SIGINT")?;
    let mut hup = signal(SignalKind::hangup()).context("listen for SIGHUP")?;
    let service = wiring::service(args).await?;
    if args.export_traits {
        print!("{}", service.trait_export().await?);
        return Ok(());
    }
    let open = service.recover().context("take up open operations")?;
    tokio::spawn(service.clone().follow());
    let bus = wiring::bus(args, &service).await?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), open, uri = %service.libvirt_uri, "serving");
    let mut status = systemd::Status::default();
    let (first_look, mut changes) = (service.first_look(), service.changes());
    tokio::pin!(first_look);
    let mut ready = false;
    let mut watchdog = systemd::Watchdog::from_env();
    loop {
        tokio::select! {
            _ = term.recv() => break,
            _ = int.recv() => break,
            _ = hup.recv() => reload(&service).await,
            () = watchdog.due() => systemd::alive(),
            () = &mut first_look, if !ready => {
                ready = true;
                tracing::info!("ready");
                status.ready(&line(&service));
            }
            // Missed ones are made up for by the line of this moment.
            _ = changes.recv() => status.show(&line(&service)),
            () = bus.closed() => anyhow::bail!("the bus connection was lost"),
        }
    }
    stop(&service).await;
    Ok(())
}

async fn reload(service: &Service) {
    systemd::reloading();
    match service.reload().await {
        Ok(findings) => tracing::info!(warnings = findings.len(), "configuration reloaded"),
        Err(fault) => tracing::error!("the running configuration stays in force: {fault}"),
    }
    systemd::Status::default().ready(&line(service));
}

/// What systemd shows of the service.
fn line(service: &Service) -> String {
    let jobs = match service.jobs_running() {
        0 => String::new(),
        n => format!(", {n} operations under way"),
    };
    let restored = service.restored().map_or_else(String::new, |view| format!(", devices: {view}"));
    format!("serving{jobs}{restored}")
}

async fn stop(service: &Service) {
    systemd::stopping();
    service.go_down();
    let deadline = Instant::now() + STOP_DEADLINE;
    let mut changes = service.changes();
    while service.jobs_running() > 0 && Instant::now() < deadline {
        let _ = tokio::time::timeout_at(deadline, changes.recv()).await;
    }
    tracing::info!(left = service.jobs_running(), "stopped");
}
