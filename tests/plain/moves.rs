//! A running domain of libvirt's own moves by libvirt alone: its metadata tells the target what it has, and the target's hook
//! gives it the same, or refuses.

use std::collections::BTreeMap;

use mdevirt::host::Hypervisor;
use mdevirt::host::sim::Change;
use mdevirt::model::{FaultKind, TypeId};
use mdevirt::xml::domain::DomainDoc;

use crate::bench::{ONE, TWO, device, hook, vm, xml};
use crate::world::{World, scenario};

/// A VM that runs, and its XML as libvirt sends it to the target.
async fn running(flavor: &str, devices: u128) -> (World, String) {
    let source = World::new("two-m60").await;
    let devices: Vec<_> = (1..=devices).map(device).collect();
    source.sim.define(&xml(1, Some(flavor), &devices)).await.unwrap();
    let mut events = mdevirt::host::NodeDevices::events(&*source.sim);
    source.virsh_start(1).await;
    loop {
        let live = source.sim.domain(vm(1)).await.unwrap().unwrap().xml;
        if DomainDoc::parse(&live).unwrap().vgpu.is_some_and(|vgpu| vgpu.held.is_some()) {
            return (source, live);
        }
        events.recv().await.unwrap();
    }
}

fn named(xml: &str) -> Vec<mdevirt::model::MdevUuid> {
    DomainDoc::parse(xml).unwrap().mdevs().collect()
}

#[tokio::test]
async fn it_gets_the_same_types_whatever_their_ids_are() {
    let (source, live) = running(TWO, 2).await;
    let target = World::new("two-m60").await;
    let there: Vec<_> = source.service().store.books().claims().cloned().collect();
    let renumbered = |claim: &mdevirt::model::Claim| (claim.mdev_type.clone(), "nvidia-900".parse().unwrap());
    let ids: BTreeMap<TypeId, TypeId> = there.iter().map(renumbered).collect();
    target.sim.change(Change::Renumber(ids)).await.unwrap();

    let arrived = hook(&target, 1, "migrate", &live).await.unwrap();
    assert_eq!(named(&arrived), target.active().await);
    let here: Vec<_> = target.service().store.books().claims().cloned().collect();
    assert_eq!(
        here.iter().map(|c| &c.identity).collect::<Vec<_>>(),
        there.iter().map(|c| &c.identity).collect::<Vec<_>>()
    );
    assert!(here.iter().all(|c| c.mdev_type.as_str() == "nvidia-900"), "{here:?}");
    // libvirt starts it here and ends it there.
    target.sim.define(&arrived).await.unwrap();
    target.sim.start(vm(1)).await.unwrap();
    target.until_states(1, &["in-use", "in-use"]).await;
    source.sim.stop(vm(1)).await.unwrap();
    source.until_states(1, &[]).await;
    source.quiet().await;
    assert!(source.active().await.is_empty());
}

#[tokio::test]
async fn a_uuid_that_is_taken_here_is_another_one_afterwards() {
    let (_source, live) = running(ONE, 1).await;
    let target = World::new("two-m60").await;
    target.sim.define(&xml(2, Some(ONE), &[device(1)])).await.unwrap();
    target.virsh_start(2).await;
    let arrived = hook(&target, 1, "migrate", &live).await.unwrap();
    let [new] = named(&arrived)[..] else { panic!("{arrived}") };
    assert!(new != device(1) && target.active().await.contains(&new));
    // It could go on from here.
    let doc = DomainDoc::parse(&arrived).unwrap();
    assert!(doc.vgpu.unwrap().held.unwrap().contains(&new.to_string()));
}

#[tokio::test]
async fn a_migration_that_fails_leaves_nothing() {
    let (_source, live) = running(ONE, 1).await;
    let target = World::new("two-m60").await;
    let before = target.scan().await;
    let arrived = hook(&target, 1, "migrate", &live).await.unwrap();
    hook(&target, 1, "release", &arrived).await.unwrap();
    target.until_states(1, &[]).await;
    target.quiet().await;
    target.assert_untouched(&before).await;
}

#[tokio::test]
async fn a_host_that_cannot_serve_it_refuses_with_the_reason() {
    let (_source, live) = running(ONE, 1).await;
    let target = World::new("two-m60").await;
    let before = target.scan().await;
    let refused = async |xml: &str| hook(&target, 1, "migrate", xml).await.unwrap_err();

    let untold = xml(1, Some(ONE), &[device(1)]);
    assert_eq!(refused(&untold).await.kind, FaultKind::Incompatible);
    let damaged =
        live.replace("&quot;version&quot;:1", "&quot;version&quot;:9").replace("\\\"version\\\":1", "");
    assert_ne!(damaged, live, "{live}");
    assert_eq!(refused(&damaged).await.kind, FaultKind::InvalidDomainXml);

    let all: Vec<TypeId> = before.parents.iter().flat_map(|p| &p.types).map(|t| t.id.clone()).collect();
    target.sim.change(Change::Withdraw(all.into_iter().collect())).await.unwrap();
    let fault = refused(&live).await;
    assert!(matches!(fault.kind, FaultKind::Incompatible | FaultKind::NoCapacity), "{fault}");
    target.sim.change(Change::Withdraw(Default::default())).await.unwrap();
    target.assert_untouched(&before).await;
    hook(&target, 1, "migrate", &live).await.unwrap();
    assert_eq!(refused(&live).await.kind, FaultKind::InstanceExists);
}

#[tokio::test]
async fn another_lock_of_traits_is_refused() {
    let (_source, live) = running(ONE, 1).await;
    let dir = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(scenario("two-m60.toml")).unwrap();
    let (config, traits) = (dir.path().join("mdevirt.toml"), dir.path().join("traits.toml"));
    let place = |name: &str| dir.path().join(name).display().to_string();
    let section =
        format!("\n[traits]\nfile = {:?}\nlock = {:?}\n", place("traits.toml"), place("traits.lock"));
    std::fs::write(&config, text + &section).unwrap();
    std::fs::write(&traits, "[trait.CUSTOM_GOLD]\ntype = \"GRID M60-2Q\"\n").unwrap();
    let target = World::of(&scenario("two-m60.xml"), &config, "").await;
    mdevirt::service::api::UseCases::trait_lock(target.service()).await.unwrap();
    let fault = hook(&target, 1, "migrate", &live).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::TraitMismatch, "{fault}");
    assert!(target.active().await.is_empty());
}
