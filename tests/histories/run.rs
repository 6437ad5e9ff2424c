//! Two hosts, each a daemon in a runtime of its own: it dies with it. The clocks are paused, so that waits cost nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mdevirt::host::Hypervisor;
use mdevirt::host::sim::{Call, Change, FailKind, FailRule};
use mdevirt::model::{Claim, HostScan, JobId, OpKind, SagaState};
use mdevirt::saga::{Action, FailPoints};
use mdevirt::service::api::UseCases;
use tokio::runtime::{Builder, Runtime};

use crate::act::{Act, Trouble, VMS, Verb};
use crate::judge;
use crate::orchestrator::{resolve, uuid};
use crate::world::World;

/// Of the paused clock: longer than any bounded wait of the product.
const LONG: Duration = Duration::from_secs(60);

/// One host.
pub struct Seat {
    world: Option<World>,
    life: Option<Runtime>,
    away: bool,
    pub before: HostScan,
}

fn life() -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/histories").join(name)
}

fn rule(call: Call, nth: u8, times: u8, kind: FailKind) -> FailRule {
    FailRule { call, parent: None, instance: None, nth: u32::from(nth) + 1, times: times.into(), kind }
}

impl Seat {
    fn new(scenario: &str) -> Self {
        let life = life();
        let (world, before) = life.block_on(async {
            let world = World::named(scenario, &file(scenario), &file("host.toml")).await;
            let before = world.scan().await;
            (world, before)
        });
        Self { world: Some(world), life: Some(life), away: false, before }
    }

    pub fn world(&self) -> &World {
        self.world.as_ref().unwrap()
    }

    /// Does something in the daemon's runtime, while its tasks go on.
    pub fn on<T>(&self, work: impl AsyncFnOnce(&World) -> T) -> T {
        self.life.as_ref().unwrap().block_on(work(self.world()))
    }

    fn crash(&mut self, arm: impl FnOnce(&FailPoints)) {
        let remains = self.world.take().unwrap().fall();
        drop(self.life.take());
        let life = life();
        self.world = Some(life.block_on(remains.rise(arm)));
        self.life = Some(life);
    }

    /// Returns once every task waits for something outside.
    pub fn settle(&self) {
        self.on(async |world| {
            tokio::time::sleep(Duration::from_millis(1)).await;
            if world.service().jobs_running() > 0 {
                tokio::time::sleep(LONG).await;
            }
        });
    }

    /// Waits until a job is at the point, or nothing goes on any more.
    fn comes_to(&self, point: &str) -> bool {
        self.on(async |world| {
            tokio::select! {
                biased;
                () = world.points.reached(point) => true,
                () = tokio::time::sleep(LONG) => false,
            }
        })
    }

    fn set_away(&mut self, away: bool) {
        self.away = away;
        self.heal();
    }

    /// Nothing is wrong any more but what lasts.
    fn heal(&self) {
        self.world().sim.heal();
        if self.away {
            self.world().sim.faults().fail(rule(Call::Any, 0, 0, FailKind::Unreachable));
        }
    }
}

/// What an instance is on one host, apart from whether it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Core {
    /// Key, device, place.
    pub devices: Vec<(String, String, String)>,
    pub flavor: Option<String>,
    /// Not known while libvirt is away.
    pub definition: Option<String>,
}

/// A job of which the end is still to be judged.
struct Pending {
    host: usize,
    job: JobId,
    vm: usize,
    op: OpKind,
    before: Core,
}

/// See the head of the file.
pub struct Pair {
    pub seats: [Seat; 2],
    /// What a revert has to bring back.
    olds: BTreeMap<(usize, usize), Core>,
    /// The host that a VM was last evacuated from.
    pub evacuated: BTreeMap<usize, usize>,
    pending: Vec<Pending>,
    /// Something may have happened for which an operator is needed.
    hard: bool,
    /// Instances of stuck jobs.
    pub stuck: Vec<(usize, usize)>,
    pub odds: Vec<String>,
}

impl Pair {
    pub fn new() -> Self {
        Self {
            seats: ["a.xml", "b.xml"].map(Seat::new),
            olds: BTreeMap::new(),
            evacuated: BTreeMap::new(),
            pending: Vec::new(),
            hard: false,
            stuck: Vec::new(),
            odds: Vec::new(),
        }
    }

