//! `migrate --live` between two services; the guest goes from one simulated host to the other.

use mdevirt::host::sim::Change;
use mdevirt::model::{OpKind, Version, Versions};
use mdevirt::saga::Action;
use mdevirt::service::api::{LiveOptions, Operate, OperateWith, PrepareRequest, UseCases};

use crate::{RUNS, Site};

async fn migrate(from: &Site, to: &Site) -> Result<String, String> {
    let uri = to.world.sim.address();
    from.ctl(&["migrate", "web-01", "--live", "--to", to.bus.address(), "--uri", &uri]).await
}

async fn pictures(a: &Site, b: &Site) -> (String, String) {
    (a.picture().await, b.picture().await)
}

fn only(one: &str, two: &str) -> (String, String) {
    (one.to_owned(), two.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_and_back() {
    let (a, b) = (Site::spawned().await, Site::new().await);
    let said = migrate(&a, &b).await.unwrap();
    assert!(said.contains("live migration done of instance web-01") && said.contains("in-use"), "{said}");
    assert_eq!(pictures(&a, &b).await, only("", RUNS));
    migrate(&b, &a).await.unwrap();
    assert_eq!(pictures(&a, &b).await, only(RUNS, ""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_on_the_way_leaves_it_where_it_is() {
    for (on_target, point) in [
        (true, "live-prepare.make_device.0.before_effect"),
        (true, "live-prepare.record.after_effect"),
        (false, "live-commit.record.before_effect"),
        (false, "live-commit.move_guest.before_effect"),
    ] {
        let (a, b) = (Site::spawned().await, Site::new().await);
        let before = a.instances().await;
        let points = if on_target { &b.world.points } else { &a.world.points };
        points.arm(point, Action::Error, Some(1));
        let said = migrate(&a, &b).await.unwrap_err();
        assert!(said.contains("the instance is as it was"), "{point}: {said}");
        assert_eq!(pictures(&a, &b).await, only(RUNS, ""), "{point}");
        assert_eq!(a.instances().await, before, "{point}");
        migrate(&a, &b).await.unwrap();
        assert_eq!(pictures(&a, &b).await, only("", RUNS), "{point}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_fit_has_its_exit_code_and_touches_nothing() {
    let (a, b) = (Site::spawned().await, Site::new().await);
    let before = a.instances().await;
    let old = Versions { libvirt: Version(11, 3, 0), qemu: Version(7, 2, 0), kernel: None };
    b.world.sim.change(Change::Versions(old)).await.unwrap();
    let said = migrate(&a, &b).await.unwrap_err();
    assert!(
        said.starts_with("Some(1): ") && said.contains("needs QEMU 8.1.0 or later, h1 has 7.2.0"),
        "{said}"
    );
    b.world.sim.change(Change::Versions(Versions { qemu: Version(10, 0, 0), ..old })).await.unwrap();
    b.world.sim.change(Change::Driver("550.1".to_owned())).await.unwrap();
    a.world.sim.change(Change::Driver("535.1".to_owned())).await.unwrap();
    let said = migrate(&a, &b).await.unwrap_err();
    assert!(said.starts_with("Some(5): ") && said.contains("one branch of the driver"), "{said}");
    let unsaid = a.ctl(&["migrate", "web-01", "--live", "--to", b.bus.address()]).await.unwrap_err();
    assert!(unsaid.starts_with("Some(2): ") && unsaid.contains("say with --uri"), "{unsaid}");
    a.ctl(&["stop", "web-01"]).await.unwrap();
    let off = migrate(&a, &b).await.unwrap_err();
    assert!(off.starts_with("Some(2): ") && off.contains("migrate it without --live"), "{off}");
    a.ctl(&["start", "web-01"]).await.unwrap();
    assert_eq!(a.instances().await, before);
    assert_eq!(b.picture().await, "");
}

/// The first calls of a live migration, as the program gives them.
async fn interrupted(a: &Site, b: &Site, calls: u32) {
    let document = a.world.service().live_check_source("web-01").await.unwrap();
    let request = PrepareRequest { document, live: true, ..PrepareRequest::default() };
    let job = b.world.done(b.world.service().migrate_prepare(request).await).await;
    if calls >= 2 {
        let live = LiveOptions {
            document: Some(job.result.unwrap()["document"].to_string()),
            uri: Some(b.world.sim.address()),
            ..LiveOptions::default()
        };
        let with = OperateWith { peer: Some(b.bus.address().to_owned()), live, ..OperateWith::default() };
        let commit = Operate { with, ..Operate::plain(OpKind::LiveCommit, "web-01", None) };
        let accepted = a.world.service().operate(commit).await;
        // The third is under way when the program dies.
        if calls == 2 {
            a.world.done(accepted).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interrupted_anywhere_and_given_again() {
    for calls in 1..=3 {
        let (a, b) = (Site::spawned().await, Site::new().await);
        let point = "live-commit.move_guest.before_effect";
        if calls == 3 {
            a.world.points.arm(point, Action::Pause, Some(1));
        }
        interrupted(&a, &b, calls).await;
        if calls == 3 {
            a.world.points.reached(point).await;
            assert_eq!(a.picture().await, "running: in-use outgoing; live-out prepared");
        }
        let (again, ()) = tokio::join!(migrate(&a, &b), async { a.world.points.release(point) });
        again.unwrap();
        assert_eq!(pictures(&a, &b).await, only("", RUNS), "{calls}");
    }
}

/// A guest that is on its way is called back; the job says how far it had come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reverted_on_the_way() {
    let (a, b) = (Site::spawned().await, Site::new().await);
    let before = a.instances().await;
    a.world.sim.hold_guests(true);
    interrupted(&a, &b, 3).await;
    a.world.sim.guest_held().await;
    let there = b.ctl(&["revert", "web-01"]).await.unwrap_err();
    assert!(there.contains("revert it there"), "{there}");
    let mut changes = a.world.service().changes();
    loop {
        let jobs = a.world.service().jobs().await.unwrap();
        if jobs.iter().any(|job| job.step == "move_guest: 25 %, 1 MiB sent, 3 MiB left") {
            break;
        }
        changes.recv().await.unwrap();
    }
    let said = a.ctl(&["revert", "web-01"]).await.unwrap();
    assert!(said.contains("live migration reverted of instance web-01"), "{said}");
    assert_eq!(pictures(&a, &b).await, only(RUNS, ""));
    assert_eq!(a.instances().await, before);
}

/// The command given again while the guest is on its way waits for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_under_way_is_waited_for() {
    let (a, b) = (Site::spawned().await, Site::new().await);
    a.world.sim.hold_guests(true);
    interrupted(&a, &b, 3).await;
    a.world.sim.guest_held().await;
    let again = migrate(&a, &b);
    let (again, ()) = tokio::join!(again, async { a.world.sim.hold_guests(false) });
    again.unwrap();
    assert_eq!(pictures(&a, &b).await, only("", RUNS));
}

/// Two commands take back at once what the target has made: the one that sent, and the one that called it back. Whichever is
/// first, both are told the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn given_up_by_two_at_once() {
    let (a, b) = (Site::spawned().await, Site::new().await);
    let point = "live-rollback.away_still.before_effect";
    b.world.points.arm(point, Action::Pause, Some(1));
    a.world.sim.hold_guests(true);
    let sent = migrate(&a, &b);
    let called_back = async {
        a.world.sim.guest_held().await;
        let release = async {
            b.world.points.reached(point).await;
            b.world.points.release(point);
        };
        tokio::join!(a.ctl(&["revert", "web-01"]), release).0
    };
    let (sent, called_back) = tokio::join!(sent, called_back);
    assert!(sent.unwrap_err().contains("the instance is as it was"));
    assert!(called_back.unwrap().contains("live migration reverted"));
    assert_eq!(pictures(&a, &b).await, only(RUNS, ""));
}
