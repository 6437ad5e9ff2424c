//! Whoever drives both daemons: finds out of their books which of them has to be asked for what, and keeps the order of a
//! migration. Nothing is confirmed on the source before the target has it, nothing is reverted there while it has.

use mdevirt::model::{DomainOwner, InstanceUuid, MoveKind, MovePhase, OpKind};
use mdevirt::service::api::{
    ClaimRequest, LiveOptions, Operate, OperateWith, PrepareRequest, SpawnRequest, UseCases,
};
use uuid::Uuid;

use crate::act::{Flavor, VMS, Verb};
use crate::run::Pair;
use crate::world::{World, spawn_request};

/// What a daemon is asked for.
#[derive(Debug)]
pub enum Asked {
    Operate(Operate),
    Spawn(SpawnRequest),
    Claim(ClaimRequest),
    Arrive(PrepareRequest),
}

impl Asked {
    /// Asks.
    pub async fn of(self, world: &World) -> Result<mdevirt::service::api::Accepted, mdevirt::model::Fault> {
        match self {
            Self::Operate(request) => world.service().operate(request).await,
            Self::Spawn(request) => world.service().spawn(request).await,
            Self::Claim(request) => world.service().claim(request).await,
            Self::Arrive(request) => world.service().migrate_prepare(request).await,
        }
    }
}

/// The UUID of a VM.
pub fn uuid(vm: usize) -> InstanceUuid {
    InstanceUuid(Uuid::from_u128(0xa0 + vm as u128))
}

/// The domain of a VM; `disk` tells a rescue from a rebuild.
pub fn xml(vm: usize, disk: &str) -> String {
    format!(
        "<domain type='test'>\n  <name>{}</name>\n  <uuid>{}</uuid>\n  <memory>65536</memory>\n  <os><type>hvm</type></os>\n  \
         <description>{disk}</description>\n  <devices>\n  </devices>\n</domain>\n",
        VMS[vm],
        uuid(vm)
    )
}

/// How an instance stands on one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stand {
    pub moving: Option<(MoveKind, MovePhase)>,
    pub busy: bool,
    pub owner: DomainOwner,
    /// It was evacuated from here, and lives on the other host.
    pub stale: bool,
}

impl Stand {
    pub fn leaves(self) -> bool {
        self.moving.is_some_and(|(kind, _)| kind.leaves())
    }

    /// It is to come here while it runs, and is at home elsewhere until it has come.
    pub fn expected(self) -> bool {
        matches!(self.moving, Some((MoveKind::LiveIn, _)))
    }

    /// It is at home here.
    pub fn at_home(self) -> bool {
        !self.leaves() && !self.stale && !self.expected()
    }
}

/// How it stands on both.
pub fn stands(pair: &Pair, vm: usize) -> [Option<Stand>; 2] {
    let is_on = |host: usize| pair.seats[host].world().service().store.books().instance(uuid(vm)).is_some();
    let evacuated = |host| pair.evacuated.get(&vm) == Some(&host) && is_on(1 - host);
    [0, 1].map(|host| {
        let store = &pair.seats[host].world().service().store;
        let books = store.books();
        let instance = books.instance(uuid(vm))?;
        let moving = books.move_of(uuid(vm)).map(|m| (m.kind, m.phase));
        let busy = store.live_saga(uuid(vm)).unwrap().is_some();
        Some(Stand { moving, busy, owner: instance.owner, stale: evacuated(host) })
    })
}

/// The next operation of the way that the instance is on; `None` if it is on none.
fn onward(all: &[Option<Stand>; 2]) -> Option<Verb> {
    let moves = || all.iter().flatten().filter_map(|s| s.moving);
    let prepared = |phase| if phase == MovePhase::Prepared { Verb::Finish } else { Verb::Confirm };
    if let Some((_, phase)) = moves().find(|(kind, _)| *kind == MoveKind::In) {
        return Some(prepared(phase));
    }
    match moves().next() {
        Some((MoveKind::Out, _)) if all.iter().flatten().count() > 1 => Some(Verb::Confirm),
        Some((MoveKind::Out, _)) => Some(Verb::Arrive),
        Some((MoveKind::LiveOut | MoveKind::LiveIn, _)) => Some(Verb::Send),
        Some((MoveKind::Rescue, _)) => Some(Verb::Unrescue),
        Some((MoveKind::Resize | MoveKind::In, phase)) => Some(prepared(phase)),
        None => all.iter().flatten().any(|s| s.stale).then_some(Verb::Forget),
    }
}

