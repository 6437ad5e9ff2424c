//! Signals of the daemon as a client sees them, in the order in which the bus delivered them.

use futures_util::StreamExt;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use zbus::fdo::{self, DBusProxy, NameOwnerChanged};
use zbus::message::{Message, Type};
use zbus::names::UniqueName;
use zbus::{Connection, MatchRule, MessageStream};

use super::json;
use super::proxy::{ClaimChanged, DriftDetected, InventoryChanged, JobNew, JobRemoved};
use super::{NAME, path};
use crate::model::JobId;

/// What the daemon said, or that it is gone.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "signal")]
pub enum BusEvent {
    /// A job began.
    JobNew {
        /// Its id.
        id: String,
        /// Its object.
        path: String,
    },
    /// A job ended.
    JobRemoved {
        /// Its id.
        id: String,
        /// Its object.
        path: String,
        /// `done`, `failed` or `stuck`.
        result: String,
    },
    /// The inventory is not what it was.
    InventoryChanged,
    /// The claims of an instance are not what they were.
    ClaimChanged {
        /// UUID.
        instance: String,
    },
    /// A trait or an enabled type has become something else on a parent.
    DriftDetected {
        /// Trait, or key of an enabled type.
        word: String,
        /// Where.
        parent: String,
        /// What it was and is.
        text: String,
    },
    /// Properties of an object changed.
    PropertiesChanged {
        /// The object.
        path: String,
        /// Whose properties.
        interface: String,
        /// Those that changed.
        changed: Map<String, Value>,
    },
    /// An object came.
    InterfacesAdded {
        /// The object.
        path: String,
        /// Its interfaces.
        interfaces: Vec<String>,
    },
    /// An object went.
    InterfacesRemoved {
        /// The object.
        path: String,
        /// Its interfaces.
        interfaces: Vec<String>,
    },
    /// The daemon left the bus.
    DaemonGone,
    /// The daemon is on the bus (again).
    DaemonThere,
}

impl BusEvent {
    /// Whether a job is not what it was.
    pub fn concerns(&self, id: JobId) -> bool {
        match self {
            Self::JobNew { id: of, .. } | Self::JobRemoved { id: of, .. } => *of == id.to_string(),
            Self::PropertiesChanged { path, .. } => *path == path::of_job(id).as_str(),
            Self::InventoryChanged
            | Self::ClaimChanged { .. }
            | Self::DriftDetected { .. }
            | Self::InterfacesAdded { .. }
            | Self::InterfacesRemoved { .. }
            | Self::DaemonGone
            | Self::DaemonThere => false,
        }
    }
}

/// Events from the moment of its making. A task takes them from the connection at once, so that one who does not
/// read does not hold up the answers to calls.
#[derive(Debug)]
pub struct Watch {
    events: mpsc::UnboundedReceiver<BusEvent>,
}

impl Watch {
    pub(super) async fn start(connection: &Connection) -> zbus::Result<Self> {
        // One stream of everything, since two would lose the order between the daemon's last signal and its going.
        let stream = MessageStream::from(connection);
        let bus = DBusProxy::new(connection).await?;
        bus.add_match_rule(
            MatchRule::builder().msg_type(Type::Signal).sender(NAME).path_namespace(path::ROOT).build()?,
        )
        .await?;
        bus.add_match_rule(
            MatchRule::builder()
                .msg_type(Type::Signal)
                .sender("org.freedesktop.DBus")
                .member("NameOwnerChanged")
                .arg(0, NAME)
                .build()?,
        )
        .await?;
        let owner = bus.get_name_owner(NAME.try_into()?).await.ok().map(|name| name.to_string());
        let (send, events) = mpsc::unbounded_channel();
        tokio::spawn(forward(stream, owner, send));
        Ok(Self { events })
    }

    /// The next one; `None` when the bus is lost.
    pub async fn next(&mut self) -> Option<BusEvent> {
        self.events.recv().await
    }
}

