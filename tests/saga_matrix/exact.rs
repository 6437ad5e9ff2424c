//! A revert brings back exactly what was: the same devices, claims, definition and guest, row by row.

use mdevirt::model::OpKind;
use mdevirt::service::api::{Operate, UseCases};

use crate::case::{Case, Given, VM};
use crate::run::{fresh, life, picture};
use crate::world::World;

async fn goes_and_comes_back(world: &World, case: Case, on: &[OpKind]) {
    let before = picture(world).await;
    world.done(case.begin(world).await).await;
    for op in on {
        world.done(world.service().operate(Operate::plain(*op, VM, None)).await).await;
    }
    world.quiet().await;
    let end = picture(world).await;
    assert_eq!(end.summary(), before.summary(), "{case:?} {on:?}");
    assert_eq!(end, before, "{case:?} {on:?}");
}

#[test]
fn a_reverted_resize_leaves_no_trace() {
    for given in [Given::Fresh, Given::Off] {
        for (devices, to) in [(1, 1), (1, 2), (2, 1), (1, 0), (0, 1)] {
            let case = Case { to, ..Case::of(OpKind::ResizePrepare, devices, given) };
            for on in [&[OpKind::ResizeFinish, OpKind::ResizeRevert][..], &[OpKind::ResizeRevert]] {
                life().block_on(async { goes_and_comes_back(&fresh(case).await, case, on).await });
            }
        }
    }
}

#[test]
fn a_reverted_migration_leaves_no_trace() {
    for given in [Given::Fresh, Given::Off] {
        for devices in 0..=2 {
            let case = Case::of(OpKind::MigrateBegin, devices, given);
            life().block_on(async {
                goes_and_comes_back(&fresh(case).await, case, &[OpKind::MigrateRevert]).await;
            });
        }
    }
}

#[test]
fn a_rescue_that_is_over_leaves_no_trace() {
    for given in [Given::Fresh, Given::Off] {
        let case = Case::of(OpKind::Rescue, 2, given);
        life().block_on(async {
            goes_and_comes_back(&fresh(case).await, case, &[OpKind::Unrescue]).await;
        });
    }
}
