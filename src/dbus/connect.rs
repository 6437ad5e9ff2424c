//! Which bus, and a connection to it.

use std::time::Duration;

use zbus::Connection;
use zbus::connection::Builder;

/// A bus.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Bus {
    /// The system's: production.
    #[default]
    System,
    /// The user's: trying things out.
    Session,
    /// By D-Bus address, `unix:path=/run/x`.
    Address(String),
}

impl Bus {
    /// For people: `the system bus`, `the bus at unix:path=/run/x`.
    pub fn describe(&self) -> String {
        match self {
            Self::System => "the system bus".to_owned(),
            Self::Session => "the session bus".to_owned(),
            Self::Address(address) => format!("the bus at {}", address.escape_debug()),
        }
    }
}

/// Connects; with a timeout no call waits longer than that for its answer.
///
/// # Errors
/// The address is not one, nobody listens there, or the bus does not let us in.
pub async fn connect(bus: &Bus, call_timeout: Option<Duration>) -> zbus::Result<Connection> {
    let builder = match bus {
        Bus::System => Builder::system(),
        Bus::Session => Builder::session(),
        Bus::Address(address) => Builder::address(address.as_str()),
    };
    match call_timeout {
        Some(timeout) => builder.method_timeout(timeout).build().await,
        None => builder.build().await,
    }
}
