//! The built `mdevirtctl hook qemu`, as libvirt runs it, with a daemon that is good, dead, slow, hanging or new.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

#[path = "bus/mod.rs"]
mod bus;

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bus::{Fake, Pace, PrivateBus};
use mdevirt::model::{Fault, FaultKind};

const OURS: &str = "<domain><metadata><m:vgpu xmlns:m='urn:mdevirt:domain:1' flavor='resources:VGPU=1'/></metadata>before</domain>";
const DEVICE: &str = "<domain><hostdev mode='subsystem' type='mdev' model='vfio-pci'/>before</domain>";
const NOBODY: &str = "<domain type='kvm'><name>mail</name></domain>";

/// Nothing listens there.
const NO_BUS: &str = "unix:path=/nonexistent/bus";

/// What libvirt gets.
#[derive(Debug, PartialEq)]
struct Ran {
    stdout: String,
    stderr: String,
    code: i32,
}

/// Runs the hook beside whatever goes on here. The budget is that of the configuration's upper bound but where a test sets it.
async fn hook(address: &str, arguments: [&str; 4], xml: &str, budget_ms: u32) -> Ran {
    #[allow(clippy::disallowed_methods, reason = "tests start the programs they test")]
    let mut command = Command::new(env!("CARGO_BIN_EXE_mdevirtctl"));
    command.args(["--address", address, "hook", "qemu"]).args(arguments).env_clear();
    command.env("MDEVIRT_HOOK_BUDGET_MS", budget_ms.to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let xml = xml.to_owned();
    let running = move || {
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // libvirt does not mind a hook that does not read, either.
        let writing = std::thread::spawn(move || drop(stdin.write_all(xml.as_bytes())));
        let output = child.wait_with_output().unwrap();
        writing.join().unwrap();
        Ran {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().expect("it ended by itself"),
        }
    };
    tokio::task::spawn_blocking(running).await.unwrap()
}

/// Longer than any test waits.
const PATIENT: u32 = 60_000;

/// What the service was asked for by hooks.
fn hooks(service: &Fake) -> Vec<String> {
    service.world().asked.iter().filter(|line| line.starts_with("hook ")).cloned().collect()
}

fn silent() -> Ran {
    Ran { stdout: String::new(), stderr: String::new(), code: 0 }
}

#[tokio::test]
async fn a_good_daemon_is_asked_where_a_guest_may_be_refused() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve(&service).await;
    for xml in [OURS, DEVICE] {
        assert_eq!(hook(bus.address(), ["web-01", "prepare", "begin", "-"], xml, PATIENT).await, silent());
        for operation in ["migrate", "restore"] {
            let ran = hook(bus.address(), ["web-01", operation, "begin", "-"], xml, PATIENT).await;
            assert_eq!(ran, Ran { stdout: xml.replace("before", "after"), ..silent() });
        }
    }
    let asked = hooks(&service);
    assert_eq!(asked.len(), 6, "{asked:?}");
    assert!(asked[0].starts_with("hook \"web-01\" prepare begin - "), "{asked:?}");
}

#[tokio::test]
async fn a_refusal_is_a_line_and_a_code() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve(&service).await;
    service.world().fault = Some(Fault::new(FaultKind::NoCapacity, "no parent fits:\n0000:3b:00.0 is full"));
    let ran = hook(bus.address(), ["web-01", "prepare", "begin", "-"], OURS, PATIENT).await;
    assert_eq!(
        ran,
        Ran { stderr: "mdevirt: no parent fits: 0000:3b:00.0 is full\n".into(), code: 3, ..silent() }
    );
    // The guest is gone: whatever the daemon says, libvirt hears nothing.
    assert_eq!(hook(bus.address(), ["web-01", "release", "end", "-"], OURS, PATIENT).await, silent());
}

#[tokio::test]
async fn without_a_daemon_our_guests_do_not_start_and_others_do() {
    let bus = PrivateBus::start();
    for address in [bus.address(), NO_BUS] {
        let ours = hook(address, ["web-01", "prepare", "begin", "-"], OURS, PATIENT).await;
        assert!(ours.code != 0 && ours.stderr.contains("systemctl status mdevirtd"), "{ours:?}");
        assert_eq!(ours.stderr.lines().count(), 1, "{ours:?}");
        let other = hook(address, ["web-01", "prepare", "begin", "-"], DEVICE, PATIENT).await;
        assert!(
            other.code == 0 && other.stdout.is_empty() && other.stderr.contains("left alone"),
            "{other:?}"
        );
        for operation in ["start", "started", "stopped", "release", "reconnect", "of-a-later-libvirt"] {
            let ran = hook(address, ["web-01", operation, "begin", "-"], OURS, PATIENT).await;
            assert_eq!(ran, silent(), "{operation}");
        }
    }
}

