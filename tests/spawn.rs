//! The main job on a simulated host: spawn, destroy, stop, start, claim, release, and what is refused.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has to stop")]

#[path = "world/mod.rs"]
mod world;

use mdevirt::host::NodeDevices;
use mdevirt::model::{DeviceApi, FaultKind, MdevUuid, NewMdev, ParentAddr, SagaState};
use mdevirt::service::api::{ClaimRequest, SpawnRequest, UseCases};
use world::{World, spawn_request};

const GOLD: &str = "resources:VGPU=1,trait:CUSTOM_GOLD=required";

#[tokio::test]
async fn a_spawned_vm_has_its_device_and_gives_it_back() {
    let world = World::new("two-m60").await;
    let before = world.scan().await;
    let job = world.spawn("web-01", GOLD).await;
    let instances = world.service().instances().await.unwrap();
    let claim = &instances[0].claims[0];
    assert_eq!(claim.type_name, "GRID M60-2Q");
    assert_eq!(claim.state.as_str(), "in-use");
    assert_eq!(claim.trait_name.as_ref().unwrap().as_str(), "CUSTOM_GOLD");
    let scan = world.scan().await;
    let mdev = scan.mdevs_with(claim.uuid).next().unwrap();
    assert!(mdev.active && mdev.parent == claim.parent);
    assert_eq!(world.running(job.instance).await, Some(true));

    world.done(world.service().destroy("web-01", None).await).await;
    assert_eq!(world.running(job.instance).await, None);
    world.assert_untouched(&before).await;
}

#[tokio::test]
async fn stop_keeps_the_device_and_start_makes_a_lost_one_again() {
    let world = World::new("two-m60").await;
    let job = world.spawn("web-01", GOLD).await;
    let held = world.service().instances().await.unwrap()[0].claims[0].clone();
    world.done(world.service().stop("web-01", None).await).await;
    let parked = world.service().instances().await.unwrap()[0].claims[0].clone();
    assert_eq!((parked.state.as_str(), parked.uuid), ("parked", held.uuid));

    world.sim.remove(held.uuid, &held.parent).await.unwrap();
    world.done(world.service().start("web-01", None).await).await;
    let again = world.service().instances().await.unwrap()[0].claims[0].clone();
    assert_eq!((again.state.as_str(), again.uuid, &again.parent), ("in-use", held.uuid, &held.parent));
    assert!(world.scan().await.mdevs_with(held.uuid).any(|m| m.active && m.parent == held.parent));
    assert_eq!(world.running(job.instance).await, Some(true));
}

#[tokio::test]
async fn the_same_operation_id_does_the_work_once() {
    let world = World::new("two-m60").await;
    let mut request = spawn_request("web-01", GOLD);
    request.operation_id = Some("op-1".into());
    let first = world.service().spawn(request.clone()).await.unwrap();
    let second = world.service().spawn(request.clone()).await.unwrap();
    assert_eq!((first.job, first.fresh, second.fresh), (second.job, true, false));
    world.ended(first.job).await;
    let third = world.service().spawn(request.clone()).await.unwrap();
    assert_eq!(third.job, first.job);
    assert_eq!(world.service().instances().await.unwrap().len(), 1);

    request.flavor = "resources:VGPU=2".into();
    let other = world.service().spawn(request).await.unwrap_err();
    assert_eq!(other.kind, FaultKind::InvalidRequest);
}

#[tokio::test]
async fn an_instance_that_exists_is_told_from_a_repeat() {
    let world = World::new("two-m60").await;
    let job = world.spawn("web-01", GOLD).await;
    let again = world.service().spawn(spawn_request("web-01", GOLD)).await.unwrap();
    assert_eq!((again.job, again.fresh), (job.id, false));
    let other = world.service().spawn(spawn_request("web-01", "resources:VGPU=2")).await.unwrap_err();
    assert_eq!(other.kind, FaultKind::InstanceExists);
}

#[tokio::test]
async fn devices_alone_are_claimed_rendered_and_released() {
    let world = World::new("two-m60").await;
    let before = world.scan().await;
    let request = ClaimRequest {
        instance: "1fc01460-67d7-4303-a5ea-69a57b994f50".parse().unwrap(),
        name: "nova-1".into(),
        flavor: "resources1:VGPU=1,resources2:VGPU=1".into(),
        operation_id: None,
    };
    // The first look at a host teaches what its types mean, and which boot it is; that is written once, not with every claim.
    world.service().first_look().await;
    let commits = world.service().store.commits();
    world.done(world.service().claim(request).await).await;
    assert!(world.service().store.commits() - commits <= 3, "two devices cost at most three commits");
    let claims = world.service().instances().await.unwrap()[0].claims.clone();
    assert_eq!(claims.len(), 2);
    assert_ne!(claims[0].parent, claims[1].parent, "one slice of a card for one VM");
    let xml = world
        .service()
        .render_domain("nova-1", &world::domain_xml("nova-1"), mdevirt::model::DisplayWish::Off)
        .await
        .unwrap();
    assert!(claims.iter().all(|c| xml.contains(&c.uuid.to_string())));
    let wrong = world.service().destroy("nova-1", None).await.unwrap_err();
    assert_eq!(wrong.kind, FaultKind::InvalidRequest);
    world.done(world.service().release("nova-1", None).await).await;
    world.assert_untouched(&before).await;
}

