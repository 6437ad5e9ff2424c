//! A private bus in a directory of its own, and a service on it that does what a test tells it.
#![allow(dead_code, reason = "each test program uses a part of the fixture")]
#![allow(unreachable_pub, reason = "a test program has no outside")]

mod fake;
pub mod sample;

#[allow(unused_imports, reason = "each test program uses a part of the fixture")]
pub use fake::{Fake, Pace};

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use async_trait::async_trait;
use mdevirt::dbus::{self, Authority, Bus, Server};
use mdevirt::model::{Fault, FaultKind};
use tempfile::TempDir;
use zbus::Connection;
use zbus::message::Header;

/// A `dbus-daemon` of our own; it ends with the value.
#[derive(Debug)]
pub struct PrivateBus {
    address: String,
    daemon: Child,
    dir: TempDir,
}

impl PrivateBus {
    /// Starts it and waits until it listens.
    pub fn start() -> Self {
        let dir = tempfile::tempdir().expect("a directory for the bus");
        let config = dir.path().join("bus.conf");
        let text = format!(
            r#"<busconfig><type>session</type><listen>unix:path={0}/bus</listen><auth>EXTERNAL</auth>
               <servicedir>{0}</servicedir>
               <policy context="default"><allow send_destination="*" eavesdrop="true"/>
               <allow eavesdrop="true"/><allow own="*"/></policy></busconfig>"#,
            dir.path().display()
        );
        std::fs::write(&config, text).expect("write the bus configuration");
        #[allow(clippy::disallowed_methods, reason = "tests start the programs they test")]
        let mut daemon = Command::new("dbus-daemon")
            .arg(format!("--config-file={}", config.display()))
            .args(["--nofork", "--nopidfile", "--nosyslog", "--print-address=1"])
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(dir.path().join("bus.log")).expect("a log"))
            .spawn()
            .expect("start dbus-daemon: is it installed?");
        let mut address = String::new();
        let stdout = daemon.stdout.take().expect("its output");
        // It prints the address once it listens.
        BufReader::new(stdout).read_line(&mut address).expect("read the address");
        let address = address.split(',').next().unwrap_or_default().trim().to_owned();
        let log = std::fs::read_to_string(dir.path().join("bus.log")).unwrap_or_default();
        assert!(address.starts_with("unix:path="), "dbus-daemon did not come up: {log}");
        Self { address, daemon, dir }
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The same, for the product's own functions.
    pub fn bus(&self) -> Bus {
        Bus::Address(self.address.clone())
    }

    /// A directory that goes with the bus.
    pub fn dir(&self) -> &std::path::Path {
        self.dir.path()
    }

    /// A new connection.
    pub async fn connect(&self) -> Connection {
        dbus::connect(&self.bus(), None).await.expect("connect to the private bus")
    }

    /// A daemon on the bus with this service, which lets everybody in.
    pub async fn serve(&self, service: &Arc<Fake>) -> Server {
        self.serve_for(service, Arc::new(Everybody)).await
    }

    /// A daemon on the bus with this service and this authority.
    pub async fn serve_for(&self, service: &Arc<Fake>, authority: Arc<dyn Authority>) -> Server {
        dbus::serve(self.connect().await, service.clone(), authority).await.expect("serve on the private bus")
    }

    /// Ends the bus now.
    pub fn stop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

impl Drop for PrivateBus {
    fn drop(&mut self) {
        self.stop();
    }
}

/// An authority that lets everybody change things.
#[derive(Debug)]
pub struct Everybody;

#[async_trait]
impl Authority for Everybody {
    async fn check(&self, _call: &Header<'_>) -> Result<(), Fault> {
        Ok(())
    }
}

/// An authority that lets nobody.
#[derive(Debug)]
pub struct Nobody;

#[async_trait]
impl Authority for Nobody {
    async fn check(&self, _call: &Header<'_>) -> Result<(), Fault> {
        Err(Fault::new(FaultKind::AccessDenied, "nobody may"))
    }
}
