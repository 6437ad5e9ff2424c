//! `doctor`: what has to be so for this host to serve slices, each failure with a fix.

use std::path::Path;

use serde::Serialize;

use super::output::{Output, Show, Stop};
use super::table::Table;
use crate::catalog::TraitState;
use crate::dbus::Client;
use crate::model::{Fault, FaultKind};
use crate::service::api::{StatusView, TraitView};

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    check: &'static str,
    ok: bool,
    text: String,
    /// What to do; empty if it is in order.
    fix: String,
}

impl Check {
    fn of(check: &'static str, ok: bool, text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { check, ok, text: text.into(), fix: if ok { String::new() } else { fix.into() } }
    }
}

impl Show for Vec<Check> {
    fn text(&self) -> String {
        let mut table = Table::new(&["CHECK", "", "FOUND", "WHAT TO DO"]);
        for one in self {
            let mark = if one.ok { "ok" } else { "FAILED" };
            table.row(vec![one.check.to_owned(), mark.to_owned(), one.text.clone(), one.fix.clone()]);
        }
        table.to_string()
    }
}

/// Looks at everything and prints it.
///
/// # Errors
/// `HostRefused` if anything is not in order; `HostUnreachable` without the daemon.
pub(super) async fn doctor(client: &Client, output: Output) -> Result<(), Stop> {
    let status = client.status().await?;
    let mut checks = of_daemon(&status);
    if !status.simulated {
        checks.push(mdevctl());
    }
    checks.extend(of_traits(&client.traits().await?));
    output.print(&checks)?;
    let failed = checks.iter().filter(|check| !check.ok).count();
    match failed {
        0 => Ok(()),
        n => Err(Fault::new(FaultKind::HostRefused, format!("{n} of {} checks failed", checks.len())).into()),
    }
}

fn of_daemon(status: &StatusView) -> Vec<Check> {
    let findings: Vec<&str> = status.findings.iter().map(|finding| finding.about.as_str()).collect();
    vec![
        Check::of("daemon", true, format!("mdevirtd {} answers", status.version), ""),
        Check::of(
            "libvirt",
            status.connected,
            &status.libvirt_uri,
            "start libvirtd (or virtqemud and virtnodedevd); mdevirtd connects by itself",
        ),
        Check::of(
            "providers",
            status.providers > 0,
            format!("{} with room", status.providers),
            "enable types in /etc/mdevirt/mdevirt.toml; `mdevirtctl type list` shows what the hardware offers",
        ),
        Check::of(
            "jobs",
            status.jobs_stuck == 0,
            format!("{} stuck", status.jobs_stuck),
            "look at `mdevirtctl job list`, mend the cause, then destroy or release the instance",
        ),
        Check::of(
            "findings",
            findings.is_empty(),
            if findings.is_empty() { "none".to_owned() } else { findings.join(", ") },
            "each says what to do: `mdevirtctl status`",
        ),
    ]
}

/// libvirt runs it to define devices, from the path it was built with.
fn mdevctl() -> Check {
    let places = ["/usr/sbin/mdevctl", "/usr/bin/mdevctl", "/sbin/mdevctl", "/usr/local/sbin/mdevctl"];
    let found = places.into_iter().find(|path| Path::new(path).exists());
    Check::of(
        "mdevctl",
        found.is_some(),
        found.unwrap_or("not found"),
        "install the package mdevctl, where libvirtd runs",
    )
}

fn of_traits(traits: &[TraitView]) -> Vec<Check> {
    let of = |one: &TraitView| {
        let ok = one.state == TraitState::Ok;
        let name = one.name.to_string();
        let fix = match one.state {
            TraitState::Drift => format!("mdevirtctl trait accept {name} --reason ..., or mend the driver"),
            TraitState::Ambiguous => format!("narrow {name} in traits.toml"),
            TraitState::Unavailable | TraitState::Ok => {
                format!("bind {name} to a type that this host offers")
            }
        };
        let text = if ok { format!("{name} is {}", one.type_name) } else { one.reason.clone() };
        Check::of("trait", ok, text, fix)
    };
    traits.iter().map(of).collect()
}
