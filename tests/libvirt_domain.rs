//! Domains on libvirt's test driver, in process: each call twice, for a step may run twice.
#![cfg(feature = "libvirt")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on shall stop"
)]

use std::fs;
use std::sync::Arc;

use mdevirt::host::libvirt::LibvirtHost;
use mdevirt::host::sysfs::Sysfs;
use mdevirt::host::{HostError, Hypervisor};
use mdevirt::model::InstanceUuid;
use mdevirt::xml::render::Templates;
use tempfile::TempDir;

/// A host of its own, so that tests do not meet in libvirt's `test:///default`; `domains` are there and run.
fn host(domains: &str) -> (TempDir, Arc<LibvirtHost>) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("host.xml");
    fs::write(&file, format!("<node>{domains}</node>")).unwrap();
    let uri = format!("test://{}", file.display());
    let host = LibvirtHost::new(uri, Sysfs::new(dir.path()), Templates::load(&[]).unwrap());
    (dir, host)
}

fn domain(name: &str, uuid: InstanceUuid) -> String {
    format!(
        "<domain type='test'><name>{name}</name><uuid>{uuid}</uuid><memory>65536</memory><os><type>hvm</type></os></domain>"
    )
}

fn uuid(last: u8) -> InstanceUuid {
    format!("0ad1c02e-9a6c-4bd5-8bbf-1ab2f2e4b4{last:02x}").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_life_in_which_everything_happens_twice() {
    let (_dir, host) = host("");
    let (web, name) = (uuid(1), "$(touch pwned);id #");
    assert_eq!(host.domain(web).await.unwrap(), None);
    for _ in 0..2 {
        host.define(&domain(name, web)).await.unwrap();
    }
    let seen = host.domain(web).await.unwrap().unwrap();
    assert_eq!((seen.uuid, seen.name.as_str(), seen.running, seen.persistent), (web, name, false, true));
    for _ in 0..2 {
        host.start(web).await.unwrap();
    }
    assert!(host.domain(web).await.unwrap().unwrap().running);
    for _ in 0..2 {
        host.stop(web).await.unwrap();
    }
    assert_eq!(host.domains().await.unwrap(), [seen]);
    for _ in 0..2 {
        host.undefine(web).await.unwrap();
    }
    assert_eq!(host.domains().await.unwrap(), []);
    host.stop(web).await.unwrap();
    let gone = host.start(web).await.unwrap_err();
    assert!(matches!(&gone, HostError::NotFound(what) if what.contains(&web.to_string())), "{gone}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_domain_loses_its_definition_only() {
    let (_dir, host) = host(&domain("web-01", uuid(1)));
    host.undefine(uuid(1)).await.unwrap();
    let seen = host.domain(uuid(1)).await.unwrap().unwrap();
    assert!(seen.running && !seen.persistent);
    assert_eq!(host.domains().await.unwrap(), [seen], "the list and the look-up say the same");
    host.undefine(uuid(1)).await.unwrap();
    host.stop(uuid(1)).await.unwrap();
    assert_eq!(host.domains().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_domains_are_all_listed() {
    let many: String = (0..100).map(|n| domain(&format!("web-{n:02}"), uuid(n))).collect();
    let (_dir, host) = host(&many);
    let mut names: Vec<String> =
        host.domains().await.unwrap().into_iter().map(|domain| domain.name).collect();
    names.sort();
    assert_eq!(names, (0..100).map(|n| format!("web-{n:02}")).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn xml_that_libvirt_does_not_take_changes_nothing() {
    let (_dir, host) = host("");
    let no_model = domain("web-01", uuid(1)).replace(
        "</domain>",
        "<devices><hostdev mode='subsystem' type='mdev'><source>\
         <address uuid='1fc01460-67d7-4303-a5ea-69a57b994f50'/></source></hostdev></devices></domain>",
    );
    for bad in ["", "<domain", "<network/>", "a\0b", no_model.as_str()] {
        let refused = host.define(bad).await.unwrap_err();
        assert!(matches!(refused, HostError::InvalidXml(_)), "{bad:?}: {refused:?}");
    }
    assert_eq!(host.domains().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_is_found_by_its_uuid_or_its_name() {
    let (_dir, host) = host(&domain("web-01", uuid(1)));
    assert_eq!(host.find_domain(uuid(1), "other").await.unwrap(), Some(uuid(1)));
    assert_eq!(host.find_domain(uuid(2), "web-01").await.unwrap(), Some(uuid(1)));
    assert_eq!(host.find_domain(uuid(2), "other").await.unwrap(), None);
}
