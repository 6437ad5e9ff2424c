//! Books, hardware and domains of one moment, and whether they agree.

use std::collections::BTreeSet;
use std::sync::Arc;

use mdevirt::host::{Domain, Hypervisor, NodeDevices};
use mdevirt::model::{
    Claim, ClaimRole, ClaimState, DomainOwner, HostScan, Instance, InstanceUuid, Mdev, MoveKind, MovePhase,
};
use mdevirt::store::{Books, Store};
use mdevirt::xml::domain::DomainDoc;
use uuid::Uuid;

/// See the head of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    pub books: Arc<Books>,
    pub scan: HostScan,
    pub domains: Vec<Domain>,
    /// Those of which the memory is saved.
    pub saved: BTreeSet<InstanceUuid>,
}

impl Picture {
    /// Takes it.
    pub async fn of(store: &Store, nodes: &dyn NodeDevices, hypervisor: &dyn Hypervisor) -> Self {
        let mut domains = hypervisor.domains().await.unwrap();
        domains.sort_by_key(|d| d.uuid);
        let mut saved = BTreeSet::new();
        for domain in &domains {
            if hypervisor.is_saved(domain.uuid).await.unwrap() {
                saved.insert(domain.uuid);
            }
        }
        Self { books: store.books(), scan: nodes.scan().await.unwrap(), domains, saved }
    }

    /// Everything that does not fit together. `others` are the UUIDs of devices and domains that are not ours.
    pub fn odds(&self, others: &BTreeSet<Uuid>) -> Vec<String> {
        let mut odds = self.odd_devices(others);
        self.books.instances().for_each(|instance| odds.extend(self.odd_instance(instance)));
        for domain in &self.domains {
            if self.books.instance(domain.uuid).is_none() && !others.contains(&domain.uuid.0) {
                odds.push(format!("domain {:?} has no instance", domain.name));
            }
        }
        odds
    }

    /// Devices of the books against devices of the host.
    fn odd_devices(&self, others: &BTreeSet<Uuid>) -> Vec<String> {
        let mut odds = Vec::new();
        let mut held = BTreeSet::new();
        for claim in self.books.claims() {
            if !held.insert((claim.uuid, claim.parent.clone())) {
                odds.push(format!("device {} has two claims", claim.uuid));
            }
        }
        for mdev in &self.scan.mdevs {
            let ours = self.books.own_device(mdev.uuid, &mdev.parent).is_some();
            if ours == others.contains(&mdev.uuid.0) {
                odds.push(format!("device {} on {}, ours: {ours}", mdev.uuid, mdev.parent));
            }
        }
        for own in self.books.own_devices() {
            if !self.scan.mdevs_with(own.uuid).any(|m| m.parent == own.parent && m.active && m.defined) {
                odds.push(format!("device {} of the books is not on {}", own.uuid, own.parent));
            }
        }
        odds
    }

    fn odd_instance(&self, instance: &Instance) -> Vec<String> {
        let mut odds = Vec::new();
        let claims: Vec<&Claim> = self.books.claims_of(instance.uuid).collect();
        let moving = self.books.move_of(instance.uuid).map(|m| (m.kind, m.phase));
        // The side of a move that its guest has: on the source of a migration the old one still.
        let own = match moving {
            Some((MoveKind::Out | MoveKind::LiveOut, _)) => ClaimRole::Outgoing,
            Some((MoveKind::In, MovePhase::Prepared) | (MoveKind::LiveIn, _)) => ClaimRole::Incoming,
            Some(_) | None => ClaimRole::Primary,
        };
        let (own, others): (Vec<&Claim>, Vec<&Claim>) = claims.iter().partition(|c| c.role == own);
        let wanted = match (instance.owner, self.domain_of(instance), moving) {
            (DomainOwner::Caller | DomainOwner::Libvirt, _, _)
            | (_, _, Some((MoveKind::LiveIn, _)))
            | (_, None, Some((MoveKind::In, MovePhase::Prepared))) => ClaimState::Ready,
            (DomainOwner::Mdevirt, None, _) => {
                odds.push(format!("instance {:?} has no domain", instance.name));
                ClaimState::Parked
            }
            (DomainOwner::Mdevirt, Some(domain), _) => {
                let named = mdevs_of(domain);
                let booked: BTreeSet<Uuid> = own.iter().map(|c| c.uuid.0).collect();
                if named != booked {
                    odds.push(format!("domain {:?} names {named:?}, booked are {booked:?}", domain.name));
                }
                if domain.running { ClaimState::InUse } else { ClaimState::Parked }
            }
        };
        if claims.is_empty() && instance.owner == DomainOwner::Caller {
            odds.push(format!("instance {:?} holds nothing", instance.name));
        }
        let at_rest = match moving {
            Some((MoveKind::Resize, MovePhase::Prepared)) => (ClaimRole::Incoming, ClaimState::Ready),
            Some(_) | None => (ClaimRole::Outgoing, ClaimState::Parked),
        };
        if moving.is_none_or(|(kind, _)| kind != MoveKind::Resize) && !others.is_empty() {
            odds.push(format!("instance {:?} has claims of a move that is over: {others:?}", instance.name));
        }
        let wrong = own.iter().filter(|c| c.state != wanted);
        odds.extend(wrong.map(|c| format!("claim on {} is {}, not {wanted}", c.uuid, c.state)));
        let wrong = others.iter().filter(|c| (c.role, c.state) != at_rest);
        odds.extend(wrong.map(|c| format!("claim on {} is {} {}, not {at_rest:?}", c.uuid, c.role, c.state)));
        odds
    }

    fn domain_of(&self, instance: &Instance) -> Option<&Domain> {
        self.domains.iter().find(|d| d.uuid == instance.uuid)
    }

    /// What there is, without ids: two runs that came to the same end have the same summary.
    pub fn summary(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.scan.mdevs.iter().map(|mdev| self.line(mdev)).collect();
        for instance in self.books.instances() {
            let running = self.domain_of(instance).map(|d| d.running);
            let mut claims: Vec<_> =
                self.books.claims_of(instance.uuid).map(|c| (&c.parent, c.role, c.state)).collect();
            claims.sort();
            let moving = self.books.move_of(instance.uuid).map(|m| (m.kind, m.phase));
            let saved = self.saved.contains(&instance.uuid);
            lines.push(format!(
                "instance {:?} of {:?}: domain runs: {running:?}, saved: {saved}, claims {claims:?}, move {moving:?}",
                instance.name, instance.flavor
            ));
        }
        lines.sort();
        lines
    }

    fn line(&self, mdev: &Mdev) -> String {
        let holder = self.books.holder(mdev.uuid, &mdev.parent).and_then(|c| self.books.instance(c.instance));
        let ours = self.books.own_device(mdev.uuid, &mdev.parent).is_some();
        format!(
            "device on {} {:?} active {} defined {} ours {ours} held by {:?}",
            mdev.parent,
            mdev.type_id,
            mdev.active,
            mdev.defined,
            holder.map(|i| &i.name)
        )
    }
}

fn mdevs_of(domain: &Domain) -> BTreeSet<Uuid> {
    let doc = DomainDoc::parse(&domain.xml).unwrap();
    doc.mdevs().map(|uuid| uuid.0).collect()
}