async fn forward(
    mut stream: MessageStream,
    mut owner: Option<String>,
    send: mpsc::UnboundedSender<BusEvent>,
) {
    while let Some(Ok(message)) = stream.next().await {
        if message.message_type() != Type::Signal {
            continue;
        }
        // Anybody may send a signal straight to us; only the bus and the owner of the name are believed.
        let sender = message.header().sender().map(UniqueName::to_string).unwrap_or_default();
        let event = if sender == "org.freedesktop.DBus" {
            owner_change(&message, &mut owner)
        } else if owner.as_deref() == Some(sender.as_str()) {
            read(message)
        } else {
            None
        };
        if event.is_some_and(|event| send.send(event).is_err()) {
            return;
        }
    }
}

fn owner_change(message: &Message, owner: &mut Option<String>) -> Option<BusEvent> {
    let change = NameOwnerChanged::from_message(message.clone())?;
    let args = change.args().ok().filter(|args| args.name() == NAME)?;
    let gone = owner.take().is_some();
    *owner = args.new_owner().as_ref().map(UniqueName::to_string);
    // A new owner in one go with the old one's going: whoever waited for the old one must hear of it.
    if gone || owner.is_none() { Some(BusEvent::DaemonGone) } else { Some(BusEvent::DaemonThere) }
}

/// A signal that is not understood is left out: it is of a later daemon.
fn read(message: Message) -> Option<BusEvent> {
    let header = message.header();
    let at = header.path()?.to_string();
    let (interface, member) = (header.interface()?.to_string(), header.member()?.to_string());
    drop(header);
    match (interface.as_str(), member.as_str()) {
        ("org.mdevirt1.Manager", "JobNew") => {
            let signal = JobNew::from_message(message)?;
            let args = signal.args().ok()?;
            Some(BusEvent::JobNew { id: args.id().to_string(), path: args.path().to_string() })
        }
        ("org.mdevirt1.Manager", "JobRemoved") => {
            let signal = JobRemoved::from_message(message)?;
            let args = signal.args().ok()?;
            Some(BusEvent::JobRemoved {
                id: args.id().to_string(),
                path: args.path().to_string(),
                result: args.result().to_string(),
            })
        }
        ("org.mdevirt1.Manager", "ClaimChanged") => {
            let signal = ClaimChanged::from_message(message)?;
            let instance = signal.args().ok()?.instance().to_string();
            Some(BusEvent::ClaimChanged { instance })
        }
        ("org.mdevirt1.Manager", "DriftDetected") => {
            let signal = DriftDetected::from_message(message)?;
            let args = signal.args().ok()?;
            let [word, parent, text] = [args.word(), args.parent(), args.text()].map(ToString::to_string);
            Some(BusEvent::DriftDetected { word, parent, text })
        }
        ("org.mdevirt1.Manager", "InventoryChanged") => {
            InventoryChanged::from_message(message).map(|_| BusEvent::InventoryChanged)
        }
        ("org.freedesktop.DBus.Properties", "PropertiesChanged") => properties(at, message),
        ("org.freedesktop.DBus.ObjectManager", "InterfacesAdded") => added(message),
        ("org.freedesktop.DBus.ObjectManager", "InterfacesRemoved") => removed(message),
        _ => None,
    }
}

fn properties(path: String, message: Message) -> Option<BusEvent> {
    let signal = fdo::PropertiesChanged::from_message(message)?;
    let args = signal.args().ok()?;
    let mut record = json::Record::new();
    for (name, value) in args.changed_properties() {
        record.insert((*name).to_owned(), value.try_to_owned().ok()?);
    }
    let changed = json::from_record(&record, json::TAKEN).ok()?;
    Some(BusEvent::PropertiesChanged { path, interface: args.interface_name().to_string(), changed })
}

fn added(message: Message) -> Option<BusEvent> {
    let signal = fdo::InterfacesAdded::from_message(message)?;
    let args = signal.args().ok()?;
    let mut interfaces: Vec<String> =
        args.interfaces_and_properties().keys().map(ToString::to_string).collect();
    interfaces.sort();
    Some(BusEvent::InterfacesAdded { path: args.object_path().to_string(), interfaces })
}

fn removed(message: Message) -> Option<BusEvent> {
    let signal = fdo::InterfacesRemoved::from_message(message)?;
    let args = signal.args().ok()?;
    let interfaces = args.interfaces().iter().map(ToString::to_string).collect();
    Some(BusEvent::InterfacesRemoved { path: args.object_path().to_string(), interfaces })
}
