//! A host whose daemon can end and start again, each life in a runtime of its own on a paused clock.

use std::time::Duration;

use mdevirt::host::sim::{Change, SimHost};
use mdevirt::model::{Claim, ClaimState, FindingKind, Instance, MdevUuid};
use mdevirt::service::api::UseCases;
use tokio::runtime::{Builder, Runtime};

use crate::world::World;

/// The configured deadline of a restore.
pub const DEADLINE: Duration = Duration::from_secs(300);

/// Longer than anything is waited for but the deadline of a restore.
const HANG: Duration = Duration::from_secs(3600);

/// One with an A2 (functions), an M60 and a T4 (classic) and an integrated one: six instances.
pub const SIX: [(&str, &str); 6] = [
    ("gold-1", "resources:VGPU=1,trait:CUSTOM_GOLD=required"),
    ("gold-2", "resources:VGPU=1,trait:CUSTOM_GOLD=required"),
    ("silver-1", "resources:VGPU=1,trait:CUSTOM_SILVER=required"),
    ("silver-2", "resources:VGPU=1,trait:CUSTOM_SILVER=required"),
    ("t4", "resources:VGPU=1,trait:CUSTOM_T4=required"),
    ("gvt", "resources:CUSTOM_GVTG=1"),
];

/// See the head of the file.
pub struct Machine {
    life: Option<Runtime>,
    world: Option<World>,
}

fn life() -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

impl Machine {
    /// A scenario with instances that run.
    pub fn with(scenario: &str, instances: &[(&str, &str)]) -> Self {
        let life = life();
        let world = life.block_on(async {
            let world = World::restoring(scenario).await;
            for (name, flavor) in instances {
                world.spawn(name, flavor).await;
            }
            world
        });
        let machine = Self { life: Some(life), world: Some(world) };
        machine.settle();
        machine
    }

    pub fn world(&self) -> &World {
        self.world.as_ref().unwrap()
    }

    /// Does something while the daemon runs.
    pub fn on<T>(&self, work: impl AsyncFnOnce(&World) -> T) -> T {
        let work = async { tokio::time::timeout(HANG, work(self.world())).await };
        self.life.as_ref().unwrap().block_on(work).unwrap_or_else(|_| panic!("it hangs"))
    }

    /// Changes the host, and waits until the daemon has done what it does about it.
    pub fn change(&self, change: Change) {
        self.on(async |world| world.sim.change(change).await.unwrap());
        self.settle();
    }

    /// Until every task waits for something and no job is under way. The clock goes on by less than a deadline.
    pub fn settle(&self) {
        self.on(async |world| {
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                world.quiet().await;
            }
        });
    }

    /// The daemon ends, something happens to the host, the next daemon starts.
    pub fn restart(&mut self, meanwhile: impl AsyncFnOnce(&SimHost)) {
        let remains = self.world.take().unwrap().fall();
        drop(self.life.take());
        let life = life();
        self.world = Some(life.block_on(async {
            meanwhile(&remains.sim).await;
            remains.rise(|_| ()).await
        }));
        self.life = Some(life);
    }

    /// The host boots again with these changes.
    pub fn reboot(&mut self, changes: &[Change]) {
        self.restart(async |sim| {
            sim.change(Change::Reboot).await.unwrap();
            for change in changes {
                sim.change(change.clone()).await.unwrap();
            }
        });
        self.settle();
    }

    pub fn instance(&self, name: &str) -> Instance {
        let books = self.world().service().store.books();
        books.instances_named(name).next().unwrap_or_else(|| panic!("no instance {name}")).clone()
    }

    pub fn claims(&self, name: &str) -> Vec<Claim> {
        let uuid = self.instance(name).uuid;
        self.world().service().store.books().claims_of(uuid).cloned().collect()
    }

    pub fn claim(&self, name: &str) -> Claim {
        self.claims(name).remove(0)
    }

    pub fn state(&self, name: &str) -> ClaimState {
        self.claim(name).state
    }

    pub fn states(&self, of: &[(&str, &str)]) -> Vec<String> {
        of.iter().map(|(name, _)| format!("{name} {}", self.state(name))).collect()
    }

    /// Whether the claim's device is in the kernel, with its UUID, on its parent.
    pub fn is_there(&self, claim: &Claim) -> bool {
        let scan = self.on(async |world| world.scan().await);
        scan.mdevs_with(claim.uuid).any(|m| m.active && m.parent == claim.parent)
    }

    pub fn runs(&self, name: &str) -> bool {
        let uuid = self.instance(name).uuid;
        self.on(async |world| world.running(uuid).await).unwrap_or_default()
    }

    /// What status says of this device.
    pub fn finding(&self, uuid: MdevUuid) -> String {
        let status = self.on(async |world| world.service().status().await.unwrap());
        let of = |f: &&mdevirt::model::Finding| {
            f.kind == FindingKind::DeviceMissing && f.about == uuid.to_string()
        };
        status.findings.iter().find(of).map(|f| f.text.clone()).unwrap_or_default()
    }

    pub fn progress(&self) -> String {
        let status = self.on(async |world| world.service().status().await.unwrap());
        status.restore.map(|view| view.to_string()).unwrap_or_default()
    }
}
