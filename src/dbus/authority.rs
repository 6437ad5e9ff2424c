//! Who may change things. Reading is open; the bus' own policy decides who may connect.

use std::collections::HashMap;
use std::fmt::Debug;

use async_trait::async_trait;
use zbus::Connection;
use zbus::fdo::DBusProxy;
use zbus::message::{Flags, Header};
use zbus_polkit::policykit1::{AuthorityProxy, CheckAuthorizationFlags, Subject};

use crate::model::{Fault, FaultKind};

/// The polkit action of every changing call.
pub const ACTION: &str = "org.mdevirt1.manage";

/// Decides whether the sender of a call may change things.
#[async_trait]
pub trait Authority: Send + Sync + Debug {
    /// Ok if it may.
    ///
    /// # Errors
    /// `AccessDenied` if not, and also if that cannot be found out.
    async fn check(&self, call: &Header<'_>) -> Result<(), Fault>;
}

/// polkit, for the system bus.
#[derive(Debug)]
pub struct Polkit {
    proxy: AuthorityProxy<'static>,
}

impl Polkit {
    /// On the connection that the daemon serves; polkit itself need not be there yet.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn new(connection: &Connection) -> zbus::Result<Self> {
        Ok(Self { proxy: AuthorityProxy::new(connection).await? })
    }
}

#[async_trait]
impl Authority for Polkit {
    async fn check(&self, call: &Header<'_>) -> Result<(), Fault> {
        let subject = Subject::new_for_message_header(call).map_err(|err| unknown("polkit", &err))?;
        // The caller alone knows whether a person sits in front of it.
        let flags = if call.primary().flags().contains(Flags::ALLOW_INTERACTIVE_AUTH) {
            CheckAuthorizationFlags::ALLOW_USER_INTERACTION
        } else {
            CheckAuthorizationFlags::empty()
        };
        let answer = self.proxy.check_authorization(&subject, ACTION, &HashMap::new(), flags, "").await;
        match answer {
            Ok(result) if result.is_authorized => Ok(()),
            Ok(result) if result.is_challenge => Err(denied(format!(
                "polkit wants a password for {ACTION}: run as root or as a member of group mdevirt, or start a polkit agent"
            ))),
            Ok(_) => Err(denied(format!(
                "polkit does not allow {ACTION}: run as root or as a member of group mdevirt"
            ))),
            Err(err) => Err(unknown("polkit", &err)),
        }
    }
}

/// The daemon's own user and root, for a session or a private bus.
#[derive(Debug)]
pub struct SameUser {
    bus: DBusProxy<'static>,
    uid: u32,
}

impl SameUser {
    /// Learns the daemon's own uid from the bus.
    ///
    /// # Errors
    /// The bus does not tell it.
    pub async fn new(connection: &Connection) -> zbus::Result<Self> {
        let bus = DBusProxy::new(connection).await?;
        let me = connection.unique_name().ok_or(zbus::Error::MissingField)?.clone();
        let uid = bus.get_connection_unix_user(me.into_inner().into()).await?;
        Ok(Self { bus, uid })
    }
}

#[async_trait]
impl Authority for SameUser {
    async fn check(&self, call: &Header<'_>) -> Result<(), Fault> {
        let sender = call.sender().ok_or_else(|| denied("the call has no sender".to_owned()))?.to_owned();
        match self.bus.get_connection_unix_user(sender.into()).await {
            Ok(uid) if uid == 0 || uid == self.uid => Ok(()),
            Ok(uid) => Err(denied(format!(
                "user {uid} may not change things here: mdevirtd runs as user {}, without polkit",
                self.uid
            ))),
            Err(err) => Err(unknown("the bus", &err)),
        }
    }
}

fn denied(message: String) -> Fault {
    Fault::new(FaultKind::AccessDenied, message)
}

fn unknown(whom: &str, err: &dyn std::fmt::Display) -> Fault {
    denied(format!("cannot ask {whom} whether the caller may do this: {err}"))
}
