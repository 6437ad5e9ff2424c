//! Objects: what is on the bus, and that it follows the service.

use std::collections::HashMap;

use mdevirt::dbus::path;
use mdevirt::dbus::proxy::{InstanceProxy, JobProxy, ParentProxy};
use mdevirt::dbus::{BusEvent, Watch};
use mdevirt::model::{OpKind, SagaState};
use mdevirt::service::api::Change;
use serde_json::json;
use zbus::fdo::ObjectManagerProxy;

use crate::bus::{Fake, Pace, PrivateBus};
use crate::{client, manager, next};

const INSTANCE: &str = "11111111-2222-4333-8444-555555555555";

async fn managed(bus: &PrivateBus) -> Vec<String> {
    let connection = bus.connect().await;
    let objects = ObjectManagerProxy::builder(&connection)
        .destination("org.mdevirt1")
        .path("/org/mdevirt1")
        .build()
        .await
        .unwrap();
    let objects: HashMap<_, _> = objects.get_managed_objects().await.unwrap();
    let mut paths: Vec<String> = objects
        .into_iter()
        .filter(|(_, interfaces)| !interfaces.is_empty())
        .map(|(path, interfaces)| {
            let mut names: Vec<&str> = interfaces.keys().map(|name| name.as_str()).collect();
            names.sort_unstable();
            format!("{} {}", path.as_str().trim_start_matches("/org/mdevirt1/"), names.join(" "))
        })
        .collect();
    paths.sort();
    paths
}

/// The next event that `wanted` accepts.
async fn until(watch: &mut Watch, wanted: impl Fn(&BusEvent) -> bool) -> BusEvent {
    loop {
        let event = next(watch).await;
        if wanted(&event) {
            return event;
        }
    }
}

#[tokio::test]
async fn everything_is_there_when_the_name_is() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let open = service.begin(OpKind::Spawn, INSTANCE.parse().unwrap());
    let _server = bus.serve(&service).await;
    assert_eq!(
        managed(&bus).await,
        [
            "instance/11111111_2222_4333_8444_555555555555 org.mdevirt1.Instance".to_owned(),
            format!("job/{} org.mdevirt1.Job", open.to_string().replace('-', "_")),
            "parent/_30000_3a84_3a00_2e0 org.mdevirt1.Parent".to_owned(),
            "parent/_30000_3a85_3a00_2e0 org.mdevirt1.Parent".to_owned(),
            "parent/mtty_5fmtty org.mdevirt1.Parent".to_owned(),
        ]
    );
}

#[tokio::test]
async fn properties_are_the_views() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let connection = bus.connect().await;
    let parent =
        ParentProxy::new(&connection, path::of_parent(&"0000:84:00.0".parse().unwrap())).await.unwrap();
    assert_eq!(parent.address().await.unwrap(), "0000:84:00.0");
    assert_eq!(parent.framework().await.unwrap(), "mdev");
    assert_eq!((parent.numa_node().await.unwrap(), parent.iommu_group().await.unwrap()), (1, 77));
    assert_eq!(parent.types().await.unwrap().len(), 2);
    assert_eq!(parent.devices().await.unwrap().len(), 1);
    let bare = ParentProxy::new(&connection, path::of_parent(&"mtty_mtty".parse().unwrap())).await.unwrap();
    assert_eq!((bare.vendor_id().await.unwrap(), bare.numa_node().await.unwrap()), (String::new(), -1));
    assert_eq!(bare.status().await.unwrap(), "no type of it is enabled");
    let instance =
        InstanceProxy::new(&connection, path::of_instance(INSTANCE.parse().unwrap())).await.unwrap();
    assert_eq!(instance.name().await.unwrap(), "web-01");
    assert_eq!(instance.claims().await.unwrap().len(), 1);
    let manager = manager(&bus).await;
    assert_eq!(manager.version().await.unwrap(), env!("CARGO_PKG_VERSION"));
    assert_eq!(manager.libvirt_uri().await.unwrap(), "qemu:///system");
    assert!(manager.connected().await.unwrap());
}