#[tokio::test]
async fn a_full_host_refuses_with_a_reason_for_each_parent() {
    let world = World::new("a2-16vf").await;
    for n in 0..4 {
        world.spawn(&format!("vm-{n}"), "resources:VGPU=1").await;
    }
    let fault = world.service().spawn(spawn_request("vm-4", "resources:VGPU=1")).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::NoCapacity);
    let reasons = fault.details["parents"].as_array().unwrap();
    assert!(reasons.len() >= 16, "{reasons:?}");
    assert!(reasons.iter().all(|r| !r["reason"].as_str().unwrap().is_empty()), "{reasons:?}");
    let total: u32 = world.service().inventory().await.unwrap().iter().map(|r| r.total).sum();
    assert_eq!(total, 4);
}

/// Somebody else's slice, made before any VM of ours.
async fn foreign_slice(world: &World, parent: &ParentAddr, n: u128) -> MdevUuid {
    let uuid = MdevUuid(uuid::Uuid::from_u128(n));
    let type_id = "nvidia-18".parse().unwrap();
    let new = NewMdev { uuid, parent: parent.clone(), type_id, device_api: DeviceApi::VfioPci };
    world.sim.create(&new).await.unwrap();
    uuid
}

#[tokio::test]
async fn a_card_that_the_xml_names_gives_no_second_slice() {
    let world = World::new("two-m60").await;
    let parents: Vec<ParentAddr> = world.scan().await.parents.iter().map(|p| p.addr.clone()).collect();
    let theirs = foreign_slice(&world, &parents[0], 1).await;
    foreign_slice(&world, &parents[1], 2).await;
    foreign_slice(&world, &parents[1], 3).await;
    let request = |xml: String| SpawnRequest { domain_xml: xml, ..spawn_request("web-01", GOLD) };
    let plain = world.service().preview_spawn(request(world::domain_xml("web-01"))).await.unwrap();
    assert_eq!(plain.devices[0].parent, parents[0], "the emptier card");
    let hostdev = format!(
        "<devices><hostdev mode='subsystem' type='mdev' managed='no' model='vfio-pci'>\
         <source><address uuid='{theirs}'/></source></hostdev>"
    );
    let named = world::domain_xml("web-01").replace("<devices>", &hostdev);
    let preview = world.service().preview_spawn(request(named.clone())).await.unwrap();
    assert_eq!(preview.devices[0].parent, parents[1]);
    let two = SpawnRequest { flavor: "resources:VGPU=2".into(), ..request(named) };
    let fault = world.service().spawn(two).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::NoCapacity);
    assert!(fault.details.to_string().contains("XML names a device of card"), "{}", fault.details);
}

#[tokio::test]
async fn slices_are_taken_near_pinned_memory() {
    // Both cards are on node 1.
    let world = World::new("two-m60").await;
    let ask = |flavor: &'static str, numatune: &str| {
        let xml = world::domain_xml("web-01").replace("<os>", &format!("{numatune}<os>"));
        let request = SpawnRequest { domain_xml: xml, ..spawn_request("web-01", flavor) };
        let service = world.service().clone();
        async move { service.preview_spawn(request).await }
    };
    let on = |nodes: &str| format!("<numatune><memory mode='strict' nodeset='{nodes}'/></numatune>");
    let required = "resources:VGPU=1,numa=required";
    assert_eq!(ask(required, &on("0-3,^2")).await.unwrap().devices.len(), 1);
    let far = ask(required, &on("0-3,^1")).await.unwrap_err();
    assert_eq!(far.kind, FaultKind::NoCapacity);
    assert!(far.details.to_string().contains("on NUMA node 1"), "{}", far.details);
    assert_eq!(ask("resources:VGPU=1", &on("0")).await.unwrap().devices.len(), 1);
    assert_eq!(ask(required, "").await.unwrap_err().kind, FaultKind::InvalidRequest);
    let bad = ask(required, &on("3-1")).await.unwrap_err();
    assert_eq!(bad.kind, FaultKind::InvalidDomainXml);
    assert!(bad.message.contains("nodeset='3-1'"), "{bad}");
}

#[tokio::test]
async fn a_failed_start_undoes_everything() {
    let script = "[[fail]]\ncall = 'start'\nkind = 'refused'\n";
    let world = World::of(&world::scenario("two-m60.xml"), &world::scenario("two-m60.toml"), script).await;
    let before = world.scan().await;
    let accepted = world.service().spawn(spawn_request("web-01", GOLD)).await.unwrap();
    let job = world.ended(accepted.job).await;
    assert_eq!(job.state, SagaState::Failed);
    assert_eq!(job.result.unwrap()["kind"], "HostRefused");
    assert_eq!(world.running(job.instance).await, None);
    world.assert_untouched(&before).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sixty_four_at_once_never_share_a_device() {
    let world = World::new("two-m60").await;
    let asks = (0..64).map(|n| {
        let service = world.service().clone();
        tokio::spawn(
            async move { service.spawn(spawn_request(&format!("vm-{n}"), "resources:VGPU=1")).await },
        )
    });
    let mut accepted = 0;
    for ask in asks.collect::<Vec<_>>() {
        match ask.await.unwrap() {
            Ok(_) => accepted += 1,
            Err(fault) => assert_eq!(fault.kind, FaultKind::NoCapacity, "{fault}"),
        }
    }
    world.quiet().await;
    let instances = world.service().instances().await.unwrap();
    let mut devices: Vec<_> =
        instances.iter().flat_map(|i| &i.claims).map(|c| (c.uuid, c.parent.clone())).collect();
    devices.sort();
    devices.dedup();
    assert_eq!((accepted, instances.len(), devices.len()), (8, 8, 8), "two cards of four");
    assert!(instances.iter().all(|i| i.claims[0].state.as_str() == "in-use"));
    assert_eq!(world.scan().await.mdevs.len(), 8);
}
