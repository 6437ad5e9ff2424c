//! The daemon: wiring, boot order, systemd (rank 7, the only room that names concrete types).
//!
//! Boot order: arguments, log, configuration (a bad one ends the start), store, host, open sagas taken up, bus name,
//! `READY=1`. Shutdown is a crash with manners: sagas stop after the step at work and the next start takes them up.

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
    let open = service.recover().context("take up open operations")?;
    tokio::spawn(service.clone().follow());
    let bus = wiring::bus(args, &service).await?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), open, uri = %service.libvirt_uri, "ready");
    systemd::ready(open);
    let mut watchdog = systemd::Watchdog::from_env();
    loop {
        tokio::select! {
            _ = term.recv() => break,
            _ = int.recv() => break,
            _ = hup.recv() => reload(&service).await,
            () = watchdog.due() => systemd::alive(),
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
    systemd::ready(service.jobs_running());
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
