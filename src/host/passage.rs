//! A guest on its way to another host while it runs, as the hypervisor has it.

use serde::{Deserialize, Serialize};

use super::Domain;
use crate::model::MdevUuid;

/// How a guest goes. Its domain has the target's devices there, each at the same place in the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passage {
    /// How the hypervisor of this host reaches that of the target, a libvirt URI.
    pub uri: String,
    /// The device here, and what it is there.
    pub devices: Vec<(MdevUuid, MdevUuid)>,
    /// Most that is sent, in MiB/s; `None`: as libvirt has it.
    pub bandwidth_mib: Option<u32>,
    /// Longest time for which the guest may stand still at the end, in ms; `None`: as libvirt has it.
    pub downtime_ms: Option<u32>,
}

/// Where a guest is that goes or went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    /// There is no such domain.
    Absent,
    /// It is defined and does not run; `moved`: because it runs on another host since.
    Off {
        /// See above.
        moved: bool,
    },
    /// It is here, running or paused by its user.
    Here,
    /// It is being sent to another host, or received from one.
    UnderWay(Sent),
    /// It is stopped for the last part of such a way, and the hypervisor is at nothing with it. Where it came from that is in
    /// doubt: it may run on the target. Where it goes to it does not run yet.
    Held,
}

impl Whereabouts {
    /// Of a guest that the hypervisor is at nothing with.
    pub fn at_rest(domain: Option<&Domain>) -> Self {
        match domain {
            None => Self::Absent,
            Some(domain) if domain.running => Self::Here,
            Some(_) => Self::Off { moved: false },
        }
    }
}

/// How much of a guest was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Bytes of memory and device state sent.
    pub bytes: u64,
    /// Bytes that are left to send, as far as is known now; more come while the guest works.
    pub left: u64,
}

impl Sent {
    /// In per cent; it may fall again.
    pub fn percent(self) -> u64 {
        let all = self.bytes.saturating_add(self.left);
        self.bytes.saturating_mul(100).checked_div(all).unwrap_or(0)
    }
}
