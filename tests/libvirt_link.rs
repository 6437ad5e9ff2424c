//! The connection against a real libvirtd: lost, found again, events, and nothing lost in between.
#![cfg(feature = "libvirt")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on shall stop"
)]

mod fixture;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fixture::libvirtd::{Libvirtd, socket};
use mdevirt::host::libvirt::LibvirtHost;
use mdevirt::host::sysfs::Sysfs;
use mdevirt::host::{HostError, HostEvent, Hypervisor, NodeDevices};
use mdevirt::model::InstanceUuid;
use mdevirt::xml::render::Templates;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::broadcast::Receiver;
use tokio::time::timeout;

/// libvirt's test driver inside the daemon: one host, shared by all its clients.
fn host(dir: &Path) -> Arc<LibvirtHost> {
    host_at(&socket(dir), dir)
}

fn host_at(socket: &Path, dir: &Path) -> Arc<LibvirtHost> {
    let uri = format!("test+unix:///default?socket={}", socket.display());
    LibvirtHost::new(uri, Sysfs::new(dir.join("no-such-root")), Templates::load(&[]).unwrap())
}

/// Passes over everything else; the limit only ends a test that would hang.
async fn wait_for(events: &mut Receiver<HostEvent>, wanted: HostEvent) {
    let heard = async { while events.recv().await.expect("the sender lives") != wanted {} };
    timeout(Duration::from_secs(60), heard).await.unwrap_or_else(|_| panic!("{wanted:?} was never heard"));
}

const DOMAIN: &str = "<domain type='test'><name>web-01</name><uuid>0ad1c02e-9a6c-4bd5-8bbf-1ab2f2e4b4a5</uuid>\
    <memory>65536</memory><os><type>hvm</type></os></domain>";

fn uuid() -> InstanceUuid {
    "0ad1c02e-9a6c-4bd5-8bbf-1ab2f2e4b4a5".parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_libvirtd_that_goes_and_comes_back_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path());
    let mut events = host.events();
    let away = host.domains().await.unwrap_err();
    assert!(matches!(away, HostError::Unreachable(_)), "{away}");
    assert!(!host.is_connected());

    let mut daemon = Libvirtd::start(dir.path());
    wait_for(&mut events, HostEvent::Connected).await;
    assert!(host.is_connected());
    assert_eq!(host.domains().await.unwrap().len(), 1);

    daemon.kill();
    wait_for(&mut events, HostEvent::Disconnected).await;
    let away = host.define(DOMAIN).await.unwrap_err();
    assert!(matches!(away, HostError::Unreachable(_)), "nothing can have been sent: {away}");

    let _daemon = Libvirtd::start(dir.path());
    wait_for(&mut events, HostEvent::Connected).await;
    host.define(DOMAIN).await.unwrap();
    wait_for(&mut events, HostEvent::Domain(uuid())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn asking_connects_at_once_and_what_others_do_is_heard() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Libvirtd::start(dir.path());
    let (mine, other) = (host(dir.path()), host(dir.path()));
    let mut events = mine.events();
    // Asking is what makes a down link try, as often as it takes the daemon to listen.
    while let Err(err) = mine.domains().await {
        assert!(matches!(err, HostError::Unreachable(_)), "{err}");
    }
    while other.domains().await.is_err() {}
    other.define(DOMAIN).await.unwrap();
    wait_for(&mut events, HostEvent::Domain(uuid())).await;
    other.start(uuid()).await.unwrap();
    wait_for(&mut events, HostEvent::Domain(uuid())).await;
    assert!(mine.domain(uuid()).await.unwrap().unwrap().running);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_under_many_callers_fails_each_and_recovers() {
    let dir = tempfile::tempdir().unwrap();
    let mut daemon = Libvirtd::start(dir.path());
    let host = host(dir.path());
    let mut events = host.events();
    while host.domains().await.is_err() {}
    let callers: Vec<_> = (0..16)
        .map(|_| {
            let host = Arc::clone(&host);
            tokio::spawn(async move {
                loop {
                    match host.domains().await {
                        Ok(domains) => assert_eq!(domains.len(), 1, "a broken read must not look empty"),
                        Err(err) => return err,
                    }
                }
            })
        })
        .collect();
    daemon.kill();
    for caller in callers {
        let err = caller.await.unwrap();
        assert!(matches!(err, HostError::Unreachable(_)), "{err:?}");
    }
    wait_for(&mut events, HostEvent::Disconnected).await;
    let _daemon = Libvirtd::start(dir.path());
    wait_for(&mut events, HostEvent::Connected).await;
    assert_eq!(host.domains().await.unwrap().len(), 1);
}

/// Passes bytes between one client and libvirtd until the client says `word`; that is passed on and both are cut off.
async fn cut_after(word: &'static [u8], listener: UnixListener, daemon: PathBuf) {
    let (client, _) = listener.accept().await.unwrap();
    let server = UnixStream::connect(daemon).await.unwrap();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let back = tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
    let mut bytes = vec![0; 65536];
    loop {
        let count = from_client.read(&mut bytes).await.unwrap();
        let last = bytes[..count].windows(word.len()).any(|part| part == word);
        if last {
            back.abort();
            let _ = back.await;
            to_server.write_all(&bytes[..count]).await.unwrap();
            return;
        }
        to_server.write_all(&bytes[..count]).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_answer_is_lost_has_an_unknown_outcome() {
    let dir = tempfile::tempdir().unwrap();
    let _daemon = Libvirtd::start(dir.path());
    let direct = host(dir.path());
    while direct.domains().await.is_err() {}
    let between = dir.path().join("between");
    let cutter = cut_after(b"web-01", UnixListener::bind(&between).unwrap(), socket(dir.path()));
    let cutter = tokio::spawn(cutter);
    let err = host_at(&between, dir.path()).define(DOMAIN).await.unwrap_err();
    assert!(matches!(err, HostError::OutcomeUnknown(_)), "{err:?}");
    cutter.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_uri_that_cannot_be_opened_is_told_and_kills_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for uri in ["test:///no/such/file.xml", "qemu:///system\0x"] {
        let host = LibvirtHost::new(uri, Sysfs::new(dir.path()), Templates::load(&[]).unwrap());
        let err = timeout(Duration::from_secs(60), host.domains()).await.unwrap().unwrap_err();
        assert!(matches!(err, HostError::Unreachable(_)), "{uri:?}: {err}");
    }
}
