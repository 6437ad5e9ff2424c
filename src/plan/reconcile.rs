//! Where books, hardware and domains differ, and what may safely be done about it.
//!
//! 1. Nothing is done to a device that is foreign, that a domain names, or whose users could not all be read.
//! 2. An instance with an operation under way is passed over: its operation keeps its books.
//! 3. A difference that needs a decision has the action `none` and says what to do.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::restore::{Verdict, judge};
use crate::model::claim::text_enum;
use crate::model::{
    Claim, ClaimId, ClaimRole, ClaimState, DomainOwner, HostScan, Instance, InstanceUuid, InvalidName, Mdev,
    MdevUuid, Move, OwnDevice, ParentAddr,
};

text_enum!(
    /// Kinds of difference; the words are in JSON and never renamed.
    DifferenceKind, "kind of difference" {
        /// A claim's device does not exist.
        Missing = "missing",
        /// It is only defined.
        Inactive = "inactive",
        /// It is there with another type.
        WrongType = "wrong-type",
        /// Its UUID is on another parent.
        WrongParent = "wrong-parent",
        /// One UUID is on several parents.
        DuplicateUuid = "duplicate-uuid",
        /// A device of ours that no instance holds.
        Orphan = "orphan",
        /// A device that is not ours.
        Foreign = "foreign",
        /// A domain names a device that is neither on the host nor in the books.
        UnknownUuid = "unknown-uuid",
        /// A claim whose domain is gone, or that no operation goes on with.
        StaleClaim = "stale-claim",
    }
);

text_enum!(
    /// What is done about a difference.
    Action, "action" {
        /// The device is started.
        Start = "start",
        /// It is made.
        Make = "make",
        /// It is removed.
        Remove = "remove",
        /// Its record is taken out of the books; there is no device.
        Forget = "forget",
        /// Nothing: somebody has to decide.
        None = "none",
    }
);

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What kind it is.
    pub kind: DifferenceKind,
    /// UUID of the device, if it is about one.
    pub uuid: Option<MdevUuid>,
    /// Where it is, if that is one place.
    pub parent: Option<ParentAddr>,
    /// The claim on it.
    pub claim: Option<ClaimId>,
    /// Whose it is.
    pub instance: Option<InstanceUuid>,
    /// What is to be done.
    pub action: Action,
    /// What was found and, where nothing is done, what to do.
    pub text: String,
}

/// A domain and the mediated devices that its XML names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainDevices {
    /// Its UUID.
    pub uuid: InstanceUuid,
    /// Its name.
    pub name: String,
    /// The devices; `None` if its XML could not be understood.
    pub devices: Option<BTreeSet<MdevUuid>>,
}

/// All that is compared, as of one look.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    /// The hardware.
    pub scan: &'a HostScan,
    /// Instances.
    pub instances: &'a [Instance],
    /// Claims.
    pub claims: &'a [Claim],
    /// Devices that are ours.
    pub own: &'a [OwnDevice],
    /// Moves that wait for their next operation.
    pub moves: &'a [Move],
    /// All domains.
    pub domains: &'a [DomainDevices],
    /// Instances with an operation under way.
    pub busy: &'a BTreeSet<InstanceUuid>,
    /// Idle devices are kept for reuse.
    pub keep_idle: bool,
}

/// Every difference: claims first, then devices, then domains.
pub fn differences(compared: Compared<'_>) -> Vec<Difference> {
    let mut found = compared.of_instances();
    found.extend(compared.of_claims());
    found.extend(compared.doubled());
    found.extend(compared.scan.mdevs.iter().filter_map(|mdev| compared.of_device(mdev)));
    found.extend(compared.own.iter().filter_map(|own| compared.of_record(own)));
    found.extend(compared.of_domains());
    found
}

