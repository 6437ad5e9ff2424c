//! Hosts made to measure, and short words for what is done to them.

use std::fmt::Write as _;
use std::ops::Deref;

use mdevirt::host::{Hypervisor, NodeDevices};
use mdevirt::model::{
    Claim, ClaimView, DisplayWish, Fault, FaultKind, InstanceUuid, Job, MdevUuid, OpKind, SagaState,
};
use mdevirt::service::api::{Operate, OperateWith, PrepareRequest, SpawnRequest, UseCases};
use tempfile::TempDir;

use crate::world::{World, spawn_request};

/// One slice of a two-card M60 host.
pub const ONE: &str = "resources:VGPU=1";
/// One slice of each card.
pub const TWO: &str = "resources1:VGPU=1,resources2:VGPU=1,group_policy=isolate";

/// A type as its parent offers it: id, name, how many.
pub type Offer = (&'static str, &'static str, u32);

/// A parent device: bus number, vendor, offers.
pub type Card<'a> = (u8, &'static str, &'a [Offer]);

/// A host of its own files.
pub struct Site {
    pub world: World,
    pub files: TempDir,
}

impl Deref for Site {
    type Target = World;
    fn deref(&self) -> &World {
        &self.world
    }
}

impl Site {
    /// A host with these cards and this configuration; `DIR` in it is a directory of its own.
    pub async fn new(name: &str, cards: &[Card<'_>], config: &str) -> Self {
        let files = TempDir::new().unwrap();
        let dir = files.path().to_str().unwrap();
        std::fs::write(files.path().join("host.xml"), node(cards)).unwrap();
        std::fs::write(files.path().join("mdevirt.toml"), config.replace("DIR", dir)).unwrap();
        let (xml, toml) = (files.path().join("host.xml"), files.path().join("mdevirt.toml"));
        let world = World::named(name, &xml, &toml).await;
        Self { world, files }
    }

    /// The same host with another configuration.
    pub async fn reconfigured(&self, config: &str) {
        std::fs::write(self.files.path().join("mdevirt.toml"), config).unwrap();
        self.world.service().reload().await.unwrap();
    }
}

fn node(cards: &[Card<'_>]) -> String {
    let mut xml = "<node><device><name>computer</name><capability type='system'/></device>".to_owned();
    for (bus, vendor, offers) in cards {
        write!(
            xml,
            "<device><name>pci_0000_{bus:02x}_00_0</name><parent>computer</parent><capability type='pci'>\
             <domain>0</domain><bus>{bus}</bus><slot>0</slot><function>0</function>\
             <product id='0x13f2'>card</product><vendor id='{vendor}'>vendor</vendor><capability type='mdev_types'>"
        )
        .unwrap();
        for (id, name, available) in *offers {
            write!(
                xml,
                "<type id='{id}'><name>{name}</name><deviceAPI>vfio-pci</deviceAPI>\
                 <availableInstances>{available}</availableInstances></type>"
            )
            .unwrap();
        }
        xml.push_str("</capability></capability></device>");
    }
    xml + "</node>"
}

/// An operation that needs something besides the instance.
pub fn with(op: OpKind, name: &str, with: OperateWith) -> Operate {
    Operate { with, ..Operate::plain(op, name, None) }
}

/// An operation that needs a flavor.
pub fn flavored(op: OpKind, name: &str, flavor: &str) -> Operate {
    with(op, name, OperateWith { flavor: Some(flavor.to_owned()), ..OperateWith::default() })
}

/// An operation that needs a domain XML.
pub fn defined(op: OpKind, name: &str, xml: &str) -> Operate {
    with(op, name, OperateWith { domain_xml: Some(xml.to_owned()), ..OperateWith::default() })
}

/// A resize with its flavor, up to where it is confirmed or reverted.
pub async fn resize(world: &World, name: &str, flavor: &str) {
    world.operate(flavored(OpKind::ResizePrepare, name, flavor)).await;
    world.go(OpKind::ResizeFinish, name).await;
}

/// The source's document, as it travels.
pub async fn begin(source: &World, name: &str) -> String {
    source.go(OpKind::MigrateBegin, name).await;
    source.service().export_instance(name).await.unwrap()
}

/// A document as a target takes it.
pub fn arriving(document: &str) -> PrepareRequest {
    PrepareRequest { document: document.to_owned(), ..PrepareRequest::default() }
}

impl World {
    /// Waits until the instance, or whatever is left of it, is on no way to or from another host.
    pub async fn until_at_home(&self, name: &str) {
        let mut changes = self.service().changes();
        while self.service().instances().await.unwrap().iter().any(|i| i.name == name && i.moving.is_some()) {
            changes.recv().await.unwrap();
        }
        self.quiet().await;
    }

    /// An operation that must succeed.
    pub async fn go(&self, op: OpKind, name: &str) -> Job {
        self.operate(Operate::plain(op, name, None)).await
    }

    /// The same for one that needs more.
    pub async fn operate(&self, request: Operate) -> Job {
        self.done(self.service().operate(request).await).await
    }

    /// An operation that must be refused before anything begins.
    pub async fn refused(&self, request: Operate, kind: FaultKind) -> Fault {
        let fault = self.service().operate(request).await.unwrap_err();
        assert_eq!(fault.kind, kind, "{fault}");
        fault
    }

    /// An operation that must begin, fail and be undone, with this kind; its message.
    pub async fn fails(&self, request: Operate, kind: FaultKind) -> String {
        let accepted = self.service().operate(request).await.unwrap();
        let job = self.ended(accepted.job).await;
        assert_eq!(job.state, SagaState::Failed, "{:?}", job.result);
        let result = job.result.unwrap();
        assert_eq!(result["kind"], serde_json::to_value(kind).unwrap(), "{result}");
        result["message"].as_str().unwrap().to_owned()
    }

    /// A spawn of this XML.
    pub async fn spawn_xml(&self, xml: &str, flavor: &str, display: DisplayWish) -> Job {
        let request = SpawnRequest { domain_xml: xml.to_owned(), display, ..spawn_request("", flavor) };
        self.done(self.service().spawn(request).await).await
    }

    /// A spawn that must be refused.
    pub async fn no_spawn(&self, name: &str, flavor: &str, kind: FaultKind) -> Fault {
        let fault = self.service().spawn(spawn_request(name, flavor)).await.unwrap_err();
        assert_eq!(fault.kind, kind, "{fault}");
        fault
    }

    /// The UUID of an instance.
    pub fn uuid(&self, name: &str) -> InstanceUuid {
        let books = self.service().store.books();
        books.instances_named(name).next().unwrap().uuid
    }

    /// The claims of an instance, as scripts see them.
    pub async fn claims(&self, name: &str) -> Vec<ClaimView> {
        let all = self.service().instances().await.unwrap();
        all.into_iter().filter(|i| i.name == name).flat_map(|i| i.claims).collect()
    }

    /// The claims of an instance, as they are booked.
    pub fn booked(&self, name: &str) -> Vec<Claim> {
        let books = self.service().store.books();
        let of = books.instances_named(name).next().map(|i| i.uuid);
        books.claims().filter(|c| Some(c.instance) == of).cloned().collect()
    }

    /// States of its claims.
    pub fn states(&self, name: &str) -> Vec<&'static str> {
        self.booked(name).iter().map(|c| c.state.as_str()).collect()
    }

    /// The definition, as it was handed in.
    pub async fn definition(&self, name: &str) -> String {
        self.sim.definition(self.uuid(name)).await.unwrap().unwrap()
    }

    /// Whether its guest runs.
    pub async fn runs(&self, name: &str) -> bool {
        self.running(self.uuid(name)).await.unwrap()
    }

    /// Whether its memory is kept in an image.
    pub async fn is_saved(&self, name: &str) -> bool {
        self.sim.is_saved(self.uuid(name)).await.unwrap()
    }

    /// Devices that its guest runs with, or would start with.
    pub async fn guest_devices(&self, name: &str) -> Vec<MdevUuid> {
        let domain = self.sim.domain(self.uuid(name)).await.unwrap().unwrap();
        devices_in(&domain.xml)
    }

    /// Devices of the hardware, in the order of their UUIDs.
    pub async fn made(&self) -> Vec<MdevUuid> {
        let mut all: Vec<_> = self.scan().await.mdevs.iter().filter(|m| m.active).map(|m| m.uuid).collect();
        all.sort();
        all
    }

    /// A device vanishes from the hardware, with its definition.
    pub async fn lose(&self, device: &ClaimView) {
        self.sim.remove(device.uuid, &device.parent).await.unwrap();
    }

    /// How many slices are booked.
    pub async fn used(&self) -> u32 {
        self.service().inventory().await.unwrap().iter().map(|r| r.used).sum()
    }
}

/// Mediated devices of a domain's XML, in their order.
pub fn devices_in(xml: &str) -> Vec<MdevUuid> {
    let doc = mdevirt::xml::domain::DomainDoc::parse(xml).unwrap();
    doc.hostdevs.iter().filter_map(mdevirt::xml::domain::DomainHostdev::mdev_uuid).collect()
}

/// The XML without its mediated devices.
pub fn without_devices(xml: &str) -> String {
    mdevirt::xml::domain::without_hostdevs(xml, &devices_in(xml)).unwrap()
}

/// A domain as a person writes it: what is odd about it has to stay.
pub fn odd_xml(name: &str, uuid: u128) -> String {
    let uuid = uuid::Uuid::from_u128(uuid);
    format!(
        "<?xml version='1.0'?>\n<!-- kept -->\n<domain type='test'   xmlns:lab=\"urn:lab\">\n\t<name>{name}</name>\n\t\
         <uuid>{uuid}</uuid>\n\t<metadata><lab:note who='a &amp; b'>1 &lt; 2<![CDATA[ <hostdev/> ]]></lab:note></metadata>\n\t\
         <memory unit='KiB'>65536</memory>\n\t<os><type>hvm</type></os>\n\t<devices >\n\t\t<!-- disks -->\n\t\t\
         <disk type='file' device='disk'><source file='/x/{name}.qcow2'/><target dev='vda'/></disk>\n\t</devices>\n</domain>\n"
    )
}
