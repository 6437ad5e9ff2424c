//! libvirt's qemu hook (rank 6): what `mdevirtctl hook qemu NAME OPERATION SUB-OPERATION EXTRA` answers.
//!
//! 1. libvirt waits for it: it never calls libvirt, and ends within the time of `[hook] start_budget_ms`.
//! 2. A guest that cannot concern us passes at once: no bus, no daemon, nothing printed.
//! 3. Only where libvirt asks before a guest runs (`prepare`, `migrate`, `restore`) can the answer be no. At all other points the
//!    guest runs already or is gone, and libvirt would kill it for a failure; the daemon follows those by libvirt's events.
//! 4. A name is a name: `--help` and `$(x)` are guests like any other, and no part of it is interpreted.

mod decide;
mod scan;

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use crate::dbus::{Bus, Client};
use crate::model::{Fault, FaultKind};
use crate::service::api::HookCall;
use crate::xml::MAX_BYTES;
use decide::{Answer, decide};
use scan::{Concern, concern};

/// Where the budget is configured.
const CONFIG: &str = "/etc/mdevirt/mdevirt.toml";

/// Overrides the configured budget, in milliseconds; for trying it out.
const BUDGET: &str = "MDEVIRT_HOOK_BUDGET_MS";

/// Reads libvirt's call and standard input, and answers; `None` if that is no call of a hook.
pub fn qemu(arguments: &[OsString], bus: &Bus) -> Option<ExitCode> {
    let [name, operation, sub_operation, extra] = arguments else { return None };
    let word = |text: &OsString| text.to_string_lossy().into_owned();
    let call = HookCall {
        name: word(name),
        operation: word(operation),
        sub_operation: word(sub_operation),
        extra: word(extra),
        domain_xml: String::new(),
    };
    let answer = match call.operation.as_str() {
        // A start that came to nothing has no event of libvirt's.
        "release" => {
            show_the_daemon(call, bus);
            Answer::default()
        }
        operation if decide::may_refuse(operation) => show_the_daemon(call, bus),
        _ => Answer::default(),
    };
    Some(give(&answer))
}

fn show_the_daemon(call: HookCall, bus: &Bus) -> Answer {
    let mut bytes = Vec::new();
    let read =
        io::stdin().lock().take(u64::try_from(MAX_BYTES).unwrap_or(u64::MAX) + 1).read_to_end(&mut bytes);
    let concern = concern(&bytes);
    if concern == Concern::Nobody {
        return Answer::default();
    }
    let operation = call.operation.clone();
    let outcome = match (read, String::from_utf8(bytes)) {
        (Ok(_), Ok(domain_xml)) => {
            // A daemon that somebody has stopped is started for a guest of ours that is to run, and for nothing else.
            let starts_it = concern == Concern::Ours && decide::may_refuse(&operation);
            ask(&HookCall { domain_xml, ..call }, bus, starts_it)
        }
        (Err(err), _) => Err(Fault::new(FaultKind::InvalidDomainXml, format!("read the domain XML: {err}"))),
        (Ok(_), Err(_)) => {
            Err(Fault::new(FaultKind::InvalidDomainXml, "the domain XML is not text in UTF-8"))
        }
    };
    decide(&operation, concern, outcome)
}

/// The daemon's answer, within the budget.
fn ask(call: &HookCall, bus: &Bus, starts_it: bool) -> Result<String, Fault> {
    let budget = budget();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|err| Fault::new(FaultKind::Internal, format!("cannot start: {err}")))?;
    // Connection and answer share the budget, which is measured here alone.
    let asked = async {
        let client = Client::connect(bus, budget * 2).await?;
        if !starts_it && !client.is_there().await? {
            return Err(Fault::new(FaultKind::HostUnreachable, "it is not running"));
        }
        client.hook(call).await
    };
    let late = || Fault::new(FaultKind::Timeout, format!("no answer within {} ms", budget.as_millis()));
    runtime.block_on(async { tokio::time::timeout(budget, asked).await.unwrap_or_else(|_| Err(late())) })
}

/// A configuration that cannot be read keeps no guest from its start.
fn budget() -> Duration {
    let given = std::env::var(BUDGET).ok().and_then(|text| text.parse().ok());
    let configured = || {
        let loaded = crate::config::load(Path::new(CONFIG));
        loaded.map_or_else(|_| crate::config::Config::default(), |loaded| loaded.config).hook_start_budget_ms
    };
    Duration::from_millis(u64::from(given.unwrap_or_else(configured)))
}

/// Prints the answer. An XML that libvirt does not get must not pass for "unchanged".
fn give(answer: &Answer) -> ExitCode {
    if !answer.line.is_empty() {
        // A reader that is gone changes nothing about the answer.
        let _ = writeln!(io::stderr(), "mdevirt: {}", answer.line);
    }
    let mut stdout = io::stdout().lock();
    match stdout.write_all(answer.domain_xml.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => ExitCode::from(answer.code),
        Err(err) => {
            let _ = writeln!(io::stderr(), "mdevirt: print the domain XML: {err}");
            ExitCode::from(FaultKind::Internal.exit_code())
        }
    }
}