#[tokio::test]
async fn parents_and_instances_come_change_and_go() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let mut watch = client(&bus).await.watch().await.unwrap();
    {
        let mut world = service.world();
        world.devices.remove(0);
        world.devices[0].status = "gone mad".to_owned();
        world.instances.clear();
    }
    service.say(Change::Inventory);
    service.say(Change::Claim(INSTANCE.parse().unwrap()));
    let mut seen = Vec::new();
    while seen.len() < 5 {
        seen.push(next(&mut watch).await);
    }
    let interfaces = |name: &str| vec![format!("org.mdevirt1.{name}")];
    let gone = "/org/mdevirt1/parent/_30000_3a84_3a00_2e0".to_owned();
    assert!(seen.contains(&BusEvent::InterfacesRemoved { path: gone, interfaces: interfaces("Parent") }));
    assert!(seen.contains(&BusEvent::PropertiesChanged {
        path: "/org/mdevirt1/parent/_30000_3a85_3a00_2e0".to_owned(),
        interface: "org.mdevirt1.Parent".to_owned(),
        changed: json!({"Status": "gone mad"}).as_object().unwrap().clone(),
    }));
    let gone = path::of_instance(INSTANCE.parse().unwrap()).to_string();
    assert!(seen.contains(&BusEvent::InterfacesRemoved { path: gone, interfaces: interfaces("Instance") }));
    assert!(seen.contains(&BusEvent::InventoryChanged));
    assert!(seen.contains(&BusEvent::ClaimChanged { instance: INSTANCE.to_owned() }));
    assert_eq!(managed(&bus).await.len(), 2);
}

#[tokio::test]
async fn a_lost_libvirt_is_a_property_change() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let mut watch = client(&bus).await.watch().await.unwrap();
    service.world().status.connected = false;
    service.say(Change::Status);
    let event = next(&mut watch).await;
    assert_eq!(
        event,
        BusEvent::PropertiesChanged {
            path: "/org/mdevirt1".to_owned(),
            interface: "org.mdevirt1.Manager".to_owned(),
            changed: json!({"Connected": false}).as_object().unwrap().clone(),
        }
    );
    assert!(!manager(&bus).await.connected().await.unwrap());
}

#[tokio::test]
async fn a_daemon_whose_host_cannot_be_read_serves_and_recovers() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    service.world().fault =
        Some(mdevirt::model::Fault::new(mdevirt::model::FaultKind::HostUnreachable, "libvirt is away"));
    let _server = bus.serve(&service).await;
    assert!(managed(&bus).await.is_empty());
    let mut watch = client(&bus).await.watch().await.unwrap();
    service.world().fault = None;
    service.say(Change::Inventory);
    until(&mut watch, |event| *event == BusEvent::InventoryChanged).await;
    assert_eq!(managed(&bus).await.len(), 3);
}

#[tokio::test]
async fn ended_jobs_stay_for_a_while_and_then_go() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let mut watch = client(&bus).await.watch().await.unwrap();
    let jobs: Vec<_> = (0..130).map(|_| service.begin(OpKind::Start, INSTANCE.parse().unwrap())).collect();
    for job in &jobs[..129] {
        service.end(*job, SagaState::Done, json!({}));
    }
    let first = path::of_job(jobs[0]).to_string();
    until(&mut watch, |event| matches!(event, BusEvent::InterfacesRemoved { path, .. } if *path == first))
        .await;
    let on_the_bus = managed(&bus).await.iter().filter(|line| line.starts_with("job/")).count();
    assert_eq!(on_the_bus, 129, "128 ended ones and the open one");
    // It is gone from the bus, not from the books.
    assert_eq!(client(&bus).await.job(jobs[0]).await.unwrap().state, SagaState::Done);
}

#[tokio::test]
async fn the_job_is_on_the_bus_when_its_path_is_known() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let _server = bus.serve(&service).await;
    let path = manager(&bus).await.spawn(crate::spawn_options()).await.unwrap();
    let job = JobProxy::new(&bus.connect().await, path.clone()).await.unwrap();
    assert_eq!(path::job_of(&path).unwrap().to_string(), job.id().await.unwrap());
    assert_eq!(
        (job.operation().await.unwrap(), job.state().await.unwrap()),
        ("spawn".into(), "running".into())
    );
    assert_eq!(job.instance().await.unwrap(), INSTANCE);
    assert_eq!((job.steps_done().await.unwrap(), job.steps_total().await.unwrap()), (0, 3));
    assert_eq!(job.created_usec().await.unwrap(), 1_764_500_000_000_000);
    assert!(job.result().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_second_daemon_does_not_get_the_name() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let first = bus.serve(&service).await;
    let again = || async {
        mdevirt::dbus::serve(bus.connect().await, service.clone(), std::sync::Arc::new(crate::bus::Everybody))
            .await
    };
    assert!(matches!(again().await, Err(mdevirt::dbus::ServeError::NameTaken)));
    first.stop().await.unwrap();
    again().await.unwrap();
}
