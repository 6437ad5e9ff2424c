//! `doctor`: what has to be so for this host to serve slices, each failure with a fix.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use super::output::{Output, Show, Stop};
use super::table::{Table, printable};
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
        let mut table = Table::new(&["CHECK", "RESULT", "FOUND"]);
        for one in self {
            let result = if one.ok { "ok" } else { "FAILED" };
            table.row(vec![one.check.to_owned(), result.to_owned(), one.text.clone()]);
        }
        // Below the table, since sentences would make a column of it too wide to read.
        let fixes: String = self
            .iter()
            .filter(|one| !one.ok)
            .map(|one| format!("{}: {}\n", one.check, printable(&one.fix)))
            .collect();
        if fixes.is_empty() { table.to_string() } else { format!("{table}\nWhat to do:\n{fixes}") }
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
    let findings: BTreeSet<&str> = status.findings.iter().map(|finding| finding.about.as_str()).collect();
    let link = if status.connected { "connected" } else { "not reachable" };
    vec![
        Check::of("daemon", true, format!("mdevirtd {} answers", status.version), ""),
        Check::of(
            "libvirt",
            status.connected,
            format!("{} ({link})", status.libvirt_uri),
            "start libvirtd (or virtqemud and virtnodedevd); mdevirtd connects by itself",
        ),
        Check::of(
            "providers",
            status.providers > 0,
            status.providers.to_string(),
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
            if findings.is_empty() {
                "none".to_owned()
            } else {
                findings.into_iter().collect::<Vec<_>>().join(", ")
            },
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
        let TraitView { name, reason, .. } = one;
        let (found, fix) = match one.state {
            TraitState::Ok => (one.type_name.as_str(), String::new()),
            TraitState::Drift => ("drift", format!("{reason}; or mend the driver")),
            TraitState::Ambiguous => ("ambiguous", reason.clone()),
            TraitState::Unavailable => {
                ("unavailable", format!("{reason}; bind it to a type that is offered"))
            }
        };
        Check::of("trait", one.state == TraitState::Ok, format!("{name}: {found}"), fix)
    };
    traits.iter().map(of).collect()
}
