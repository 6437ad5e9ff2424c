//! What it costs to compare the traits of a fleet: 10,000 exports of 20 traits each, read from their texts.
#![allow(missing_docs, clippy::expect_used, reason = "a bench that cannot go on shall stop")]

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use mdevirt::catalog::{Export, Lock, TraitState, verify};
use mdevirt::model::{DeviceApi, TraitName, TypeIdentity};

const HOSTS: usize = 10_000;

fn identity(number: u32) -> TypeIdentity {
    TypeIdentity {
        vendor_id: Some(0x10de),
        device_id: None,
        name: Some(format!("NVIDIA A2-{number}Q")),
        type_id: None,
        device_api: DeviceApi::VfioPci,
        framebuffer_mib: Some(1024 * number),
        heads: Some(4),
        max_resolution: Some("7680x4320".to_owned()),
    }
}

fn fleet() -> Vec<Vec<u8>> {
    let identities: BTreeMap<TraitName, TypeIdentity> =
        (1..=20).map(|n| (format!("CUSTOM_{n}").parse().expect("a name"), identity(n))).collect();
    let lock = Lock::of(None, &identities);
    let of_host = |host: usize| {
        let mut traits: BTreeMap<TraitName, (TraitState, Option<TypeIdentity>)> = identities
            .iter()
            .map(|(name, one)| (name.clone(), (TraitState::Ok, Some(one.clone()))))
            .collect();
        // One in a thousand means something else.
        if host.is_multiple_of(1000) {
            traits.insert("CUSTOM_1".parse().expect("a name"), (TraitState::Ok, Some(identity(99))));
        }
        serde_json::to_vec(&Export::of(&format!("gpu-{host}"), Some(&lock), &traits)).expect("an export")
    };
    (0..HOSTS).map(of_host).collect()
}

fn verification(c: &mut Criterion) {
    let fleet = fleet();
    let mut group = c.benchmark_group("verify");
    group.sample_size(10);
    group.bench_function("10000_exports", |b| {
        b.iter(|| {
            let read = fleet.iter().map(|text| Export::parse(text, "a file").expect("an export"));
            let verdict = verify(&read.collect::<Vec<_>>());
            assert_eq!(verdict.differences.len(), HOSTS / 1000);
            black_box(verdict)
        });
    });
    group.finish();
}

criterion_group!(benches, verification);
criterion_main!(benches);
