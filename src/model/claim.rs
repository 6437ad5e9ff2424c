//! The claim machine: states, roles and the one table of legal moves.
//!
//! ```text
//!             reserve          create           start/attach
//!   (none) ----------> Reserved ------> Ready -----------------> InUse
//!      ^                  | undo          | undo, destroy          | ^
//!      |                  v               v           suspend,stop v | resume,start
//!      +--- row gone <-- Releasing <------+---------------------- Parked
//!   Ready|InUse|Parked --new boot or unplug--> Missing --restore--> Ready, or Parked if it was
//!   Missing --parent or type gone--> Lost --they are back--> as Missing
//! ```
//! A role is a second column: what the claim is to its instance. A move of the instance (resize, migration) changes roles;
//! each host keeps only its own rows.
//!
//! Only the store writes a state, and only through [`ClaimState::after`].

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::address::ParentAddr;
use super::id::{ClaimId, InstanceUuid, InvalidName, MdevUuid, Usec};
use super::identity::TypeIdentity;
use super::mdev_type::{DeviceApi, TypeId};
use super::vocab::{ResourceClass, TraitName};

macro_rules! text_enum {
    ($(#[$doc:meta])* $name:ident, $kind:literal { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant),+ }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word stored in the books and shown to people.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
        impl FromStr for $name {
            type Err = InvalidName;
            fn from_str(text: &str) -> Result<Self, InvalidName> {
                match text { $($text => Ok(Self::$variant),)+ _ => Err(InvalidName::new($kind, text, "unknown word")) }
            }
        }
    };
}
pub(crate) use text_enum;

text_enum!(
    /// Where a claim stands.
    ClaimState, "claim state" {
        /// Booked; its device is not made yet.
        Reserved = "reserved",
        /// The device exists and nobody uses it.
        Ready = "ready",
        /// A running VM has it.
        InUse = "in-use",
        /// The VM is off or suspended; the device stays booked.
        Parked = "parked",
        /// On its way out.
        Releasing = "releasing",
        /// Its device is gone, by a reboot or because its parent was unplugged, and is to be made again.
        Missing = "missing",
        /// Its device is gone and cannot be made again as things are.
        Lost = "lost",
    }
);

text_enum!(
    /// What the claim is to its instance.
    ClaimRole, "claim role" {
        /// The instance's own device.
        Primary = "primary",
        /// Of the side that the instance is leaving, until the move is confirmed or reverted.
        Outgoing = "outgoing",
        /// Booked for the side that the instance is going to.
        Incoming = "incoming",
    }
);

text_enum!(
    /// What may happen to a claim.
    ClaimEvent, "claim event" {
        /// The device was made and read back.
        Created = "created",
        /// The domain runs with it.
        Started = "started",
        /// The domain is off.
        Stopped = "stopped",
        /// Destroy, or the undo of a reservation.
        Release = "release",
        /// The making of the device was undone.
        Uncreated = "uncreated",
        /// The device is gone without our doing.
        Vanished = "vanished",
        /// It cannot be made again as things are.
        GivenUp = "given-up",
    }
);

/// The event is not legal in this state; nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a claim that is {state} cannot become {event}")]
pub struct IllegalMove {
    /// Where the claim stands.
    pub state: ClaimState,
    /// What was asked of it.
    pub event: ClaimEvent,
}

impl ClaimState {
    /// The table of legal moves.
    ///
    /// # Errors
    /// The pair is not in the table.
    pub fn after(self, event: ClaimEvent) -> Result<Self, IllegalMove> {
        use ClaimEvent as E;
        use ClaimState as S;
        match (self, event) {
            // The same event twice is legal: steps and undos may be repeated after a crash.
            (S::Reserved | S::Ready | S::Missing | S::Lost, E::Created) => Ok(S::Ready),
            (S::Ready | S::Reserved, E::Uncreated) => Ok(S::Reserved),
            (S::Ready | S::Parked | S::InUse | S::Missing | S::Lost, E::Started) => Ok(S::InUse),
            (S::InUse | S::Parked | S::Ready, E::Stopped) => Ok(S::Parked),
            // Destroying again what could not be finished the first time, and what is not there.
            (S::Reserved | S::Releasing | S::Missing | S::Lost, E::Stopped) => Ok(self),
            // Starting again: a device that was there all along, or was lost and made again for a stopped VM.
            (S::Parked | S::InUse, E::Created) => Ok(self),
            (S::Ready | S::InUse | S::Parked | S::Missing, E::Vanished) => Ok(S::Missing),
            (S::Reserved | S::Releasing | S::Lost, E::Vanished) => Ok(self),
            (S::Missing | S::Lost, E::GivenUp) => Ok(S::Lost),
            (_, E::Release) => Ok(S::Releasing),
            (state, event) => Err(IllegalMove { state, event }),
        }
    }
}

/// One row of the books: an instance holds one virtual device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Key.
    pub id: ClaimId,
    /// Who holds it.
    pub instance: InstanceUuid,
    /// The device.
    pub uuid: MdevUuid,
    /// Where it is, or will be made.
    pub parent: ParentAddr,
    /// Its type on that parent.
    pub mdev_type: TypeId,
    /// The type's vendor name, the id when it has none.
    pub type_name: String,
    /// What stays of the type when its id moves; `None` for a claim booked by a program that did not keep it.
    #[serde(default)]
    pub identity: Option<TypeIdentity>,
    /// The card that the parent is a part of; `None` likewise.
    #[serde(default)]
    pub card: Option<ParentAddr>,
    /// What it is to the guest.
    pub device_api: DeviceApi,
    /// The class it was asked for as.
    pub resource_class: ResourceClass,
    /// Which group of the request it serves.
    pub group: String,
    /// Traits that were required of it.
    pub traits: BTreeSet<TraitName>,
    /// Where it stands.
    pub state: ClaimState,
    /// Its VM was off when its device went missing.
    #[serde(default)]
    pub was_parked: bool,
    /// What it is to the instance.
    pub role: ClaimRole,
    /// When it was booked.
    pub created_usec: Usec,
}

