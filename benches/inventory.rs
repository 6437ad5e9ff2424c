//! One inventory pass over 384 VFs of 23 types, beside the bare libvirt list-and-read of the same devices, both over the
//! socket of a libvirtd with the test driver: what an in-process driver saves is no part of a host.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a bench that cannot run has to say so"
)]

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use fixture::libvirtd::{Libvirtd, socket};
use mdevirt::catalog::memory::Memory;
use mdevirt::host::NodeDevices;
use mdevirt::host::libvirt::LibvirtHost;
use mdevirt::host::sysfs::Sysfs;
use mdevirt::plan::capacity::{Booked, capacity};
use mdevirt::plan::mapping::assign;
use mdevirt::xml::render::Templates;
use virt::connect::Connect;

/// The host file, written by the generator of the scenarios.
fn host_file() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = root.join("target/bench/big-384vf.xml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    #[expect(clippy::disallowed_methods, reason = "the generator is a script")]
    let out = std::process::Command::new("python3")
        .arg(root.join("tests/scenarios/generate.py"))
        .arg("big-384vf")
        .output()
        .expect("python3 writes the scenario");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    std::fs::write(&file, out.stdout).unwrap();
    file
}

/// What any program pays that asks libvirt for the same devices.
fn bare(conn: &Connect) -> usize {
    let flags = virt::sys::VIR_CONNECT_LIST_NODE_DEVICES_CAP_MDEV_TYPES
        | virt::sys::VIR_CONNECT_LIST_NODE_DEVICES_CAP_MDEV;
    let devices = conn.list_all_node_devices(flags).unwrap();
    devices.iter().map(|d| d.xml_desc(0).unwrap().len()).sum()
}

/// A connection, as soon as the libvirtd of the bench takes one.
fn connected(uri: &str) -> Connect {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match Connect::open(Some(uri)) {
            Ok(conn) => return conn,
            Err(err) if Instant::now() > deadline => panic!("{uri}: {err}"),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn inventory(c: &mut Criterion) {
    let file = host_file();
    let dir = tempfile::tempdir().unwrap();
    let _libvirtd = Libvirtd::start(dir.path());
    let uri = format!("test+unix://{}?socket={}", file.display(), socket(dir.path()).display());
    let config_file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/big-384vf.toml");
    let config = mdevirt::config::load(&config_file).unwrap().config;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let host: Arc<dyn NodeDevices> = runtime.block_on(async {
        LibvirtHost::new(uri.as_str(), Sysfs::new("/nonexistent"), Templates::load(&[]).unwrap())
    });
    let conn = connected(&uri);
    let pass = || {
        let scan = runtime.block_on(host.scan()).unwrap();
        let mapping = assign(&config, &scan, &Memory::default());
        capacity(&mapping, &scan, Booked::default()).iter().filter_map(|c| c.record("h")).count()
    };
    // Both look at the same host before anything is measured.
    assert!(bare(&conn) > 1_000_000);
    assert_eq!(pass(), 384, "every VF has a slice to give");
    let mut group = c.benchmark_group("inventory_384vf");
    group.sample_size(50);
    group.bench_function("bare_libvirt", |b| b.iter(|| bare(&conn)));
    group.bench_function("inventory_pass", |b| b.iter(pass));
    group.finish();
}

criterion_group!(benches, inventory);
criterion_main!(benches);
