//! The built mdevirtctl against a daemon on a private bus.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

#[path = "../bus/mod.rs"]
mod bus;

mod failures;
mod golden;
mod help;
mod local;
mod operations;
mod streams;
mod traits;

use std::io::Write;
use std::process::{Command, Output, Stdio};

use bus::PrivateBus;

/// mdevirtctl with nothing of the surroundings but a search path.
fn program(args: &[&str]) -> Command {
    #[allow(clippy::disallowed_methods, reason = "tests start the programs they test")]
    let mut command = Command::new(env!("CARGO_BIN_EXE_mdevirtctl"));
    command.args(args).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// mdevirtctl for the daemon on this bus.
fn on_bus(bus: &PrivateBus, args: &[&str]) -> Command {
    let mut command = program(args);
    command.args(["--address", bus.address()]);
    command
}

/// What one run left.
#[derive(Debug, PartialEq)]
struct Ran {
    stdout: String,
    stderr: String,
    code: i32,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().expect("it ended by itself"),
        }
    }
}

/// Runs it beside the daemon, which lives on this runtime.
async fn run(mut command: Command, input: &'static str) -> Ran {
    let running = move || {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        // A program that does not read its input has ended; then the pipe is closed and that is fine.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        Ran::from(child.wait_with_output().unwrap())
    };
    tokio::task::spawn_blocking(running).await.unwrap()
}

async fn ctl(bus: &PrivateBus, args: &[&str]) -> Ran {
    run(on_bus(bus, args), "<domain/>").await
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|err| panic!("{err}: {text}"))
}
