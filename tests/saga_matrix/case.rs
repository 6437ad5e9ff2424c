//! The operations of the matrix: what each begins on, how it begins, how its instance goes.

use std::path::PathBuf;

use mdevirt::host::sim::Change;
use mdevirt::model::{Claim, DisplayWish, Fault, InstanceUuid, OpKind};
use mdevirt::service::api::{Accepted, ClaimRequest, SpawnRequest, UseCases};

use crate::world::{World, domain_xml, scenario};

/// The instance of every run.
pub const VM: &str = "vm";
pub const VM_UUID: &str = "1fc01460-67d7-4303-a5ea-69a57b994f50";

/// What the host is like before the operation, besides what the operation itself needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given {
    /// Nothing else on it; released devices are removed.
    Fresh,
    /// Released devices are kept; for spawn and claim one lies idle on the first card.
    Keep,
    /// The devices of the stopped VM fell off the bus.
    Lost,
}

/// One row of the matrix.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub op: OpKind,
    pub devices: usize,
    pub given: Given,
}

impl Case {
    pub fn config(&self) -> PathBuf {
        let file = if self.given == Given::Keep { "two-m60-keep.toml" } else { "two-m60.toml" };
        scenario(file)
    }

    /// Brings a fresh host to where the operation begins.
    pub async fn prepare(&self, world: &World) {
        match self.op {
            OpKind::Spawn | OpKind::Claim if self.given == Given::Keep => {
                let earlier = ClaimRequest { name: "earlier".into(), ..self.claim(1) };
                world.done(world.service().claim(earlier).await).await;
                world.done(world.service().release("earlier", None).await).await;
            }
            OpKind::Spawn | OpKind::Claim => {}
            OpKind::Release => drop(world.done(world.service().claim(self.claim(self.devices)).await).await),
            OpKind::Destroy | OpKind::Stop | OpKind::Start => {
                world.done(world.service().spawn(self.spawn()).await).await;
                if self.op == OpKind::Start {
                    world.done(world.service().stop(VM, None).await).await;
                }
            }
            other => panic!("{other} has no rows here"),
        }
        if self.given == Given::Lost {
            for claim in claims(world) {
                world.sim.change(Change::MdevLost(claim.uuid)).await.unwrap();
            }
        }
    }

    /// Begins the operation.
    pub async fn begin(&self, world: &World) -> Result<Accepted, Fault> {
        let service = world.service();
        match self.op {
            OpKind::Spawn => service.spawn(self.spawn()).await,
            OpKind::Destroy => service.destroy(VM, None).await,
            OpKind::Start => service.start(VM, None).await,
            OpKind::Stop => service.stop(VM, None).await,
            OpKind::Claim => service.claim(self.claim(self.devices)).await,
            OpKind::Release => service.release(VM, None).await,
            other => panic!("{other} has no rows here"),
        }
    }

    /// Gives back all that the instance holds.
    pub async fn give_back(&self, world: &World) -> Result<Accepted, Fault> {
        match self.op {
            OpKind::Claim | OpKind::Release => world.service().release(VM, None).await,
            _ => world.service().destroy(VM, None).await,
        }
    }

    fn spawn(&self) -> SpawnRequest {
        let named = format!("<name>{VM}</name>");
        let xml = domain_xml(VM).replace(&named, &format!("{named}<uuid>{VM_UUID}</uuid>"));
        SpawnRequest {
            domain_xml: xml,
            flavor: flavor(self.devices),
            display: DisplayWish::Off,
            operation_id: None,
            dry_run: false,
        }
    }

    fn claim(&self, devices: usize) -> ClaimRequest {
        ClaimRequest { instance: vm(), name: VM.into(), flavor: flavor(devices), operation_id: None }
    }
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
