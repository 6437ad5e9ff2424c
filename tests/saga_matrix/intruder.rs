//! Devices and domains of somebody else in the place of ours: refused, and left exactly as they are.

use mdevirt::host::sim::{Change, ForeignMdev};
use mdevirt::host::{Domain, Hypervisor, NodeDevices};
use mdevirt::model::{
    Claim, FaultKind, InstanceUuid, Mdev, MdevUuid, NewMdev, OpKind, ParentAddr, SagaState,
};
use mdevirt::saga::Action;
use mdevirt::service::api::UseCases;
use uuid::Uuid;

use crate::case::{Case, Given, VM, VM_UUID, claims, vm};
use crate::run::{Run, fresh, life, picture};
use crate::world::World;

const OTHER_UUID: &str = "6b2f4c1e-8a57-4c55-9d3c-0e1f2a3b4c5d";

const fn case(op: OpKind) -> Case {
    Case::of(op, 1, Given::Fresh)
}

/// A domain without any device of ours.
fn stranger(name: &str, uuid: &str) -> String {
    let named = format!("<name>{name}</name>");
    crate::world::domain_xml(name).replace(&named, &format!("{named}<uuid>{uuid}</uuid>"))
}

async fn defines_and_starts(world: &World, name: &str, uuid: &str) -> Domain {
    let uuid_of: InstanceUuid = uuid.parse().unwrap();
    world.sim.stop(uuid_of).await.unwrap();
    world.sim.undefine(uuid_of).await.unwrap();
    world.sim.define(&stranger(name, uuid)).await.unwrap();
    world.sim.start(uuid_of).await.unwrap();
    world.sim.domain(uuid_of).await.unwrap().unwrap()
}

async fn makes(world: &World, uuid: MdevUuid, parent: &str, type_id: &str) -> Mdev {
    let parent: ParentAddr = parent.parse().unwrap();
    let foreign = ForeignMdev { uuid, parent: parent.clone(), type_id: type_id.parse().unwrap() };
    world.sim.change(Change::ForeignMdev(foreign)).await.unwrap();
    world.sim.find(uuid).await.unwrap().into_iter().find(|m| m.parent == parent).unwrap()
}

/// The operation failed, the books are as before, and nothing was done to what is not ours.
fn refused(mut run: Run, point: &str, others: &[Uuid], kind: FaultKind, intrude: impl AsyncFnOnce(&World)) {
    run.others.extend(others);
    run.on(intrude);
    let there = run.on(async |world| picture(world).await);
    run.release(point);
    let (job, end) = run.at_rest();
    assert_eq!(job.state, SagaState::Failed, "{:?}", job.result);
    assert_eq!(job.result.unwrap()["kind"], kind.as_str());
    assert_eq!(end.books, run.before.books);
    assert_eq!(end.domains, there.domains);
    let foreign = |scan: &[Mdev]| -> Vec<Mdev> {
        scan.iter().filter(|m| others.contains(&m.uuid.0)).cloned().collect()
    };
    assert_eq!(foreign(&end.scan.mdevs), foreign(&there.scan.mdevs));
}

#[test]
fn a_device_under_our_uuid_elsewhere() {
    for given in
        [case(OpKind::Spawn), case(OpKind::Claim), Case { given: Given::Lost, ..case(OpKind::Start) }]
    {
        let point = format!("{}.make_device.0.before_effect", given.op);
        let run = Run::up_to(given, "a device elsewhere", &point, |_| ());
        let uuid = claims(run.world())[0].uuid;
        refused(run, &point, &[uuid.0], FaultKind::HostRefused, async |world| {
            world.sim.remove(uuid, &"0000:84:00.0".parse().unwrap()).await.unwrap();
            makes(world, uuid, "0000:85:00.0", "nvidia-18").await;
        });
    }
}

#[test]
fn a_device_under_our_uuid_of_another_type() {
    for op in [OpKind::Spawn, OpKind::Claim] {
        let point = format!("{op}.make_device.0.before_effect");
        let run = Run::up_to(case(op), "a device of another type", &point, |_| ());
        let uuid = claims(run.world())[0].uuid;
        refused(run, &point, &[uuid.0], FaultKind::HostRefused, async |world| {
            makes(world, uuid, "0000:84:00.0", "nvidia-17").await;
        });
    }
}

#[test]
fn a_definition_under_our_uuid_of_another_type() {
    for op in [OpKind::Spawn, OpKind::Claim] {
        let point = format!("{op}.make_device.0.before_effect");
        let run = Run::up_to(case(op), "a definition of another type", &point, |_| ());
        let claim = claims(run.world())[0].clone();
        let Claim { uuid, parent, device_api, .. } = claim;
        refused(run, &point, &[uuid.0], FaultKind::HostRefused, async |world| {
            let type_id = "nvidia-17".parse().unwrap();
            world.sim.create(&NewMdev { uuid, parent, type_id, device_api }).await.unwrap();
            world.sim.change(Change::MdevLost(uuid)).await.unwrap();
        });
    }
}

