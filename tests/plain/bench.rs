//! What the tests of this program share: domains with metadata, and libvirt starting them with its hook.

use mdevirt::host::Hypervisor;
use mdevirt::model::{Fault, InstanceUuid, MdevUuid};
use mdevirt::service::api::{HookCall, UseCases};
use uuid::Uuid;

use crate::world::World;

pub const ONE: &str = "resources:VGPU=1";
pub const TWO: &str = "resources1:VGPU=1,resources2:VGPU=1";

pub fn vm(number: u128) -> InstanceUuid {
    InstanceUuid(Uuid::from_u128(0xa0 + number))
}

pub fn device(number: u128) -> MdevUuid {
    MdevUuid(Uuid::from_u128(0x5000_0000_0000_4000_8000_0000_0000_0000 + number))
}

/// A domain that wants the flavor and names these devices.
pub fn xml(number: u128, flavor: Option<&str>, devices: &[MdevUuid]) -> String {
    let wish = flavor.map_or_else(String::new, |flavor| {
        format!("\n  <metadata><m:vgpu xmlns:m='urn:mdevirt:domain:1' flavor='{flavor}'/></metadata>")
    });
    let hostdevs: String = devices
        .iter()
        .map(|uuid| {
            format!(
                "\n    <hostdev mode='subsystem' type='mdev' model='vfio-pci'><source><address uuid='{uuid}'/></source></hostdev>"
            )
        })
        .collect();
    format!(
        "<domain type='test'>\n  <name>vm-{number}</name>\n  <uuid>{}</uuid>{wish}\n  <memory>65536</memory>\n  \
         <os><type>hvm</type></os>\n  <devices>{hostdevs}\n  </devices>\n</domain>\n",
        vm(number)
    )
}

/// libvirt calls its hook before a start; whether it may go on.
pub async fn prepare(world: &World, number: u128, xml: &str) -> Result<String, Fault> {
    hook(world, number, "prepare", xml).await
}

pub async fn hook(world: &World, number: u128, operation: &str, xml: &str) -> Result<String, Fault> {
    let call = HookCall {
        name: format!("vm-{number}"),
        operation: operation.into(),
        sub_operation: "begin".into(),
        extra: "-".into(),
        domain_xml: xml.into(),
    };
    world.service().hook(call).await
}

impl World {
    /// `virsh start`.
    pub async fn virsh_start(&self, number: u128) {
        let xml = self.sim.definition(vm(number)).await.unwrap().unwrap();
        assert_eq!(
            prepare(self, number, &xml).await.unwrap(),
            "",
            "only migration and restore take another XML"
        );
        self.sim.start(vm(number)).await.unwrap();
    }

    /// Waits until the claims of a VM are in these states.
    pub async fn until_states(&self, number: u128, wanted: &[&str]) {
        let mut changes = self.service().changes();
        let states = || {
            let books = self.service().store.books();
            books.claims_of(vm(number)).map(|c| c.state.as_str()).collect::<Vec<_>>()
        };
        while states() != wanted {
            crate::world::next(&mut changes).await;
        }
    }

    /// Devices that exist.
    pub async fn active(&self) -> Vec<MdevUuid> {
        self.scan().await.mdevs.into_iter().filter(|m| m.active).map(|m| m.uuid).collect()
    }
}
