//! The operations of the matrix: what each begins on, how it begins, how its instance goes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use mdevirt::host::Hypervisor;
use mdevirt::host::sim::Change;
use mdevirt::model::{Claim, ClaimEvent, DisplayWish, DomainOwner, Fault, InstanceUuid, MoveKind, OpKind};
use mdevirt::service::api::{
    Accepted, ClaimRequest, Operate, OperateWith, PrepareRequest, SpawnRequest, UseCases,
};
use mdevirt::store;

use crate::world::{World, domain_xml, scenario};

/// The instance of every run.
pub const VM: &str = "vm";
pub const VM_UUID: &str = "1fc01460-67d7-4303-a5ea-69a57b994f50";

/// What the host is like before the operation, besides what the operation itself needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given {
    /// Nothing else on it; the guest runs where it can; released devices are removed. Of a migration this is the source.
    Fresh,
    /// Released devices are kept; for what books devices one lies idle on the first card.
    Keep,
    /// The devices fell off the bus.
    Lost,
    /// The guest was off before.
    Off,
    /// A move that has only begun: a resize before its finish, the target of a migration before its own.
    Prepared,
    /// A move that is finished: a resize for destroy, the target of a migration.
    Finished,
}

/// One row of the matrix.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub op: OpKind,
    /// How many devices the instance has.
    pub devices: usize,
    pub given: Given,
    /// How many it gets: of the new flavor, or more.
    pub to: usize,
}

impl Case {
    pub const fn of(op: OpKind, devices: usize, given: Given) -> Self {
        Self { op, devices, given, to: 1 }
    }

    pub fn config(&self) -> PathBuf {
        let file = if self.given == Given::Keep { "two-m60-keep.toml" } else { "two-m60.toml" };
        scenario(file)
    }

    /// Brings a fresh host to where the operation begins.
    pub async fn prepare(&self, world: &World) {
        match self.op {
            OpKind::Spawn | OpKind::Claim | OpKind::MigratePrepare | OpKind::LivePrepare => {}
            OpKind::LiveRollback => self.arrive(world, false).await,
            OpKind::LiveCommit if self.is_target() => {
                self.arrive(world, false).await;
                self.come(world).await;
            }
            OpKind::Release => drop(world.done(world.service().claim(self.claim(self.devices)).await).await),
            OpKind::MigrateFinish => self.arrive(world, false).await,
            OpKind::MigrateConfirm | OpKind::MigrateRevert if self.is_target() => {
                self.arrive(world, self.given == Given::Finished).await;
            }
            _ => {
                self.live(world).await;
                for (op, with) in self.before() {
                    operate(world, op, with).await;
                }
                if self.op == OpKind::LiveCommit {
                    world.make_beside(&claims(world)).await;
                }
            }
        }
        match self.given {
            Given::Keep if self.books_devices() => self.leave_idle(world).await,
            Given::Lost => self.lose(world).await,
            _ => {}
        }
    }

    /// Begins the operation.
    pub async fn begin(&self, world: &World) -> Result<Accepted, Fault> {
        let service = world.service();
        let with = match self.op {
            OpKind::Spawn => return service.spawn(self.spawn()).await,
            OpKind::Claim => return service.claim(self.claim(self.devices)).await,
            OpKind::MigratePrepare | OpKind::LivePrepare => {
                return service.migrate_prepare(self.arrival().await).await;
            }
            OpKind::LiveCommit if !self.is_target() => world.send_beside(&claims(world)),
            OpKind::Attach | OpKind::ResizePrepare => self.flavor(),
            OpKind::Rescue | OpKind::Rebuild => repair(),
            OpKind::Detach => OperateWith { device: Some(claims(world)[0].uuid), ..OperateWith::default() },
            _ => OperateWith::default(),
        };
        service.operate(Operate { with, ..Operate::plain(self.op, VM, None) }).await
    }

    /// Gives back all that the instance holds.
    pub async fn give_back(&self, world: &World) -> Result<Accepted, Fault> {
        let books = world.service().store.books();
        let caller = books.instance(vm()).is_some_and(|i| i.owner == DomainOwner::Caller);
        let op = match books.move_of(vm()).map(|m| m.kind) {
            Some(MoveKind::Out) => OpKind::MigrateConfirm,
            Some(MoveKind::In) => OpKind::MigrateRevert,
            Some(MoveKind::LiveIn) => OpKind::LiveRollback,
            _ if caller => OpKind::Release,
            _ => OpKind::Destroy,
        };
        world.service().operate(Operate::plain(op, VM, None)).await
    }

    /// The domain comes from another host.
    pub fn is_target(&self) -> bool {
        match self.op {
            OpKind::MigratePrepare | OpKind::MigrateFinish | OpKind::LivePrepare | OpKind::LiveRollback => {
                true
            }
            OpKind::LiveCommit => self.given == Given::Finished,
            OpKind::MigrateConfirm | OpKind::MigrateRevert => {
                matches!(self.given, Given::Prepared | Given::Finished)
            }
            _ => false,
        }
    }

    /// What its point of no return brings about is so before it begins: the guest is off already.
    pub fn is_off_at_return(&self) -> bool {
        let prepared = self.op == OpKind::MigrateRevert && self.given == Given::Prepared;
        prepared || (self.op == OpKind::MigrateConfirm && !self.is_target())
    }

    fn books_devices(&self) -> bool {
        use OpKind as O;
        matches!(
            self.op,
            O::Spawn | O::Claim | O::MigratePrepare | O::LivePrepare | O::Attach | O::ResizePrepare
        )
    }

