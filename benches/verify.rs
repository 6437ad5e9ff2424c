//! What it costs to tell whether 10,000 hosts agree on what their traits mean: reading their exports and comparing them.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]
#![allow(clippy::unwrap_used, reason = "a bench that cannot run has to say so")]

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use mdevirt::catalog::{Export, Lock, TraitState, Verdict, verify};
use mdevirt::model::{DeviceApi, TraitName, TypeIdentity};

const HOSTS: usize = 10_000;
const TRAITS: usize = 20;

fn identity(number: usize) -> TypeIdentity {
    TypeIdentity {
        vendor_id: Some(0x10de),
        device_id: None,
        name: Some(format!("NVIDIA A2-{number}Q")),
        type_id: None,
        device_api: DeviceApi::VfioPci,
        framebuffer_mib: Some(4096),
        heads: Some(4),
        max_resolution: Some("7680x4320".to_owned()),
    }
}

/// Every host says the same but for the last one.
fn documents() -> Vec<Vec<u8>> {
    let traits =
        (0..TRAITS).map(|n| (format!("CUSTOM_SLICE_{n}").parse::<TraitName>().unwrap(), identity(n)));
    let meant: BTreeMap<_, _> = traits.collect();
    let lock = Lock::of(None, &meant);
    let document = |host: usize| {
        let mut resolved: BTreeMap<_, _> =
            meant.iter().map(|(name, id)| (name.clone(), (TraitState::Ok, Some(id.clone())))).collect();
        if host + 1 == HOSTS {
            resolved.insert("CUSTOM_SLICE_0".parse().unwrap(), (TraitState::Ok, Some(identity(TRAITS))));
        }
        serde_json::to_vec_pretty(&Export::of(&format!("gpu-{host}"), Some(&lock), &resolved)).unwrap()
    };
    (0..HOSTS).map(document).collect()
}

fn verdict(documents: &[Vec<u8>]) -> Verdict {
    let exports = documents.iter().map(|document| Export::parse(document, "export").unwrap());
    verify(&exports.collect::<Vec<_>>())
}

fn fleet(c: &mut Criterion) {
    let documents = documents();
    assert_eq!(verdict(&documents).differences.len(), 1, "the last host alone differs");
    let mut group = c.benchmark_group("trait_verify");
    group.sample_size(10);
    group.bench_function("10000_hosts", |b| b.iter(|| black_box(verdict(&documents))));
    group.finish();
}

criterion_group!(benches, fleet);
criterion_main!(benches);
