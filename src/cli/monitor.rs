//! `monitor`: one line a signal.

use super::output::{Output, Show, Stop};
use super::session::Session;
use super::table::printable;
use crate::dbus::BusEvent;
use crate::model::{Fault, FaultKind};

/// Prints what the daemon says, also over its restarts.
///
/// # Errors
/// `HostUnreachable` if there is no daemon at the beginning, or when the bus is lost.
pub async fn monitor(session: &Session, output: Output) -> Result<(), Stop> {
    let mut events = session.client().watch().await?;
    session.client().status().await?;
    while let Some(event) = events.next().await {
        output.print_line(&event)?;
    }
    Err(Fault::new(FaultKind::HostUnreachable, "the bus is gone").into())
}

impl Show for BusEvent {
    fn text(&self) -> String {
        let line = match self {
            Self::JobNew { id, .. } => format!("JobNew {id}"),
            Self::JobRemoved { id, result, .. } => format!("JobRemoved {id} {result}"),
            Self::InventoryChanged => "InventoryChanged".to_owned(),
            Self::ClaimChanged { instance } => format!("ClaimChanged {instance}"),
            Self::DriftDetected { text, .. } => format!("DriftDetected {text}"),
            Self::PropertiesChanged { path, changed, .. } => {
                let list: Vec<String> =
                    changed.iter().map(|(name, value)| format!("{name}={value}")).collect();
                format!("PropertiesChanged {path} {}", list.join(" "))
            }
            Self::InterfacesAdded { path, .. } => format!("InterfacesAdded {path}"),
            Self::InterfacesRemoved { path, .. } => format!("InterfacesRemoved {path}"),
            Self::DaemonGone => "DaemonGone".to_owned(),
            Self::DaemonThere => "DaemonThere".to_owned(),
        };
        printable(&line) + "\n"
    }
}
