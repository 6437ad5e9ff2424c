//! While libvirt waits for its hook, nothing that the answer needs waits for libvirt.

use std::sync::Arc;
use std::time::Duration;

use mdevirt::model::OpKind;
use mdevirt::service::api::{Operate, UseCases};
use tokio::time::timeout;

use crate::bench::{ONE, device, prepare, vm, xml};
use crate::world::{World, spawn_request};

/// Far beyond any answer; a test that waits so long has failed.
const NEVER: Duration = Duration::from_secs(60);

/// libvirt answers nobody until the hook has: looks at status, a spawn that is being booked, an operation on this very guest.
#[tokio::test]
async fn the_hook_is_answered_while_libvirt_is_locked() {
    let (world, gate) = World::gated("two-m60", "two-m60.toml").await;
    world.spawn("web-01", ONE).await;
    let world = Arc::new(world);
    gate.libvirt.lock();
    let others: Vec<_> = (0..6)
        .map(|number| {
            let world = Arc::clone(&world);
            tokio::spawn(async move {
                match number % 3 {
                    0 => drop(world.service().status().await),
                    1 => drop(world.service().spawn(spawn_request(&format!("other-{number}"), ONE)).await),
                    _ => drop(world.service().operate(Operate::plain(OpKind::Reboot, "web-01", None)).await),
                }
            })
        })
        .collect();
    gate.libvirt.waiting_for(3).await;
    let started = xml(1, Some(ONE), &[device(1)]);
    let answer = timeout(NEVER, prepare(&world, 1, &started)).await.expect("an answer without libvirt");
    assert_eq!(answer.unwrap(), "");
    assert!(others.iter().any(|task| !task.is_finished()), "they waited for libvirt all the time");
    let books = world.service().store.books();
    assert_eq!(books.claims_of(vm(1)).map(|c| c.state.as_str()).collect::<Vec<_>>(), ["ready"]);
    gate.libvirt.unlock();
    for other in others {
        timeout(NEVER, other).await.expect("they go on").unwrap();
    }
    world.quiet().await;
    let mut claimed: Vec<_> = world.service().store.books().claims().map(|c| c.uuid).collect();
    claimed.sort();
    assert_eq!(claimed, world.active().await, "no room was given twice");
}