fn arrival(pair: &Pair, from: usize, vm: usize, evacuate: bool) -> Option<PrepareRequest> {
    let document = pair.seats[from].on(async |world| world.service().export_instance(VMS[vm]).await).ok()?;
    Some(arriving(document, evacuate))
}

fn arriving(document: String, evacuate: bool) -> PrepareRequest {
    PrepareRequest { document, evacuate, ..PrepareRequest::default() }
}

/// The next step of a live migration: prepared on the other host, sent, taken there.
fn send(pair: &Pair, vm: usize, all: &[Option<Stand>; 2]) -> Option<(usize, Asked)> {
    let commit = |with| Asked::Operate(Operate { with, ..Operate::plain(OpKind::LiveCommit, VMS[vm], None) });
    let Some(target) = (0..2).find(|host| all[*host].is_some_and(Stand::expected)) else {
        let source = (0..2).find(|host| all[*host].is_some_and(|s| s.at_home() && !s.busy))?;
        if all[1 - source].is_some() {
            return None;
        }
        let document =
            pair.seats[source].on(async |world| world.service().live_check_source(VMS[vm]).await).ok()?;
        return Some((1 - source, Asked::Arrive(PrepareRequest { live: true, ..arriving(document, false) })));
    };
    let source = 1 - target;
    match all[source] {
        None => Some((target, commit(OperateWith::default()))),
        Some(stand) if stand.busy || !stand.at_home() => None,
        Some(_) => {
            let there = pair.seats[target].world();
            let sagas = there.service().store.recent_sagas(100).unwrap();
            let prepared =
                sagas.iter().rfind(|row| row.instance == uuid(vm) && row.op == OpKind::LivePrepare)?;
            let document = prepared.result.as_ref()?.get("document")?.to_string();
            let live = LiveOptions {
                document: Some(document),
                uri: Some(there.sim.address()),
                ..LiveOptions::default()
            };
            Some((source, commit(OperateWith { live, ..OperateWith::default() })))
        }
    }
}

