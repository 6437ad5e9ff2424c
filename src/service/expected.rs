//! Guests that are to come running from another host.
//!
//! 1. A guest that is here is never given up: it is taken for this host's own when libvirt has it, whoever says so or nobody.
//! 2. What was made for a guest that does not come is given back after `[policy] live_deadline_sec`.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::Service;
use super::api::Operate;
use super::lifecycle::Subject;
use crate::host::{HostEvent, Whereabouts};
use crate::model::{Fault, FaultKind, InstanceUuid, MdevUuid, MoveKind, OpKind, Usec};
use crate::ops::{Found, Marks, Params, host_fault};

/// How soon after an event a guest that is on its way is looked at once more: the event comes a little before libvirt is done.
const SETTLED: Duration = Duration::from_secs(1);
/// How often it is looked at without an event; libvirtd writes a line into its log each time.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// How soon an end that failed is tried again: each time is one more operation in the journal.
const TRY_AGAIN: Duration = Duration::from_secs(120);

impl Service {
    /// The guest is here, or is not.
    pub(super) async fn plan_welcome(&self, subject: &Subject) -> Result<Params, Fault> {
        let start = match self.arrived(subject.instance.uuid).await? {
            Whereabouts::Here => true,
            Whereabouts::Off { .. } => false,
            Whereabouts::Absent => {
                let text =
                    format!("the guest of {:?} has not come; roll the migration back", subject.instance.name);
                return Err(Fault::new(FaultKind::InvalidRequest, text));
            }
            Whereabouts::UnderWay(_) | Whereabouts::Held => {
                let text = format!("the guest of {:?} is on its way; ask again", subject.instance.name);
                return Err(Fault::new(FaultKind::InstanceBusy, text));
            }
        };
        Ok(Params { start, ..subject.params_of(subject.plans.clone()) })
    }

    /// Where the guest is that is to come here; a domain that has none of its devices is another one.
    async fn arrived(&self, instance: InstanceUuid) -> Result<Whereabouts, Fault> {
        let books = self.store.books();
        let devices: Vec<MdevUuid> = books.claims_of(instance).map(|c| c.uuid).collect();
        let named = books.instance(instance).map(|i| i.name.clone());
        let bare = named.filter(|_| devices.is_empty());
        let found = self.host.find_domain(&Marks { uuid: instance, devices, bare }).await;
        match found.map_err(|e| host_fault(&format!("look for domain {instance}"), &e))? {
            Found::Ours(_) => self.whereabouts(instance).await,
            Found::Absent | Found::Other(_) => Ok(Whereabouts::Absent),
        }
    }

    /// Waits for all guests that are to come.
    pub(super) fn await_all_guests(&self) {
        let books = self.store.books();
        for moving in books.moves().filter(|m| m.kind == MoveKind::LiveIn) {
            self.await_guest(moving.instance);
        }
    }

    /// Waits beside everything else for a guest that is to come; takes it, or gives it up.
    pub(super) fn await_guest(&self, instance: InstanceUuid) {
        if !self.by_itself {
            return;
        }
        let Some(booked) = self.expected_since(instance) else { return };
        let service = self.clone();
        tokio::spawn(async move {
            let deadline = Instant::now() + service.patience_with(booked);
            let mut events = service.host.nodes.events();
            let mut woken = true;
            // One that is given up may be booked again, which is waited for by somebody else.
            while service.expected_since(instance) == Some(booked) {
                let next = match service.arrived(instance).await {
                    Ok(Whereabouts::Here | Whereabouts::Off { .. }) => {
                        service.end_wait(instance, OpKind::LiveCommit).await
                    }
                    Ok(Whereabouts::Absent) if Instant::now() >= deadline => {
                        service.end_wait(instance, OpKind::LiveRollback).await
                    }
                    Ok(Whereabouts::Absent) => deadline,
                    Ok(Whereabouts::UnderWay(_) | Whereabouts::Held) | Err(_) => {
                        Instant::now() + if woken { SETTLED } else { LOOK_AGAIN }
                    }
                };
                woken = tokio::select! {
                    // Lagging behind is a reason to look, too.
                    () = async { while matches!(events.recv().await, Ok(HostEvent::NodeDevices)) {} } => true,
                    () = sleep_until(next) => false,
                };
            }
        });
    }

    /// When the instance was booked, if its guest is to come.
    fn expected_since(&self, instance: InstanceUuid) -> Option<Usec> {
        let books = self.store.books();
        books.move_of(instance).filter(|m| m.kind == MoveKind::LiveIn)?;
        books.instance(instance).map(|i| i.created_usec)
    }

    /// Begins the end, waits for it, and says when to look again if it was none.
    async fn end_wait(&self, instance: InstanceUuid, op: OpKind) -> Instant {
        let changes = self.changes.subscribe();
        let ended = match self.book_operation(Operate::plain(op, &instance.to_string(), None)).await {
            Ok(accepted) => self.outcome(accepted.job, changes).await,
            Err(fault) => Err(fault),
        };
        let pause = match &ended {
            Ok(()) => SETTLED,
            Err(fault) if fault.kind == FaultKind::InstanceBusy => SETTLED,
            Err(fault) => {
                tracing::error!(%instance, "{op} of a guest that was to come: {fault}");
                TRY_AGAIN
            }
        };
        Instant::now() + pause
    }

    /// How long a guest may still be waited for.
    fn patience_with(&self, booked: Usec) -> Duration {
        let age = u64::try_from(self.clock.now_usec().saturating_sub(booked)).unwrap_or(0);
        let all = Duration::from_secs(u64::from(self.settings.now().config.live_deadline_sec));
        all.saturating_sub(Duration::from_micros(age))
    }
}