impl<'a> Compared<'a> {
    /// Claims whose instance is at rest.
    fn quiet_claims(&self) -> impl Iterator<Item = &'a Claim> {
        let busy = self.busy;
        self.claims.iter().filter(move |c| !busy.contains(&c.instance))
    }

    fn move_of(&self, instance: InstanceUuid) -> Option<&'a Move> {
        self.moves.iter().find(|m| m.instance == instance)
    }

    /// Instances of ours whose domain is gone. During a migration it may be on the other host.
    fn of_instances(&self) -> Vec<Difference> {
        let gone = |i: &&Instance| {
            let away = self.move_of(i.uuid).is_some_and(|m| m.kind.is_between_hosts());
            let ours = i.owner == DomainOwner::Mdevirt && !self.busy.contains(&i.uuid);
            ours && !away && !self.domains.iter().any(|d| d.uuid == i.uuid)
        };
        let told = |i: &Instance| Difference {
            kind: DifferenceKind::StaleClaim,
            uuid: None,
            parent: None,
            claim: None,
            instance: Some(i.uuid),
            action: Action::None,
            text: format!("libvirt has no domain {:?}; define it again, or destroy the instance", i.name),
        };
        self.instances.iter().filter(gone).map(told).collect()
    }

    fn of_claims(&self) -> Vec<Difference> {
        let judged = judge(self.quiet_claims(), self.scan, |_| false);
        self.quiet_claims().filter_map(|claim| self.of_claim(claim, judged.get(&claim.id)?)).collect()
    }

    fn of_claim(&self, claim: &Claim, verdict: &Verdict) -> Option<Difference> {
        use DifferenceKind as K;
        let told = |kind, action, text: String| Some(of(claim, kind, action, text));
        if let Some(why) = self.left_over(claim) {
            return told(K::StaleClaim, Action::None, why);
        }
        let here = self.scan.mdevs_with(claim.uuid).find(|m| m.parent == claim.parent);
        let (kind, act) = match here {
            Some(m) if !m.active => (K::Inactive, Action::Start),
            Some(_) | None => (K::Missing, Action::Make),
        };
        match verdict {
            Verdict::Keep => None,
            // Which of several devices of one UUID a definition means is nothing to guess.
            Verdict::Create if self.scan.mdevs_with(claim.uuid).count() > 1 => {
                told(kind, Action::None, "its UUID is on several parents; undefine all but one".to_owned())
            }
            Verdict::Create => told(kind, act, format!("{} on {}", claim.type_name, claim.parent)),
            Verdict::Wait(why) | Verdict::Lost(why) => told(kind, Action::None, why.clone()),
            Verdict::Foreign(why) if here.is_some_and(|m| m.active) => {
                told(K::WrongType, Action::None, why.clone())
            }
            Verdict::Foreign(why) => told(K::WrongParent, Action::None, why.clone()),
        }
    }

    /// Why no operation goes on with the claim.
    fn left_over(&self, claim: &Claim) -> Option<String> {
        let half = matches!(claim.state, ClaimState::Reserved | ClaimState::Releasing);
        if half {
            return Some(format!("{} since an operation got stuck; destroy the instance", claim.state));
        }
        let alone = claim.role != ClaimRole::Primary && self.move_of(claim.instance).is_none();
        alone.then(|| format!("{} without a move that was begun; destroy the instance", claim.role))
    }

    fn doubled(&self) -> Vec<Difference> {
        let mut places: BTreeMap<MdevUuid, Vec<String>> = BTreeMap::new();
        for mdev in &self.scan.mdevs {
            places.entry(mdev.uuid).or_default().push(mdev.parent.to_string());
        }
        let several = places.into_iter().filter(|(_, on)| on.len() > 1);
        let told = |(uuid, on): (MdevUuid, Vec<String>)| {
            let holder = self.claims.iter().find(|c| c.uuid == uuid);
            Difference {
                kind: DifferenceKind::DuplicateUuid,
                uuid: Some(uuid),
                parent: None,
                claim: holder.map(|c| c.id),
                instance: holder.map(|c| c.instance),
                action: Action::None,
                text: format!("is on {}; undefine all but one", on.join(" and ")),
            }
        };
        several.map(told).collect()
    }

    /// A device that no claim holds.
    fn of_device(&self, mdev: &Mdev) -> Option<Difference> {
        if self.claims.iter().any(|c| c.uuid == mdev.uuid && c.parent == mdev.parent) {
            return None;
        }
        let own = self.own.iter().any(|d| d.uuid == mdev.uuid && d.parent == mdev.parent);
        let told = |kind, action, text: String| {
            let (uuid, parent) = (Some(mdev.uuid), Some(mdev.parent.clone()));
            Some(Difference { kind, uuid, parent, claim: None, instance: None, action, text })
        };
        if !own {
            return told(DifferenceKind::Foreign, Action::None, "not made by mdevirt; left alone".to_owned());
        }
        if self.keep_idle && mdev.active {
            return None;
        }
        match self.why_not_removed(mdev) {
            Some(why) => told(DifferenceKind::Orphan, Action::None, why),
            None => told(DifferenceKind::Orphan, Action::Remove, "no instance holds it".to_owned()),
        }
    }

    fn why_not_removed(&self, mdev: &Mdev) -> Option<String> {
        if let Some(user) = self.domains.iter().find(|d| names(d, mdev.uuid)) {
            return Some(format!("no instance holds it, but domain {:?} names it", user.name));
        }
        if let Some(unread) = self.domains.iter().find(|d| d.devices.is_none()) {
            return Some(format!("the XML of domain {:?} cannot be read, and it may name it", unread.name));
        }
        if mdev.parent_missing {
            return Some(format!("no instance holds it, and parent {} is not there", mdev.parent));
        }
        let several = self.scan.mdevs_with(mdev.uuid).count() > 1;
        several.then(|| "no instance holds it, but its UUID is on several parents".to_owned())
    }

    /// A record of a device that is not there. One whose parent is away may come back with it.
    fn of_record(&self, own: &OwnDevice) -> Option<Difference> {
        let claimed = self.claims.iter().any(|c| c.uuid == own.uuid && c.parent == own.parent);
        let there = self.scan.mdevs.iter().any(|m| m.uuid == own.uuid && m.parent == own.parent);
        let gone = !claimed && !there && self.scan.parent(&own.parent).is_some();
        gone.then(|| Difference {
            kind: DifferenceKind::Orphan,
            uuid: Some(own.uuid),
            parent: Some(own.parent.clone()),
            claim: None,
            instance: None,
            action: Action::Forget,
            text: "no instance holds it, and it does not exist".to_owned(),
        })
    }

    fn of_domains(&self) -> Vec<Difference> {
        let unknown = |uuid: &MdevUuid| {
            self.scan.mdevs_with(*uuid).next().is_none() && !self.claims.iter().any(|c| c.uuid == *uuid)
        };
        let told = |domain: &DomainDevices, uuid: MdevUuid| {
            let instance = self.instances.iter().find(|i| i.uuid == domain.uuid).map(|i| i.uuid);
            let name = &domain.name;
            Difference {
                kind: DifferenceKind::UnknownUuid,
                uuid: Some(uuid),
                parent: None,
                claim: None,
                instance,
                action: Action::None,
                text: format!(
                    "domain {name:?} names it, but it is neither on this host nor in the books; take it out of the XML"
                ),
            }
        };
        let quiet = self.domains.iter().filter(|d| !self.busy.contains(&d.uuid));
        let named = quiet.flat_map(|d| d.devices.iter().flatten().map(move |uuid| (d, *uuid)));
        named.filter(|(_, uuid)| unknown(uuid)).map(|(domain, uuid)| told(domain, uuid)).collect()
    }
}

fn of(claim: &Claim, kind: DifferenceKind, action: Action, text: String) -> Difference {
    Difference {
        kind,
        uuid: Some(claim.uuid),
        parent: Some(claim.parent.clone()),
        claim: Some(claim.id),
        instance: Some(claim.instance),
        action,
        text,
    }
}

fn names(domain: &DomainDevices, uuid: MdevUuid) -> bool {
    domain.devices.as_ref().is_some_and(|devices| devices.contains(&uuid))
}