impl Claim {
    /// Whether its device went without our doing and is not back.
    pub fn is_gone(&self) -> bool {
        matches!(self.state, ClaimState::Missing | ClaimState::Lost)
    }

    /// The claim after an event; one whose device is back is what it was before it went.
    ///
    /// # Errors
    /// The event is not legal in the claim's state.
    pub fn after(self, event: ClaimEvent) -> Result<Self, IllegalMove> {
        use ClaimState as S;
        let (from, to) = (self.state, self.state.after(event)?);
        let gone = |state| matches!(state, S::Missing | S::Lost);
        let was_parked = match (gone(from), gone(to)) {
            (false, true) => from == S::Parked,
            (true, true) => self.was_parked,
            (_, false) => false,
        };
        let back = gone(from) && to == S::Ready && self.was_parked;
        Ok(Self { state: if back { S::Parked } else { to }, was_parked, ..self })
    }
}

/// A claim as scripts see it (`instance list --json`, `spawn --json`, the result of a job).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimView {
    /// Node-device name, `mdev_<uuid>_<parent>`.
    pub device: String,
    /// UUID of the mdev.
    pub uuid: MdevUuid,
    /// PCI address of a VF that is itself the device; `null` for an mdev.
    pub address: Option<String>,
    /// Where it is.
    pub parent: ParentAddr,
    /// Local type id.
    pub mdev_type: TypeId,
    /// Vendor name of the type, the id when it has none.
    pub type_name: String,
    /// The trait that was asked for, if one was.
    #[serde(rename = "trait")]
    pub trait_name: Option<TraitName>,
    /// Where the claim stands.
    pub state: ClaimState,
    /// What it is to the instance.
    pub role: ClaimRole,
}

impl From<&Claim> for ClaimView {
    fn from(claim: &Claim) -> Self {
        Self {
            device: device_name(claim.uuid, &claim.parent),
            uuid: claim.uuid,
            address: None,
            parent: claim.parent.clone(),
            mdev_type: claim.mdev_type.clone(),
            type_name: claim.type_name.clone(),
            trait_name: claim.traits.first().cloned(),
            state: claim.state,
            role: claim.role,
        }
    }
}

/// libvirt's name of a mediated device; for people only, never parsed.
pub(crate) fn device_name(uuid: MdevUuid, parent: &ParentAddr) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("mdev_{}", format!("{uuid}_{parent}").chars().map(plain).collect::<String>())
}

text_enum!(
    /// Who starts, stops and undefines the instance's domain.
    DomainOwner, "domain owner" {
        /// We do: it came through `Spawn`.
        Mdevirt = "mdevirt",
        /// An orchestrator does: it asked for devices only, through `Claim`.
        Caller = "caller",
        /// Whoever uses libvirt: the domain says in its metadata what it wants, and libvirt's hook asks for it.
        Libvirt = "libvirt",
    }
);

/// A VM that holds virtual devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// The domain's UUID.
    pub uuid: InstanceUuid,
    /// The domain's name, as given.
    pub name: String,
    /// Who owns the domain.
    pub owner: DomainOwner,
    /// SHA-256 over the request and the domain XML, to tell a repeat from another request.
    pub request_digest: String,
    /// The flavor it has; `None` for an instance booked by a program that did not keep it.
    pub flavor: Option<String>,
    /// When it was booked.
    pub created_usec: Usec,
}

/// A device that this service made, in use or kept for reuse. What is not here is foreign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnDevice {
    /// The device.
    pub uuid: MdevUuid,
    /// Where it is.
    pub parent: ParentAddr,
    /// Its type there.
    pub type_id: TypeId,
    /// The type's vendor name, the id when it has none.
    pub type_name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_drawn_moves_are_legal() {
        let legal: Vec<String> = ClaimState::ALL
            .iter()
            .flat_map(|s| ClaimEvent::ALL.iter().map(move |e| (*s, *e)))
            .filter_map(|(s, e)| s.after(e).ok().map(|to| format!("{s} {e} {to}")))
            .collect();
        assert_eq!(
            legal,
            [
                "reserved created ready",
                "reserved stopped reserved",
                "reserved release releasing",
                "reserved uncreated reserved",
                "reserved vanished reserved",
                "ready created ready",
                "ready started in-use",
                "ready stopped parked",
                "ready release releasing",
                "ready uncreated reserved",
                "ready vanished missing",
                "in-use created in-use",
                "in-use started in-use",
                "in-use stopped parked",
                "in-use release releasing",
                "in-use vanished missing",
                "parked created parked",
                "parked started in-use",
                "parked stopped parked",
                "parked release releasing",
                "parked vanished missing",
                "releasing stopped releasing",
                "releasing release releasing",
                "releasing vanished releasing",
                "missing created ready",
                "missing started in-use",
                "missing stopped missing",
                "missing release releasing",
                "missing vanished missing",
                "missing given-up lost",
                "lost created ready",
                "lost started in-use",
                "lost stopped lost",
                "lost release releasing",
                "lost vanished lost",
                "lost given-up lost",
            ]
        );
    }

    #[test]
    fn words_come_back_and_others_are_refused() {
        for state in ClaimState::ALL {
            assert_eq!(state.as_str().parse::<ClaimState>().unwrap(), *state);
        }
        assert!("gone".parse::<ClaimState>().is_err());
    }
}