/// Which daemon is asked for what; `None` if the orchestrator knows better.
pub fn resolve(pair: &Pair, vm: usize, verb: Verb, new_at: usize) -> Option<(usize, Asked)> {
    let all = stands(pair, vm);
    let with = |test: fn(Stand) -> bool| (0..2).find(|host| all[*host].is_some_and(test));
    let home = with(Stand::at_home).or_else(|| with(|_| true));
    let source = with(|s| matches!(s.moving, Some((MoveKind::Out, _))));
    let expected = with(Stand::expected);
    let target = with(|s| matches!(s.moving, Some((MoveKind::In, _))));
    let other = source.map(|host| 1 - host);
    let plain = |op| Some((home.unwrap_or(new_at), Asked::Operate(Operate::plain(op, VMS[vm], None))));
    let at = |host: usize, op| Some((host, Asked::Operate(Operate::plain(op, VMS[vm], None))));
    let more = |op, with| {
        Some((home.unwrap_or(new_at), Asked::Operate(Operate { with, ..Operate::plain(op, VMS[vm], None) })))
    };
    let flavored = |op, flavor: Flavor| {
        more(op, OperateWith { flavor: Some(flavor.text().into()), ..Default::default() })
    };
    let defined =
        |op, disk: &str| more(op, OperateWith { domain_xml: Some(xml(vm, disk)), ..Default::default() });
    match verb {
        Verb::Send => send(pair, vm, &all),
        // Of a guest that has gone nothing is left to go back to.
        Verb::Revert if expected.is_some() => {
            let target = expected.filter(|host| all[1 - host].is_some_and(|s| s.at_home() && !s.busy))?;
            at(target, OpKind::LiveRollback)
        }
        Verb::Onward => resolve(pair, vm, onward(&all)?, new_at),
        Verb::Spawn(flavor) => {
            let request = SpawnRequest { domain_xml: xml(vm, "first"), ..spawn_request("", flavor.text()) };
            Some((home.unwrap_or(new_at), Asked::Spawn(request)))
        }
        Verb::Claim(flavor) => {
            let (instance, name) = (uuid(vm), VMS[vm].to_owned());
            let request = ClaimRequest { instance, name, flavor: flavor.text().into(), operation_id: None };
            Some((home.unwrap_or(new_at), Asked::Claim(request)))
        }
        Verb::Destroy => match home.and_then(|host| all[host]).map(|s| s.owner) {
            Some(DomainOwner::Caller) => plain(OpKind::Release),
            _ => plain(OpKind::Destroy),
        },
        Verb::Start => plain(OpKind::Start),
        Verb::Stop => plain(OpKind::Stop),
        Verb::Reboot => plain(OpKind::Reboot),
        Verb::Suspend => plain(OpKind::Suspend),
        Verb::Resume => plain(OpKind::Resume),
        Verb::Restore => plain(OpKind::Restore),
        Verb::Unrescue => plain(OpKind::Unrescue),
        Verb::Rescue => defined(OpKind::Rescue, "rescue"),
        Verb::Rebuild => defined(OpKind::Rebuild, "rebuilt"),
        Verb::Attach(flavor) => flavored(OpKind::Attach, flavor),
        Verb::Resize(flavor) => flavored(OpKind::ResizePrepare, flavor),
        Verb::Detach => {
            let books = pair.seats[home?].world().service().store.books();
            let device = books.claims_of(uuid(vm)).next().map(|c| c.uuid);
            more(OpKind::Detach, OperateWith { device, ..Default::default() })
        }
        Verb::Leave if all.iter().flatten().count() > 1 => None,
        Verb::Leave => plain(OpKind::MigrateBegin),
        Verb::Arrive => {
            let source = source.filter(|host| all[*host].is_some_and(|s| !s.busy))?;
            Some((other?, Asked::Arrive(arrival(pair, source, vm, false)?)))
        }
        Verb::Evacuate => {
            let alone = all.iter().flatten().count() == 1;
            let from =
                home.filter(|host| alone && all[*host].is_some_and(|s| !s.busy && s.moving.is_none()))?;
            Some((1 - from, Asked::Arrive(arrival(pair, from, vm, true)?)))
        }
        Verb::Forget => {
            let old = with(|s| s.stale && !s.busy)?;
            // Until it is confirmed there it may still come back to nothing.
            let arrived = all[1 - old].is_some_and(|s| s.moving.is_none() && !s.busy);
            at(old, OpKind::Destroy).filter(|_| arrived)
        }
        Verb::Finish => match (target, source) {
            (Some(target), Some(source)) if all[source].is_some_and(|s| !s.busy) => {
                at(target, OpKind::MigrateFinish)
            }
            (Some(target), None) if all[1 - target].is_some_and(|s| s.stale) => {
                at(target, OpKind::MigrateFinish)
            }
            (Some(_), _) => None,
            (None, _) => plain(OpKind::ResizeFinish),
        },
        Verb::Confirm => match (target, other.and_then(|host| all[host])) {
            (Some(target), _) => at(target, OpKind::MigrateConfirm),
            (None, Some(there)) if !there.busy => at(source?, OpKind::MigrateConfirm),
            (None, None) if source.is_none() => plain(OpKind::ResizeConfirm),
            (None, _) => None,
        },
        Verb::Revert => match (target, other.and_then(|host| all[host])) {
            (Some(target), _) => at(target, OpKind::MigrateRevert),
            (None, Some(_)) => None,
            (None, None) if source.is_some() => at(source?, OpKind::MigrateRevert),
            (None, None) => plain(OpKind::ResizeRevert),
        },
    }
}
