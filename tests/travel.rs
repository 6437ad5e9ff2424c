//! The built mdevirtctl moves an instance between two hosts: each a real service on a bus of its own, reached directly or
//! through systemd's bridge, with a program in the place of ssh.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "a test program has no outside and fails by panicking"
)]

#[path = "bus/mod.rs"]
mod bus;
#[path = "travel/live.rs"]
mod live;
#[path = "world/mod.rs"]
mod world;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use bus::{Everybody, PrivateBus};
use mdevirt::dbus::{self, Server};
use mdevirt::saga::Action;
use mdevirt::service::api::{InstanceView, UseCases};
use world::{World, domain_xml};

const VGPU: &str = "resources:VGPU=1";

/// A host with its daemon.
struct Site {
    world: World,
    bus: PrivateBus,
    _server: Server,
}

impl Site {
    async fn new() -> Self {
        let (world, bus) = (World::new("two-m60").await, PrivateBus::start());
        let service = Arc::new(world.service().clone());
        let server = dbus::serve(bus.connect().await, service, Arc::new(Everybody)).await.unwrap();
        Self { world, bus, _server: server }
    }

    async fn instances(&self) -> Vec<InstanceView> {
        self.world.service().instances().await.unwrap()
    }

    /// `running in-use primary`, of the one instance; empty if there is none.
    async fn picture(&self) -> String {
        let mut lines = Vec::new();
        for view in self.instances().await {
            let runs = match self.world.running(view.uuid).await {
                Some(true) => "running",
                Some(false) => "off",
                None => "no domain",
            };
            let claims = view.claims.iter().map(|c| format!("{} {}", c.state, c.role));
            let moving = view.moving.unwrap_or_default();
            lines.push(format!("{runs}: {}; {moving}", claims.collect::<Vec<_>>().join(", ")));
        }
        assert_eq!(
            self.world.scan().await.mdevs.len(),
            self.instances().await.iter().map(|i| i.claims.len()).sum::<usize>()
        );
        lines.join("\n")
    }

    /// Runs mdevirtctl for this host; its output, or its failure.
    async fn ctl(&self, args: &[&str]) -> Result<String, String> {
        run(args, &["--address", self.bus.address()], None).await
    }

    async fn spawned() -> Self {
        let site = Self::new().await;
        let file = site.bus.dir().join("web-01.xml");
        std::fs::write(&file, domain_xml("web-01")).unwrap();
        site.ctl(&["spawn", file.to_str().unwrap(), "--flavor", VGPU]).await.unwrap();
        site
    }
}

async fn run(args: &[&str], global: &[&str], ssh: Option<&PathBuf>) -> Result<String, String> {
    #[allow(clippy::disallowed_methods, reason = "tests start the programs they test")]
    let mut command = Command::new(env!("CARGO_BIN_EXE_mdevirtctl"));
    command.args(args).args(global).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.envs(ssh.map(|ssh| ("SYSTEMD_SSH", ssh)));
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    match output.status.code() {
        Some(0) => Ok(text(output.stdout)),
        code => Err(format!("{code:?}: {}", text(output.stderr))),
    }
}

const RUNS: &str = "running: in-use primary; ";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_confirmed_back_and_reverted() {
    let (a, b) = (Site::spawned().await, Site::new().await);
    let said = a.ctl(&["migrate", "web-01", "--to", b.bus.address()]).await.unwrap();
    assert!(said.contains("migration finished of instance web-01") && said.contains("in-use"), "{said}");
    assert_eq!(a.picture().await, "off: parked outgoing; out prepared");
    assert_eq!(b.picture().await, "running: in-use primary; in finished");
    a.ctl(&["confirm", "web-01"]).await.unwrap();
    assert_eq!((a.picture().await.as_str(), b.picture().await.as_str()), ("", RUNS));

    b.ctl(&["migrate", "web-01", "--to", a.bus.address()]).await.unwrap();
    b.ctl(&["revert", "web-01"]).await.unwrap();
    assert_eq!((a.picture().await.as_str(), b.picture().await.as_str()), ("", RUNS));

    b.ctl(&["migrate", "web-01", "--confirm", "--to", a.bus.address()]).await.unwrap();
    assert_eq!((a.picture().await.as_str(), b.picture().await.as_str()), (RUNS, ""));
}

/// systemctl's way: ssh, and the bridge on the other side. What stands for ssh gets the arguments that ssh would get.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_ssh() {
    let (a, b) = (Site::spawned().await, Site::new().await);
    let ssh = a.bus.dir().join("ssh");
    let text = format!(
        "#!/bin/sh\n[ \"$*\" = \"-xT -- $3 systemd-stdio-bridge\" ] || exit 9\ncase $3 in\nroot@a) bus={};;\nb) bus={};;\n*) exit 255;;\nesac\n\
         exec systemd-stdio-bridge --bus-path=\"$bus\"\n",
        a.bus.address(),
        b.bus.address()
    );
    std::fs::write(&ssh, text).unwrap();
    std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).unwrap();
    let via = async |args: &[&str], host: &str| run(args, &["--host", host], Some(&ssh)).await;
    let said = via(&["migrate", "web-01", "--to", "b", "--confirm"], "root@a").await.unwrap();
    assert!(said.starts_with("migration confirmed of instance web-01 on b\n"), "{said}");
    assert_eq!((a.picture().await.as_str(), b.picture().await.as_str()), ("", RUNS));
    let lost = via(&["migrate", "web-01", "--to", "nowhere"], "b").await.unwrap_err();
    assert!(lost.starts_with("Some(8): ") && lost.contains("the system bus of nowhere"), "{lost}");
    assert_eq!((a.picture().await.as_str(), b.picture().await.as_str()), ("", RUNS));
}

