//! Which bus, and a connection to it.

use std::time::Duration;

use zbus::Connection;
use zbus::address::Address;
use zbus::address::transport::{Transport, Unixexec};
use zbus::connection::Builder;

/// Takes the place of `ssh`, as for systemctl.
const SSH: &str = "SYSTEMD_SSH";

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
    /// The system's on another host, `[USER@]HOST`, over ssh.
    Host(String),
}

impl Bus {
    /// For people: `the system bus`, `the bus at unix:path=/run/x`.
    pub fn describe(&self) -> String {
        match self {
            Self::System => "the system bus".to_owned(),
            Self::Session => "the session bus".to_owned(),
            Self::Address(address) => format!("the bus at {}", address.escape_debug()),
            Self::Host(host) => format!("the system bus of {}", host.escape_debug()),
        }
    }

    /// The other side of a move as a person or a record names it: a D-Bus address has a `=`, which no host name has.
    pub fn of_peer(text: &str) -> Self {
        let text = text.to_owned();
        if text.contains('=') { Self::Address(text) } else { Self::Host(text) }
    }
}

/// A program that carries the bus of another host on its standard input and output. Made as a value: zbus reads no escapes
/// in the text of such an address.
///
/// # Source
/// systemd `sd-bus.c` (`bus_set_address_system_remote`) and `systemd-stdio-bridge(1)`; D-Bus specification, unixexec.
fn over_ssh(host: &str) -> Address {
    let ssh = std::env::var_os(SSH).unwrap_or_else(|| "ssh".into());
    // Behind `--` nothing is an option of ssh, whatever the host is called.
    let arguments = ["-xT", "--", host, "systemd-stdio-bridge"];
    let arguments = arguments.into_iter().map(Into::into).collect();
    Address::new(Transport::Unixexec(Unixexec::new(ssh.into(), None, arguments)))
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
        Bus::Host(host) => Builder::address(over_ssh(host)),
    };
    match call_timeout {
        Some(timeout) => builder.method_timeout(timeout).build().await,
        None => builder.build().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_an_argument_and_nothing_else() {
        let host = "root@gpu-02,argv4=rm -rf";
        let address = over_ssh(host);
        let Transport::Unixexec(program) = address.transport() else { panic!("{address}") };
        assert_eq!(program.args(), ["-xT", "--", host, "systemd-stdio-bridge"]);
    }

    #[test]
    fn a_peer_is_a_host_or_an_address() {
        assert_eq!(Bus::of_peer("root@gpu-02"), Bus::Host("root@gpu-02".into()));
        assert_eq!(Bus::of_peer("unix:path=/run/x"), Bus::Address("unix:path=/run/x".into()));
    }
}