/// An operator has stopped it: the bus would start it for whoever asks.
#[tokio::test]
async fn a_stopped_daemon_is_started_for_a_guest_of_ours_alone() {
    let bus = PrivateBus::start();
    let (service, started) = (bus.dir().join("org.mdevirt1.service"), bus.dir().join("started"));
    let exec = format!(
        "[D-BUS Service]\nName=org.mdevirt1\nExec=/bin/sh -c \"touch {}; exit 1\"\n",
        started.display()
    );
    std::fs::write(&service, exec).unwrap();
    let connection = bus.connect().await;
    zbus::fdo::DBusProxy::new(&connection).await.unwrap().reload_config().await.unwrap();

    hook(bus.address(), ["web-01", "prepare", "begin", "-"], DEVICE, PATIENT).await;
    hook(bus.address(), ["web-01", "release", "end", "-"], DEVICE, PATIENT).await;
    hook(bus.address(), ["web-01", "release", "end", "-"], OURS, PATIENT).await;
    assert!(!started.exists());
    let ran = hook(bus.address(), ["web-01", "prepare", "begin", "-"], OURS, PATIENT).await;
    assert!(started.exists(), "{ran:?}");
    assert!(
        ran.code == 8 && ran.stderr.contains("systemctl status mdevirtd"),
        "it ended without a word: {ran:?}"
    );
}

#[tokio::test]
async fn a_guest_that_cannot_concern_us_needs_no_bus() {
    for operation in ["prepare", "migrate", "restore", "release"] {
        assert_eq!(hook(NO_BUS, ["mail", operation, "begin", "-"], NOBODY, PATIENT).await, silent());
    }
    assert_eq!(hook(NO_BUS, ["mail", "prepare", "begin", "-"], "", PATIENT).await, silent());
}

#[tokio::test]
async fn a_daemon_that_hangs_is_waited_for_as_long_as_configured() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve(&service).await;
    let hanging = OURS.replace("before", "<!-- hang -->");
    let began = Instant::now();
    let ran = hook(bus.address(), ["web-01", "prepare", "begin", "-"], &hanging, 300).await;
    assert!(ran.code == 8 && ran.stderr.contains("within 300 ms"), "{ran:?}");
    assert!(began.elapsed() >= Duration::from_millis(300));
    let slow = OURS.replace("before", "<!-- slow -->");
    assert_eq!(hook(bus.address(), ["web-01", "prepare", "begin", "-"], &slow, PATIENT).await, silent());
}

#[tokio::test]
async fn a_daemon_that_restarts_is_found_again() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    for _ in 0..2 {
        let server = bus.serve(&service).await;
        assert_eq!(hook(bus.address(), ["web-01", "prepare", "begin", "-"], OURS, PATIENT).await, silent());
        server.stop().await.unwrap();
        let gone = hook(bus.address(), ["web-01", "prepare", "begin", "-"], OURS, PATIENT).await;
        assert_ne!(gone.code, 0, "{gone:?}");
    }
}

#[tokio::test]
async fn a_megabyte_comes_and_goes_whole() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve(&service).await;
    let large = OURS.replace("before", &format!("before{}", "x".repeat(1 << 20)));
    let ran = hook(bus.address(), ["web-01", "migrate", "begin", "-"], &large, PATIENT).await;
    assert_eq!(ran.stdout.len(), large.len() - 1, "{}", ran.stderr);
    // One that no domain is as large as is not taken for anything.
    let too_large = OURS.replace("before", &"x".repeat(5 << 20));
    let ran = hook(bus.address(), ["web-01", "prepare", "begin", "-"], &too_large, PATIENT).await;
    assert!(ran.code == 2 && ran.stdout.is_empty(), "{}", ran.stderr);
}

#[tokio::test]
async fn names_are_data() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve(&service).await;
    let long = "x".repeat(4096);
    let names = ["--help", "-", "$(touch pwned)", "..", "a\nb", "`id`", "\u{202e}", long.as_str()];
    for name in names {
        assert_eq!(
            hook(bus.address(), [name, "prepare", "begin", "-"], OURS, PATIENT).await,
            silent(),
            "{name:?}"
        );
    }
    let asked = hooks(&service);
    for (name, line) in names.iter().zip(&asked) {
        assert!(line.starts_with(&format!("hook {name:?} prepare")), "{line}");
    }
    let ran = hook(bus.address(), ["", "prepare", "begin", "-"], OURS, PATIENT).await;
    assert_eq!(ran.code, 2, "libvirt has no guest without a name: {ran:?}");
}