/// A job of either side fails: the instance is on the source, as it was, and nothing is on the target.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_on_the_way_brings_it_back() {
    let points = [
        "migrate-prepare.make_device.0.before_effect",
        "migrate-finish.define_domain.after_effect",
        "migrate-finish.start_domain.before_effect",
    ];
    for point in points {
        let (a, b) = (Site::spawned().await, Site::new().await);
        let before = a.instances().await;
        b.world.points.arm(point, Action::Error, Some(1));
        let said = a.ctl(&["migrate", "web-01", "--to", b.bus.address()]).await.unwrap_err();
        assert!(said.contains("the instance is as it was"), "{point}: {said}");
        assert_eq!((a.picture().await.as_str(), b.picture().await.as_str()), (RUNS, ""), "{point}");
        assert_eq!(a.instances().await, before, "{point}");
    }
}

/// The program dies between any two of its calls: given again, it goes on; or the move is reverted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interrupted_anywhere_and_given_again() {
    for ends_after in 1..=3 {
        for revert in [false, true] {
            let (a, b) = (Site::spawned().await, Site::new().await);
            interrupted(&a, &b, ends_after).await;
            let what = format!("after {ends_after}, revert {revert}");
            if revert {
                a.ctl(&["revert", "web-01"]).await.unwrap();
                assert_eq!((a.picture().await.as_str(), b.picture().await.as_str()), (RUNS, ""), "{what}");
            } else {
                a.ctl(&["migrate", "web-01", "--to", b.bus.address()]).await.unwrap();
                a.ctl(&["confirm", "web-01"]).await.unwrap();
                assert_eq!((a.picture().await.as_str(), b.picture().await.as_str()), ("", RUNS), "{what}");
            }
        }
    }
}

/// The first operations of a migration, as the program gives them.
async fn interrupted(a: &Site, b: &Site, operations: u32) {
    use mdevirt::model::OpKind;
    use mdevirt::service::api::{Operate, OperateWith, PrepareRequest};
    let peer = Some(b.bus.address().to_owned());
    let with = OperateWith { peer, ..OperateWith::default() };
    let begin = Operate { with, ..Operate::plain(OpKind::MigrateBegin, "web-01", None) };
    a.world.done(a.world.service().operate(begin).await).await;
    if operations >= 2 {
        let document = a.world.service().export_instance("web-01").await.unwrap();
        let request = PrepareRequest { document, ..PrepareRequest::default() };
        b.world.done(b.world.service().migrate_prepare(request).await).await;
    }
    if operations >= 3 {
        let finish = Operate::plain(OpKind::MigrateFinish, "web-01", None);
        b.world.done(b.world.service().operate(finish).await).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resized_here_and_on_another_host() {
    let (a, b) = (Site::spawned().await, Site::new().await);
    let two = "resources1:VGPU=1,resources2:VGPU=1,group_policy=isolate";
    a.ctl(&["resize", "web-01", "--flavor", two]).await.unwrap();
    let finished = "running: parked outgoing, in-use primary, in-use primary; resize finished";
    assert_eq!(a.picture().await, finished);
    a.ctl(&["resize", "web-01", "--flavor", two]).await.unwrap();
    let other = a.ctl(&["resize", "web-01", "--flavor", VGPU]).await.unwrap_err();
    assert!(other.starts_with("Some(4): ") && other.contains("confirm or revert that first"), "{other}");
    assert_eq!(a.picture().await, finished);
    a.ctl(&["revert", "web-01"]).await.unwrap();
    assert_eq!(a.picture().await, RUNS);
    a.ctl(&["resize", "web-01", "--flavor", two, "--to", b.bus.address()]).await.unwrap();
    a.ctl(&["confirm", "web-01"]).await.unwrap();
    assert_eq!(a.picture().await, "");
    assert_eq!(b.picture().await, "running: in-use primary, in-use primary; ");
    b.ctl(&["resize", "web-01", "--flavor", ""]).await.unwrap();
    b.ctl(&["confirm", "web-01"]).await.unwrap();
    assert_eq!(b.picture().await, "running: ; ");
}

/// The old host is dead; what it had was kept elsewhere. When it is back it forgets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evacuated_and_forgotten() {
    let (a, b) = (Site::spawned().await, Site::new().await);
    let document = a.bus.dir().join("web-01.json");
    let document = document.to_str().unwrap();
    a.ctl(&["instance", "export", "web-01", "--output", document]).await.unwrap();
    let refused = b.world.service().migrate_prepare(mdevirt::service::api::PrepareRequest {
        document: std::fs::read_to_string(document).unwrap(),
        ..mdevirt::service::api::PrepareRequest::default()
    });
    assert!(refused.await.unwrap_err().message.contains("the guest may still run"));
    b.ctl(&["evacuate", document]).await.unwrap();
    assert_eq!(b.picture().await, RUNS);
    a.ctl(&["instance", "forget", "web-01"]).await.unwrap();
    assert_eq!((a.picture().await.as_str(), b.picture().await.as_str()), ("", RUNS));
}
