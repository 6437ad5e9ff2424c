//! Where log lines go.

use std::io::IsTerminal;

use anyhow::{Context, Result};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

/// Names what is logged: a level, or `target=level` pairs with commas between them.
const LEVELS: &str = "MDEVIRT_LOG";

use super::args::LogFormat;

/// Starts logging; `MDEVIRT_LOG` takes the place of the level `info`.
pub(super) fn start(format: LogFormat) -> Result<()> {
    let levels = std::env::var(LEVELS).unwrap_or_else(|_| "info".to_owned());
    let filter: Targets = levels.parse().with_context(|| format!("read {LEVELS}=`{levels}`"))?;
    let layer: Box<dyn Layer<Registry> + Send + Sync> = match resolved(format) {
        LogFormat::Journal => Box::new(tracing_journald::layer().context("reach the systemd journal")?),
        LogFormat::Json => Box::new(tracing_subscriber::fmt::layer().json().with_writer(std::io::stderr)),
        LogFormat::Text | LogFormat::Auto => {
            let colour = std::io::stderr().is_terminal();
            Box::new(tracing_subscriber::fmt::layer().with_ansi(colour).with_writer(std::io::stderr))
        }
    };
    tracing_subscriber::registry().with(layer.with_filter(filter)).try_init().context("start logging")
}

fn resolved(format: LogFormat) -> LogFormat {
    // systemd sets the variable for services whose output goes to the journal.
    let below_systemd = std::env::var_os("JOURNAL_STREAM").is_some();
    if format == LogFormat::Auto && below_systemd { LogFormat::Journal } else { format }
}
