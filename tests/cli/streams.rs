//! `monitor`, readers that go away, and terminals.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;

use mdevirt::model::OpKind;
use mdevirt::service::api::Change;
use serde_json::json;

use crate::bus::{Fake, Pace, PrivateBus};
use crate::{ctl, json, on_bus};

const INSTANCE: &str = "11111111-2222-4333-8444-555555555555";

/// A `mdevirtctl monitor`; it ends with the value.
struct Monitor {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Monitor {
    /// One that listens: it asks for the status once it does.
    async fn start(bus: &PrivateBus, service: &Arc<Fake>, args: &[&str]) -> Self {
        let mut heard = service.listen();
        let mut child = on_bus(bus, &[&["monitor"], args].concat()).spawn().unwrap();
        while heard.recv().await.unwrap() != "status" {}
        let stdout = Some(BufReader::new(child.stdout.take().unwrap()));
        Self { child, stdout }
    }

    async fn line(&mut self) -> String {
        let mut stdout = self.stdout.take().unwrap();
        let reading = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            (stdout, line)
        });
        let Ok(read) = tokio::time::timeout(std::time::Duration::from_secs(120), reading).await else {
            self.child.kill().unwrap();
            panic!("no line came");
        };
        let (stdout, line) = read.unwrap();
        self.stdout = Some(stdout);
        line
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn monitor_prints_each_signal_at_once() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let mut monitor = Monitor::start(&bus, &service, &["--json"]).await;
    let id = service.begin(OpKind::Start, INSTANCE.parse().unwrap());
    let path = mdevirt::dbus::path::of_job(id).to_string();
    let added = json!({"signal": "InterfacesAdded", "path": path, "interfaces": ["org.mdevirt1.Job"]});
    assert_eq!(json(&monitor.line().await), added);
    assert_eq!(json(&monitor.line().await), json!({"signal": "JobNew", "id": id, "path": path}));
    service.end(id, mdevirt::model::SagaState::Done, json!({}));
    let changed = json(&monitor.line().await);
    assert_eq!((&changed["path"], &changed["changed"]["State"]), (&json!(path), &json!("done")));
    let removed = json!({"signal": "JobRemoved", "id": id, "path": path, "result": "done"});
    assert_eq!(json(&monitor.line().await), removed);
    service.say(Change::Claim(INSTANCE.parse().unwrap()));
    assert_eq!(json(&monitor.line().await), json!({"signal": "ClaimChanged", "instance": INSTANCE}));
}

#[tokio::test]
async fn monitor_prints_a_drift_on_one_line() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let (mut text, mut records) =
        (Monitor::start(&bus, &service, &[]).await, Monitor::start(&bus, &service, &["--json"]).await);
    let word = mdevirt::model::Word::mdev_type("GRID T4-2Q");
    let (was, now) = ("GRID T4-2Q".to_owned(), "GRID T4-4Q\nDaemonGone".to_owned());
    service.say(Change::Drift { word, parent: "0000:85:00.0".parse().unwrap(), was, now });
    let told = "type GRID T4-2Q on 0000:85:00.0 was GRID T4-2Q, and is GRID T4-4Q\nDaemonGone now";
    assert_eq!(text.line().await, format!("DriftDetected {}\n", told.replace('\n', "\\n")));
    let want =
        json!({"signal": "DriftDetected", "word": "GRID T4-2Q", "parent": "0000:85:00.0", "text": told});
    assert_eq!(json(&records.line().await), want);
}

#[tokio::test]
async fn monitor_outlives_the_daemon_and_says_so() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let server = bus.serve(&service).await;
    let mut monitor = Monitor::start(&bus, &service, &[]).await;
    server.stop().await.unwrap();
    assert_eq!(monitor.line().await, "DaemonGone\n");
    let _second = bus.serve(&service).await;
    assert_eq!(monitor.line().await, "DaemonThere\n");
    service.say(Change::Inventory);
    assert_eq!(monitor.line().await, "InventoryChanged\n");
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_it_quietly() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let mut monitor = Monitor::start(&bus, &service, &[]).await;
    drop(monitor.stdout.take());
    service.say(Change::Claim(INSTANCE.parse().unwrap()));
    let ended = tokio::task::spawn_blocking(move || {
        let mut said = String::new();
        monitor.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (monitor.child.wait().unwrap().code(), said)
    });
    assert_eq!(ended.await.unwrap(), (Some(0), String::new()));
}

#[tokio::test]
async fn an_answer_that_cannot_be_written_is_a_failure() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve(&service).await;
    let mut command = on_bus(&bus, &["inventory"]);
    command.stdout(Stdio::from(std::fs::File::create("/dev/full").unwrap()));
    let ran = crate::run(command, "").await;
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.starts_with("mdevirtctl: cannot print the answer"), "{}", ran.stderr);
}

#[tokio::test]
async fn outside_texts_cannot_move_the_cursor() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let odd = "a\u{1b}[2J\r\u{202e}b";
    {
        let mut world = service.world();
        world.instances[0].name = odd.to_owned();
        world.devices[0].name = odd.to_owned();
        world.devices[0].status = odd.to_owned();
        world.status.findings[0].text = odd.to_owned();
    }
    let _server = bus.serve(&service).await;
    for args in [&["instance", "list"][..], &["device", "list"], &["status"], &["instance", "show", odd]] {
        let ran = ctl(&bus, args).await;
        assert!(ran.stdout.contains("a\\u{1b}[2J\\r\\u{202e}b"), "{args:?}: {}", ran.stdout);
        assert!(!ran.stdout.contains(['\u{1b}', '\r', '\u{202e}']), "{args:?}");
    }
    let shown = ctl(&bus, &["instance", "list", "--json"]).await;
    assert_eq!(json(&shown.stdout)[0]["name"], odd);
}