#[test]
fn the_last_room_is_taken_behind_the_booking() {
    for op in [OpKind::Spawn, OpKind::Claim] {
        let point = format!("{op}.make_device.0.before_effect");
        let run = Run::up_to(case(op), "no room", &point, |_| ());
        let taken = [1, 2, 3, 4].map(Uuid::from_u128);
        refused(run, &point, &taken, FaultKind::NoCapacity, async |world| {
            for uuid in taken {
                makes(world, MdevUuid(uuid), "0000:84:00.0", "nvidia-18").await;
            }
        });
    }
}

#[test]
fn a_domain_with_our_uuid_or_name() {
    for (uuid, kind) in [(VM_UUID, FaultKind::InstanceExists), (OTHER_UUID, FaultKind::HostRefused)] {
        let point = "spawn.define_domain.before_effect";
        let run = Run::up_to(case(OpKind::Spawn), "a domain", point, |_| ());
        refused(run, point, &[uuid.parse().unwrap()], kind, async |world| {
            defines_and_starts(world, VM, uuid).await;
        });
    }
}

#[test]
fn a_domain_that_is_there_before() {
    for uuid in [VM_UUID, OTHER_UUID] {
        life().block_on(async {
            let world = fresh(case(OpKind::Spawn)).await;
            defines_and_starts(&world, VM, uuid).await;
            let before = picture(&world).await;
            let fault = case(OpKind::Spawn).begin(&world).await.unwrap_err();
            assert_eq!(fault.kind, FaultKind::InstanceExists, "{fault}");
            assert_eq!(picture(&world).await, before);
        });
    }
}

#[test]
fn a_domain_in_the_place_of_ours_is_not_destroyed() {
    let point = "destroy.stop_domain.before_effect";
    let mut run = Run::up_to(case(OpKind::Destroy), "another domain", point, |_| ());
    run.others.insert(vm().0);
    let other = run.on(async |world| defines_and_starts(world, VM, VM_UUID).await);
    run.release(point);
    let (job, end) = run.at_rest();
    assert_eq!(job.state, SagaState::Done, "{:?}", job.result);
    assert_eq!(end.odds(&run.others), [""; 0]);
    assert_eq!((end.domains, end.scan.mdevs), (vec![other], vec![]));
}

#[test]
fn a_stuck_spawn_is_given_back_beside_a_domain_with_its_uuid() {
    let point = "spawn.define_domain.before_effect";
    let mut run = Run::up_to(case(OpKind::Spawn), "stuck beside a domain", point, |points| {
        points.arm("spawn.make_device.0.before_undo", Action::Error, Some(1));
    });
    run.others.insert(vm().0);
    let other = run.on(async |world| defines_and_starts(world, VM, VM_UUID).await);
    run.release(point);
    assert_eq!(run.at_rest().0.state, SagaState::Stuck);
    run.give_back();
    assert_eq!(run.at_rest().1.domains, [other]);
}

#[test]
fn a_domain_in_the_place_of_ours_is_neither_started_nor_stopped() {
    for op in [OpKind::Start, OpKind::Stop] {
        life().block_on(async {
            let world = fresh(case(op)).await;
            defines_and_starts(&world, VM, VM_UUID).await;
            if op == OpKind::Start {
                world.sim.stop(vm()).await.unwrap();
            }
            let before = picture(&world).await;
            let job = world.ended(case(op).begin(&world).await.unwrap().job).await;
            assert_eq!(job.state, SagaState::Failed, "{op} {:?}", job.result);
            let text = job.result.unwrap()["message"].as_str().unwrap().to_owned();
            assert!(text.contains("not ours"), "{text}");
            let end = picture(&world).await;
            assert_eq!((end.domains, end.scan), (before.domains, before.scan));
        });
    }
}

#[test]
fn a_device_that_a_vm_has_open_is_not_taken_away() {
    life().block_on(async {
        let world = fresh(Case { devices: 2, ..case(OpKind::Release) }).await;
        let held = claims(&world)[1].clone();
        let xml = stranger("orchestrated", OTHER_UUID);
        let other: InstanceUuid = OTHER_UUID.parse().unwrap();
        let with_device = world.service().render_domain(VM, &stranger(VM, VM_UUID), Default::default()).await;
        let hostdev = with_device.unwrap();
        let hostdev: String =
            hostdev.split("<hostdev").skip(2).map(|part| format!("<hostdev{part}")).collect();
        let hostdev = hostdev.split("</hostdev>").next().unwrap().to_owned() + "</hostdev>";
        assert!(hostdev.contains(&held.uuid.to_string()));
        world.sim.define(&xml.replace("</devices>", &format!("{hostdev}</devices>"))).await.unwrap();
        world.sim.start(other).await.unwrap();

        let job = world.ended(world.service().release(VM, None).await.unwrap().job).await;
        assert_eq!(job.state, SagaState::Stuck, "the first device is gone already");
        assert_eq!(job.result.unwrap()["details"]["cause"]["kind"], "DeviceInUse");
        assert_eq!(world.running(other).await, Some(true));
        world.sim.stop(other).await.unwrap();
        world.done(world.service().release(VM, None).await).await;
        assert_eq!(world.scan().await.mdevs, []);
    });
}
