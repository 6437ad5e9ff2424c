//! A domain of libvirt's own gets its device when it starts and gives it back when it stops.

use mdevirt::host::Hypervisor;
use mdevirt::host::sim::Change;
use mdevirt::model::DomainOwner;

use crate::bench::{ONE, TWO, device, hook, prepare, vm, xml};
use crate::world::{World, scenario};

#[tokio::test]
async fn started_and_stopped_by_libvirt_alone() {
    let world = World::new("two-m60").await;
    let before = world.scan().await;
    world.sim.define(&xml(1, Some(TWO), &[device(1), device(2)])).await.unwrap();
    assert!(world.active().await.is_empty(), "nothing is made for a domain that is off");
    world.virsh_start(1).await;
    world.until_states(1, &["in-use", "in-use"]).await;
    assert_eq!(world.active().await, [device(1), device(2)]);
    let books = world.service().store.books();
    let instance = books.instance(vm(1)).unwrap();
    assert_eq!((instance.owner, instance.flavor.as_deref()), (DomainOwner::Libvirt, Some(TWO)));

    world.sim.stop(vm(1)).await.unwrap();
    world.until_states(1, &[]).await;
    world.quiet().await;
    world.assert_untouched(&before).await;
    // And again, as often as one likes.
    world.virsh_start(1).await;
    world.until_states(1, &["in-use", "in-use"]).await;
}

#[tokio::test]
async fn kept_where_the_configuration_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("mdevirt.toml");
    let text = std::fs::read_to_string(scenario("two-m60.toml")).unwrap();
    std::fs::write(&config, format!("{text}\n[policy]\non_stop = \"keep\"\n")).unwrap();
    let world = World::of(&scenario("two-m60.xml"), &config, "").await;
    world.sim.define(&xml(1, Some(ONE), &[device(1)])).await.unwrap();
    world.virsh_start(1).await;
    world.until_states(1, &["in-use"]).await;
    world.sim.stop(vm(1)).await.unwrap();
    world.until_states(1, &["parked"]).await;
    assert_eq!(world.active().await, [device(1)]);
    let held = world.service().store.books().claims_of(vm(1)).next().unwrap().parent.clone();
    // Its device was lost meanwhile: the next start has it again, on the same card.
    world.sim.change(Change::MdevLost(device(1))).await.unwrap();
    world.virsh_start(1).await;
    world.until_states(1, &["in-use"]).await;
    assert_eq!(world.active().await, [device(1)]);
    assert_eq!(world.service().store.books().claims_of(vm(1)).next().unwrap().parent, held);
    // For a domain that is gone nothing is kept.
    world.sim.stop(vm(1)).await.unwrap();
    world.until_states(1, &["parked"]).await;
    world.sim.undefine(vm(1)).await.unwrap();
    world.until_states(1, &[]).await;
    world.quiet().await;
    assert!(world.active().await.is_empty());
}

#[tokio::test]
async fn metadata_alone_is_enough() {
    let world = World::new("two-m60").await;
    world.sim.define(&xml(1, Some(ONE), &[])).await.unwrap();
    let mut events = mdevirt::host::NodeDevices::events(&*world.sim);
    let named = async |world: &World| {
        let xml = world.sim.definition(vm(1)).await.unwrap().unwrap();
        let doc = mdevirt::xml::domain::DomainDoc::parse(&xml).unwrap();
        doc.mdevs().collect::<Vec<_>>()
    };
    while named(&world).await.is_empty() {
        events.recv().await.unwrap();
    }
    world.virsh_start(1).await;
    world.until_states(1, &["in-use"]).await;
    assert_eq!(world.active().await, named(&world).await);
}

#[tokio::test]
async fn a_start_that_came_to_nothing_gives_the_device_back() {
    let world = World::new("two-m60").await;
    let before = world.scan().await;
    let xml = xml(1, Some(ONE), &[device(1)]);
    world.sim.define(&xml).await.unwrap();
    prepare(&world, 1, &xml).await.unwrap();
    assert_eq!(world.active().await, [device(1)]);
    // QEMU does not start; libvirt says so by its hook alone.
    assert_eq!(hook(&world, 1, "release", &xml).await.unwrap(), "");
    world.until_states(1, &[]).await;
    world.quiet().await;
    world.assert_untouched(&before).await;
}

#[test]
fn what_stopped_while_no_daemon_was_there_is_given_back() {
    let life = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = life();
    let (remains, before) = first.block_on(async {
        let world = World::new("two-m60").await;
        let before = world.scan().await;
        for number in [1, 2] {
            world.sim.define(&xml(number, Some(ONE), &[device(number)])).await.unwrap();
            world.virsh_start(number).await;
            world.until_states(number, &["in-use"]).await;
        }
        (world.fall(), before)
    });
    drop(first);
    let second = life();
    second.block_on(async {
        remains.sim.stop(vm(1)).await.unwrap();
        let world = remains.rise(|_| ()).await;
        world.until_states(1, &[]).await;
        world.until_states(2, &["in-use"]).await;
        world.quiet().await;
        assert_eq!(world.active().await, [device(2)]);
        world.sim.stop(vm(2)).await.unwrap();
        world.until_states(2, &[]).await;
        world.quiet().await;
        world.assert_untouched(&before).await;
    });
}

#[tokio::test]
async fn a_spawned_vm_that_is_started_by_hand_has_its_devices() {
    let world = World::new("two-m60").await;
    let spawned = world.spawn("web-01", ONE).await;
    let uuid = world.service().store.books().claims_of(spawned.instance).next().unwrap().uuid;
    world.sim.stop(spawned.instance).await.unwrap();
    world.sim.change(Change::MdevLost(uuid)).await.unwrap();
    let xml = world.sim.definition(spawned.instance).await.unwrap().unwrap();
    prepare(&world, 0, &xml).await.unwrap();
    assert_eq!(world.active().await, [uuid]);
}

/// libvirt gives the start up while the device is being made: what comes of it is given back then.
#[tokio::test]
async fn a_start_that_was_given_up_early_gives_the_device_back() {
    let world = std::sync::Arc::new(World::new("two-m60").await);
    let before = world.scan().await;
    let xml = xml(1, Some(ONE), &[device(1)]);
    world.sim.define(&xml).await.unwrap();
    let point = "claim.make_device.0.after_effect";
    world.points.arm(point, mdevirt::saga::Action::Pause, Some(1));
    let asked = tokio::spawn({
        let (world, xml) = (std::sync::Arc::clone(&world), xml.clone());
        async move { prepare(&world, 1, &xml).await }
    });
    world.points.reached(point).await;
    asked.abort();
    hook(&world, 1, "release", &xml).await.unwrap();
    world.points.release(point);
    world.until_states(1, &[]).await;
    world.quiet().await;
    world.assert_untouched(&before).await;
}