    /// Tells a history; what is odd at its end, or on the way.
    pub fn tell(mut self, acts: &[Act]) -> Vec<String> {
        let aloud = std::env::var_os("MDEVIRT_TELL").is_some();
        for act in acts {
            if aloud {
                eprintln!("{act:?}");
            }
            self.act(*act);
            self.judge_ended();
            if !self.odds.is_empty() {
                self.odds.push(format!("at {act:?}"));
                return self.odds;
            }
        }
        self.rest();
        judge::at_rest(&mut self);
        if self.odds.is_empty() {
            judge::at_the_end(&mut self);
        }
        self.odds
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Ask { vm, verb, host, trouble } => return self.ask(vm, verb, host, trouble),
            Act::Restart(host) => self.seats[host].crash(|_| ()),
            Act::LibvirtAway(host) => self.seats[host].set_away(true),
            Act::LibvirtBack(host) => self.seats[host].set_away(false),
            Act::Pull(host, card) => self.change(host, Change::ParentGone(parent(card))),
            Act::PutBack(host, card) => self.change(host, Change::ParentBack(parent(card))),
            Act::Lose(vm) => {
                for host in 0..2 {
                    let books = self.seats[host].world().service().store.books();
                    if let Some(claim) = books.claims_of(uuid(vm)).next() {
                        self.change(host, Change::MdevLost(claim.uuid));
                    }
                }
            }
            Act::Off(vm) | Act::On(vm) => self.turn(vm, matches!(act, Act::On(_))),
        }
        self.seats.iter().for_each(Seat::settle);
    }

    fn change(&mut self, host: usize, change: Change) {
        self.hard = true;
        self.seats[host].on(async |world| world.sim.change(change).await.unwrap());
    }

    /// Somebody outside the daemon, where the guest is at home.
    fn turn(&mut self, vm: usize, on: bool) {
        let stands = crate::orchestrator::stands(self, vm);
        for host in 0..2 {
            if stands[host].is_some_and(|s| !s.leaves() && !s.stale) {
                self.turn_on(host, vm, on);
            }
        }
    }

    fn turn_on(&mut self, host: usize, vm: usize, on: bool) {
        self.seats[host].on(async |world| {
            let saved = world.sim.is_saved(uuid(vm)).await.unwrap_or(true);
            // Whether libvirt does it is its own affair.
            let _ = match on {
                true if saved => Ok(()),
                true => world.sim.start(uuid(vm)).await,
                false => world.sim.stop(uuid(vm)).await,
            };
        });
    }

    fn ask(&mut self, vm: usize, verb: Verb, new_at: usize, trouble: Trouble) {
        let Some((host, asked)) = resolve(self, vm, verb, new_at) else { return };
        if verb == Verb::Evacuate {
            self.evacuated.insert(vm, 1 - host);
            self.turn_on(1 - host, vm, false);
        }
        let before = self.core(host, vm);
        let seat = &mut self.seats[host];
        let faults = seat.world().sim.faults();
        match trouble {
            Trouble::Refused(nth) | Trouble::RefusedAndCrash(nth, _) => {
                self.hard = true;
                faults.fail(rule(Call::Any, nth, 1, FailKind::Refused));
            }
            Trouble::AnswerLost(nth) => faults.fail(rule(Call::Any, nth, 1, FailKind::AnswerLost)),
            Trouble::Away(nth, times) => faults.fail(rule(Call::Any, nth, times, FailKind::Unreachable)),
            Trouble::Nothing | Trouble::Crash(_) | Trouble::CrashTwice(..) => {}
        }
        let (first, second) = match trouble {
            Trouble::Crash(first) | Trouble::RefusedAndCrash(_, first) => (Some(first), None),
            Trouble::CrashTwice(first, second) => (Some(first), Some(second)),
            _ => (None, None),
        };
        // The job has not begun to run when its points are armed: its task waits for the first pause of this one.
        let accepted = seat.on(async |world| {
            let accepted = asked.of(world).await?;
            let script = world.script_of(accepted.job);
            let points = script.points();
            let point = |n: u8| points.get(usize::from(n) % points.len().max(1)).cloned();
            let armed = (first.and_then(point), second.and_then(point));
            if let Some(point) = armed.0.as_ref().filter(|_| accepted.fresh) {
                world.points.arm(point, Action::Pause, Some(1));
            }
            Ok::<_, mdevirt::model::Fault>((accepted, script.op, armed))
        });
        match accepted {
            Ok((accepted, op, (first, second))) if accepted.fresh => {
                let armed = [first.clone(), second.clone()];
                if let Some(first) = first.filter(|point| seat.comes_to(point)) {
                    seat.crash(|points| {
                        if let Some(second) = &second {
                            points.arm(second, Action::Pause, Some(1));
                        }
                    });
                    if second.is_some_and(|second| second != first && seat.comes_to(&second)) {
                        seat.crash(|_| ());
                    }
                }
                // What was not come to is for nobody else.
                armed.iter().flatten().for_each(|point| seat.world().points.disarm(point));
                seat.settle();
                self.pending.push(Pending { host, job: accepted.job, vm, op, before });
            }
            Ok(_) => {}
            Err(_) => {
                seat.heal();
                seat.settle();
                if crate::orchestrator::stands(self, vm)[host].is_none_or(|s| !s.busy) {
                    let after = self.core(host, vm);
                    self.compare("a refused operation", (host, vm), &before, &after);
                }
            }
        }
        self.seats[host].heal();
        self.seats[host].settle();
    }

    /// What it is now.
    pub fn core(&self, host: usize, vm: usize) -> Core {
        let seat = &self.seats[host];
        let books = seat.world().service().store.books();
        let device = |c: &Claim| (c.id.to_string(), c.uuid.to_string(), c.parent.to_string());
        Core {
            devices: books.claims_of(uuid(vm)).map(device).collect(),
            flavor: books.instance(uuid(vm)).and_then(|i| i.flavor.clone()),
            definition: match seat.away {
                true => None,
                false => seat.on(async |world| world.sim.definition(uuid(vm)).await.unwrap()),
            },
        }
    }

    fn compare(&mut self, what: &str, (host, vm): (usize, usize), before: &Core, after: &Core) {
        let away = before.definition.is_none() || after.definition.is_none();
        let same = before.devices == after.devices && before.flavor == after.flavor;
        if !same || (!away && before.definition != after.definition) {
            self.odds.push(format!("{what} of {} on host {host}: {before:#?} became {after:#?}", VMS[vm]));
        }
    }

    /// Looks at the jobs that have ended.
    fn judge_ended(&mut self) {
        for pending in std::mem::take(&mut self.pending) {
            let Pending { host, job: id, vm, op, .. } = pending;
            let job = self.seats[host].on(async |world| world.service().job(id).await.unwrap());
            match job.state {
                SagaState::Running | SagaState::Unwinding => self.pending.push(pending),
                SagaState::Done => self.done(host, vm, op, pending.before),
                SagaState::Failed => {
                    let after = self.core(host, vm);
                    self.compare(&format!("{op}, which failed,"), (host, vm), &pending.before, &after);
                }
                SagaState::Stuck if self.hard => self.stuck.push((host, vm)),
                SagaState::Stuck => {
                    self.odds.push(format!("{op} of {} got stuck: {:?}", VMS[vm], job.result));
                }
            }
        }
    }

    /// How all operations on an instance ended, for the reader of an odd history.
    pub fn told_of(&self, host: usize, vm: usize) -> String {
        let sagas = self.seats[host].world().service().store.recent_sagas(100).unwrap();
        let of = sagas.into_iter().filter(|row| row.instance == uuid(vm));
        of.map(|row| format!("{} {}", row.op, row.state)).collect::<Vec<_>>().join(", ")
    }

    fn done(&mut self, host: usize, vm: usize, op: OpKind, before: Core) {
        match op {
            OpKind::ResizePrepare | OpKind::Rescue | OpKind::MigrateBegin => {
                drop(self.olds.insert((host, vm), before));
            }
            OpKind::ResizeRevert | OpKind::MigrateRevert | OpKind::Unrescue => {
                let Some(old) = self.olds.remove(&(host, vm)) else { return };
                let after = self.core(host, vm);
                self.compare(&format!("{op}"), (host, vm), &old, &after);
            }
            OpKind::Destroy
            | OpKind::MigrateConfirm
            | OpKind::Release
            | OpKind::LiveCommit
            | OpKind::LiveRollback => {
                // The target of a migration keeps what it has, also what a stuck operation left.
                if self.seats[host].world().service().store.books().instance(uuid(vm)).is_none() {
                    self.stuck.retain(|it| *it != (host, vm));
                }
                self.olds.remove(&(host, vm));
            }
            _ => {}
        }
    }

    /// Everything is back, and all that was begun comes to its end.
    fn rest(&mut self) {
        for host in 0..2 {
            self.seats[host].set_away(false);
            for card in 0x81..=0x83 {
                let back = Change::ParentBack(parent(card));
                self.seats[host].on(async |world| world.sim.change(back).await.unwrap());
            }
            self.seats[host].settle();
            let open = self.seats[host].world().service().jobs_running();
            if open > 0 {
                self.odds.push(format!("{open} jobs of host {host} do not come to an end"));
            }
        }
        self.judge_ended();
    }

    /// An operation that has to succeed now.
    pub fn must(&mut self, host: usize, vm: usize, op: OpKind) {
        let ended = self.seats[host].on(async |world| {
            let request = mdevirt::service::api::Operate::plain(op, VMS[vm], None);
            let accepted = world.service().operate(request).await?;
            Ok::<_, mdevirt::model::Fault>(world.ended(accepted.job).await)
        });
        match ended {
            Ok(job) if job.state == SagaState::Done => {}
            Ok(job) => {
                self.odds.push(format!("{op} of {} on host {host}: {} {:?}", VMS[vm], job.state, job.result));
            }
            Err(fault) => self.odds.push(format!("{op} of {} on host {host} is refused: {fault}", VMS[vm])),
        }
    }
}

fn parent(card: u8) -> mdevirt::model::ParentAddr {
    format!("0000:{card:02x}:00.0").parse().unwrap()
}