    /// The instance on its host, running or off.
    async fn live(&self, world: &World) {
        world.done(world.service().spawn(self.spawn()).await).await;
        if self.devices == 0 {
            let device = Some(claims(world)[0].uuid);
            operate(world, OpKind::Detach, OperateWith { device, ..OperateWith::default() }).await;
        }
        let off = matches!(self.op, OpKind::Start | OpKind::Restore) || self.given == Given::Off;
        if off {
            operate(world, OpKind::Stop, OperateWith::default()).await;
        }
    }

    /// Operations that come before it.
    fn before(&self) -> Vec<(OpKind, OperateWith)> {
        use OpKind as O;
        let plain = OperateWith::default;
        let prepared = (O::ResizePrepare, self.flavor());
        match self.op {
            O::Resume => vec![(O::Suspend, plain())],
            O::Unrescue => vec![(O::Rescue, repair())],
            O::ResizeFinish => vec![prepared],
            O::ResizeRevert if self.given == Given::Prepared => vec![prepared],
            O::ResizeConfirm | O::ResizeRevert => vec![prepared, (O::ResizeFinish, plain())],
            O::Destroy if self.given == Given::Finished => vec![prepared, (O::ResizeFinish, plain())],
            O::MigrateConfirm | O::MigrateRevert => vec![(O::MigrateBegin, plain())],
            _ => vec![],
        }
    }

    async fn arrive(&self, world: &World, finish: bool) {
        world.done(world.service().migrate_prepare(self.arrival().await).await).await;
        if finish {
            operate(world, OpKind::MigrateFinish, OperateWith::default()).await;
        }
    }

    fn is_live(&self) -> bool {
        matches!(self.op, OpKind::LivePrepare | OpKind::LiveCommit | OpKind::LiveRollback)
    }

    /// The guest is here, with the devices that were made for it.
    async fn come(&self, world: &World) {
        let xml = world.service().render_domain(VM, &own_xml(), DisplayWish::Off).await.unwrap();
        world.sim.define(&xml).await.unwrap();
        world.sim.start(vm()).await.unwrap();
    }

    async fn arrival(&self) -> PrepareRequest {
        let document = self.document().await;
        PrepareRequest { document, live: self.is_live(), ..PrepareRequest::default() }
    }

    /// What another host hands out of such an instance, once for all runs of this program.
    async fn document(&self) -> String {
        static MADE: Mutex<BTreeMap<(usize, bool, bool), String>> = Mutex::new(BTreeMap::new());
        let key = (self.devices, self.given == Given::Off, self.is_live());
        if let Some(made) = MADE.lock().unwrap().get(&key) {
            return made.clone();
        }
        let source = World::of(&scenario("two-m60.xml"), &scenario("two-m60.toml"), "").await;
        Self { op: OpKind::MigrateBegin, ..*self }.live(&source).await;
        let made = if self.is_live() {
            source.service().live_check_source(VM).await.unwrap()
        } else {
            operate(&source, OpKind::MigrateBegin, OperateWith::default()).await;
            source.service().export_instance(VM).await.unwrap()
        };
        MADE.lock().unwrap().insert(key, made.clone());
        made
    }

    /// One idle device on the first card.
    async fn leave_idle(&self, world: &World) {
        let other = InstanceUuid("6b2f4c1e-8a57-4c55-9d3c-0e1f2a3b4c5d".parse().unwrap());
        let earlier = ClaimRequest { instance: other, name: "earlier".into(), ..self.claim(1) };
        world.done(world.service().claim(earlier).await).await;
        world.done(world.service().release("earlier", None).await).await;
    }

    async fn lose(&self, world: &World) {
        for claim in claims(world) {
            world.sim.change(Change::MdevLost(claim.uuid)).await.unwrap();
            if self.op == OpKind::Restore {
                let gone = store::Change::Claim { claim: claim.id, event: ClaimEvent::Vanished };
                world.service().store.observe(vec![gone]).unwrap();
            }
        }
    }

    fn spawn(&self) -> SpawnRequest {
        SpawnRequest {
            domain_xml: own_xml(),
            flavor: flavor(self.devices.max(1)),
            display: DisplayWish::Off,
            operation_id: None,
            dry_run: false,
        }
    }

    fn claim(&self, devices: usize) -> ClaimRequest {
        ClaimRequest { instance: vm(), name: VM.into(), flavor: flavor(devices), operation_id: None }
    }

    fn flavor(&self) -> OperateWith {
        OperateWith { flavor: Some(flavor(self.to)), ..OperateWith::default() }
    }
}

/// An operation that has to succeed.
async fn operate(world: &World, op: OpKind, with: OperateWith) {
    world.done(world.service().operate(Operate { with, ..Operate::plain(op, VM, None) }).await).await;
}

fn own_xml() -> String {
    let named = format!("<name>{VM}</name>");
    domain_xml(VM).replace(&named, &format!("{named}<uuid>{VM_UUID}</uuid>"))
}

/// Another definition of the same domain.
fn repair() -> OperateWith {
    OperateWith { domain_xml: Some(own_xml().replace("65536", "131072")), ..OperateWith::default() }
}

pub fn vm() -> InstanceUuid {
    VM_UUID.parse().unwrap()
}

/// The claims of the instance.
pub fn claims(world: &World) -> Vec<Claim> {
    world.service().store.books().claims_of(vm()).cloned().collect()
}

/// Each device from a card of its own.
fn flavor(devices: usize) -> String {
    (1..=devices).map(|n| format!("resources{n}:VGPU=1")).collect::<Vec<_>>().join(",")
}
