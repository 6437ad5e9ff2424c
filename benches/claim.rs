//! What a claim and its release cost on a simulated host: time, and commits to the disk.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]
#![allow(clippy::unwrap_used, reason = "a bench that cannot run has to say so")]

#[path = "../tests/world/mod.rs"]
mod world;

use criterion::{Criterion, criterion_group, criterion_main};
use mdevirt::service::api::{ClaimRequest, UseCases};
use world::World;

fn request() -> ClaimRequest {
    ClaimRequest {
        instance: "1fc01460-67d7-4303-a5ea-69a57b994f50".parse().unwrap(),
        name: "bench".into(),
        flavor: "resources:VGPU=1".into(),
        operation_id: None,
    }
}

async fn claim(world: &World) {
    world.done(world.service().claim(request()).await).await;
}

async fn release(world: &World) {
    world.done(world.service().release("bench", None).await).await;
}

fn claims(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let world = runtime.block_on(World::new("two-m60"));
    // What the first look at a host teaches is written once, not with every claim.
    runtime.block_on(world.service().reload()).unwrap();
    let before = world.service().store.commits();
    runtime.block_on(claim(&world));
    let commits = world.service().store.commits() - before;
    println!("claim_commits {commits}");
    assert!(commits <= 2, "a claim costs at most two commits, this one cost {commits}");
    runtime.block_on(release(&world));
    c.bench_function("claim_and_release", |b| {
        b.iter(|| {
            runtime.block_on(async {
                claim(&world).await;
                release(&world).await;
            });
        });
    });
}

criterion_group!(benches, claims);
criterion_main!(benches);
