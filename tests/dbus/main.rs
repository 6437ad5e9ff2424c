//! The daemon's side of the bus, on a private bus, over a service that a test moves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

#[path = "../bus/mod.rs"]
mod bus;

mod denial;
mod hostile;
mod introspection;
mod methods;
mod objects;
mod signals;
mod traits;
mod waiting;

use std::time::Duration;

use mdevirt::dbus::json::{self, Record};
use mdevirt::dbus::proxy::ManagerProxy;
use mdevirt::dbus::{BusEvent, Client, Watch};
use mdevirt::model::Fault;
use serde_json::{Value, json};

/// A deadline that only a hang reaches.
const LONG: Duration = Duration::from_secs(120);

async fn client(bus: &bus::PrivateBus) -> Client {
    Client::connect(&bus.bus(), LONG).await.unwrap()
}

async fn manager(bus: &bus::PrivateBus) -> ManagerProxy<'static> {
    ManagerProxy::new(&bus.connect().await).await.unwrap()
}

fn record(value: &Value) -> Record {
    json::to_record(value).unwrap()
}

fn spawn_options() -> Record {
    record(&json!({"domain_xml": "<domain/>", "flavor": "resources:VGPU=1"}))
}

fn fault<T: std::fmt::Debug>(outcome: Result<T, mdevirt::dbus::fault::WireFault>) -> Fault {
    outcome.unwrap_err().into()
}

/// The next event, or a panic where a hang would be.
async fn next(watch: &mut Watch) -> BusEvent {
    tokio::time::timeout(LONG, watch.next()).await.expect("no event came").expect("the bus is there")
}
