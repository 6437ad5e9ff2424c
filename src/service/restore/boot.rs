//! The host has booted: what ran before runs no more, and what libvirt was to start may have lacked its devices.

use std::collections::BTreeSet;

use super::{gone_since, is_held};
use crate::host::HostError;
use crate::model::{Claim, ClaimRole, ClaimState, DomainOwner, FaultKind, HostScan, InstanceUuid, OpKind};
use crate::ops::{Found, Marks};
use crate::service::Service;
use crate::service::api::Operate;
use crate::store::{Books, StoreError};

/// The fact that tells the boot which the books are of.
const BOOT_ID: &str = "boot_id";

/// The fact with the instances that ran before the boot and were not looked after yet, with blanks between them.
const TO_START: &str = "boot_start";

/// What becomes of a guest that ran before the boot.
enum Guest {
    /// Its devices are not there yet, or nobody can tell.
    Later,
    /// It runs, or is none of ours to start.
    Leave,
    /// libvirt was to start it, and it does not run.
    Start,
}

impl Service {
    /// The boot id if it is not that of the books. One that cannot be read tells nothing.
    pub(super) fn new_boot(&self) -> Option<String> {
        let now = self.host.nodes.boot_id().unwrap_or_else(|err: HostError| {
            tracing::warn!("read the boot id: {err}");
            None
        })?;
        let before = self.store.fact(BOOT_ID).unwrap_or_else(|err| {
            tracing::error!("read the boot id in the books: {err}");
            Some(now.clone())
        });
        (before.as_ref() != Some(&now)).then_some(now)
    }

    /// Writes what a boot has changed, in one transaction. Instances with an operation under way are left to it.
    pub(super) async fn account_for_boot(&self, id: &str, before: &Books, scan: &HostScan) -> bool {
        let mut left = BTreeSet::new();
        let gone = self.confirmed(gone_since(before, &self.store.books(), scan)).await;
        loop {
            let changes = gone.iter().filter(|c| !left.contains(&c.instance)).map(super::vanished).collect();
            let ran = self.to_start().into_iter().chain(ran_before(before, &left));
            let list: BTreeSet<String> = ran.map(|instance| instance.to_string()).collect();
            let list = list.into_iter().collect::<Vec<_>>().join(" ");
            match self.store.observe_with(changes, vec![(BOOT_ID, id.to_owned()), (TO_START, list)]) {
                Ok(()) => break,
                Err(StoreError::Busy { instance, .. }) if left.insert(instance) => {}
                Err(err) => {
                    tracing::error!("write what the boot changed: {err}");
                    return false;
                }
            }
        }
        let missing = gone.iter().filter(|c| !left.contains(&c.instance)).count();
        tracing::info!(boot = id, missing, left = left.len(), "the books are of this boot of the host now");
        self.devices.state().skipped.extend(left);
        true
    }

    fn to_start(&self) -> BTreeSet<InstanceUuid> {
        let list = self.store.fact(TO_START).unwrap_or_else(|err| {
            tracing::error!("read which guests ran before the boot: {err}");
            None
        });
        list.iter().flat_map(|list| list.split_whitespace()).filter_map(|text| text.parse().ok()).collect()
    }

    /// Starts guests that libvirt was to start at boot and could not, once their devices are there.
    pub(super) async fn start_guests(&self) {
        let list = self.to_start();
        let mut left = list.clone();
        for instance in &list {
            let done = match self.guest(*instance).await {
                Guest::Later => false,
                Guest::Leave => {
                    self.leave_stopped(*instance).await;
                    true
                }
                Guest::Start if self.is_plain(*instance) => {
                    self.start_plain(*instance);
                    true
                }
                Guest::Start => self.start_guest(*instance).await,
            };
            if done {
                left.remove(instance);
            }
        }
        if left == list {
            return;
        }
        let text = left.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        if let Err(err) = self.store.set_fact(TO_START, &text) {
            tracing::error!("write which guests are to be started: {err}");
        }
    }

    async fn guest(&self, instance: InstanceUuid) -> Guest {
        let books = self.store.books();
        let ours = books.instance(instance).is_some_and(|i| i.owner != DomainOwner::Caller);
        let claims: Vec<&Claim> =
            books.claims_of(instance).filter(|c| c.role == ClaimRole::Primary).collect();
        // Somebody has switched it off since.
        if !ours || claims.iter().any(|c| c.state == ClaimState::Parked) {
            return Guest::Leave;
        }
        if claims.iter().any(|c| !is_held(c.state)) {
            return Guest::Later;
        }
        let marks = Marks { uuid: instance, devices: claims.iter().map(|c| c.uuid).collect(), bare: None };
        match self.host.find_domain(&marks).await {
            Ok(Found::Ours(domain)) if !domain.running => {}
            Ok(Found::Ours(_) | Found::Absent | Found::Other(_)) => return Guest::Leave,
            Err(_) => return Guest::Later,
        }
        match self.host.hypervisor.autostarts(instance).await {
            Ok(true) => Guest::Start,
            Ok(false) => Guest::Leave,
            Err(_) => Guest::Later,
        }
    }

    /// libvirt's own: it is started as libvirt would have done it, with its hook.
    fn start_plain(&self, instance: InstanceUuid) {
        tracing::info!(%instance, "libvirt was to start it at boot; its devices are there now");
        let service = self.clone();
        tokio::spawn(async move {
            if let Err(err) = service.host.hypervisor.start(instance).await {
                tracing::error!(%instance, "start it after the boot: {err}");
                service.leave_stopped(instance).await;
            }
        });
    }

    /// False if it has to be asked again.
    async fn start_guest(&self, instance: InstanceUuid) -> bool {
        tracing::info!(%instance, "libvirt was to start it at boot; its devices are there now");
        match self.book_operation(Operate::plain(OpKind::Start, &instance.to_string(), None)).await {
            Ok(_) => true,
            Err(fault) => {
                let again = matches!(
                    fault.kind,
                    FaultKind::InstanceBusy | FaultKind::RestorePending | FaultKind::ShuttingDown
                );
                if again {
                    self.devices.state().skipped.insert(instance);
                } else {
                    tracing::error!(%instance, "start it after the boot: {fault}");
                }
                !again
            }
        }
    }
}

/// Instances of ours whose guest ran, but for those that are left to their operation.
fn ran_before(before: &Books, left: &BTreeSet<InstanceUuid>) -> Vec<InstanceUuid> {
    let ran = |c: &&Claim| c.role == ClaimRole::Primary && c.state == ClaimState::InUse;
    before.claims().filter(ran).map(|c| c.instance).filter(|i| !left.contains(i)).collect()
}
