//! Hosts to test, and values to test them with.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "libvirt")]
use mdevirt::host::libvirt::LibvirtHost;
use mdevirt::host::sim::{FileHost, Script, SimHost, SimOptions};
#[cfg(feature = "libvirt")]
use mdevirt::host::sysfs::Sysfs;
use mdevirt::host::{HostEvent, Hypervisor, NodeDevices};
use mdevirt::model::{DeviceApi, InstanceUuid, MdevUuid, NewMdev, ParentAddr, TypeId};
#[cfg(feature = "libvirt")]
use mdevirt::xml::render::Templates;
use tokio::sync::broadcast;
use uuid::Uuid;

/// What reads the scenario.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Base {
    File,
    #[cfg(feature = "libvirt")]
    Libvirt,
}

/// A host, with two parents of one kind and what they offer.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) nodes: Arc<dyn NodeDevices>,
    pub(crate) domains: Arc<dyn Hypervisor>,
    pub(crate) parents: [ParentAddr; 2],
    /// How many of `type_id` an empty parent makes, at least two.
    pub(crate) room: u32,
    pub(crate) type_id: TypeId,
    /// Another type of these parents.
    pub(crate) other_type: TypeId,
}

pub(crate) fn scenario(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios").join(name)
}

pub(crate) async fn base(base: Base, path: &Path) -> (Arc<dyn NodeDevices>, Arc<dyn Hypervisor>) {
    match base {
        Base::File => {
            let host = FileHost::load(path).unwrap();
            (host.clone(), host)
        }
        #[cfg(feature = "libvirt")]
        Base::Libvirt => {
            // No machine's files bear witness of a host that is not there.
            let nowhere = Sysfs::new("/nonexistent");
            let uri = format!("test://{}", path.display());
            let host = LibvirtHost::new(uri, nowhere, Templates::load(&[]).unwrap());
            (host.clone(), host)
        }
    }
}

/// A simulated host on a committed scenario.
pub(crate) async fn sim(on: Base, name: &str, options: SimOptions) -> Arc<SimHost> {
    let (nodes, domains) = base(on, &scenario(name)).await;
    SimHost::new(nodes, domains, options).await.unwrap()
}

pub(crate) async fn scripted(on: Base, name: &str, script: &str) -> Arc<SimHost> {
    sim(on, name, SimOptions { state_file: None, script: Script::parse(script).unwrap() }).await
}

/// The simulator as one of many hosts.
pub(crate) async fn two_m60(on: Base) -> Subject {
    let host = sim(on, "two-m60.xml", SimOptions::default()).await;
    Subject {
        nodes: host.clone(),
        domains: host,
        parents: [addr("0000:84:00.0"), addr("0000:85:00.0")],
        room: 4,
        type_id: type_id("nvidia-18"),
        other_type: type_id("nvidia-22"),
    }
}

pub(crate) fn addr(text: &str) -> ParentAddr {
    text.parse().unwrap()
}

pub(crate) fn type_id(text: &str) -> TypeId {
    text.parse().unwrap()
}

pub(crate) fn mdev(n: u32) -> MdevUuid {
    MdevUuid(Uuid::from_u128(0x5e1f_0000 + u128::from(n)))
}

pub(crate) fn vm(n: u32) -> InstanceUuid {
    InstanceUuid(Uuid::from_u128(0xd0_0000 + u128::from(n)))
}

pub(crate) fn new(n: u32, parent: &ParentAddr, type_id: &TypeId) -> NewMdev {
    NewMdev {
        uuid: mdev(n),
        parent: parent.clone(),
        type_id: type_id.clone(),
        device_api: DeviceApi::VfioPci,
    }
}

/// A small domain `vm-N` with these devices.
pub(crate) fn domain_xml(n: u32, mdevs: &[MdevUuid]) -> String {
    let hostdevs: String = mdevs
        .iter()
        .map(|uuid| {
            format!(
                "<hostdev mode='subsystem' type='mdev' managed='no' model='vfio-pci'><source><address uuid='{uuid}'/></source></hostdev>"
            )
        })
        .collect();
    format!(
        "<domain type='kvm'><name>vm-{n}</name><uuid>{}</uuid><memory unit='MiB'>64</memory><vcpu>1</vcpu>\
         <os><type arch='x86_64' machine='q35'>hvm</type></os><devices>{hostdevs}</devices></domain>",
        vm(n)
    )
}

/// Waits for an event; others may come before it.
pub(crate) async fn expect_event(events: &mut broadcast::Receiver<HostEvent>, wanted: &HostEvent) {
    let deadline = tokio::time::timeout(Duration::from_secs(30), async {
        while events.recv().await.unwrap() != *wanted {}
    });
    deadline.await.unwrap_or_else(|_| unreachable!("no event {wanted:?}"));
}

/// A css device for a scenario with room for one slice of type `io` more, with one slice on it if a number is given.
pub(crate) fn css(devno: &str, slice: Option<u32>) -> String {
    let device = slice.map_or_else(String::new, |n| {
        format!(
            "<device><name>mdev_{n}_{devno}</name><parent>css_0_0_{devno}</parent><capability type='mdev'>\
             <type id='io'/><uuid>{}</uuid><iommuGroup number='7'/></capability></device>",
            mdev(n)
        )
    });
    format!(
        "<device><name>css_0_0_{devno}</name><parent>computer</parent><capability type='css'><cssid>0x0</cssid>\
         <ssid>0x0</ssid><devno>0x{devno}</devno><capability type='mdev_types'><type id='io'><name>I/O</name>\
         <deviceAPI>vfio-ccw</deviceAPI><availableInstances>1</availableInstances></type></capability></capability>\
         </device>{device}"
    )
}
