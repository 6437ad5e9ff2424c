//! What an operation hands to the daemon.

use crate::bus::{Fake, Pace, PrivateBus};
use crate::{ctl, json, on_bus, run};

#[tokio::test]
async fn arguments_arrive() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve(&service).await;
    let file = bus.dir().join("domain.xml");
    std::fs::write(&file, "<domain>\n</domain>").unwrap();
    service.world().asked.clear();
    let from_file = [
        "spawn",
        file.to_str().unwrap(),
        "--flavor",
        "resources:VGPU=1",
        "--display",
        "on",
        "--operation-id",
        "7",
    ];
    assert_eq!(ctl(&bus, &from_file).await.code, 0);
    let name = "$(touch pwned);id #";
    assert_eq!(ctl(&bus, &["destroy", name, "--operation-id", "8"]).await.code, 0);
    let uuid = "11111111222243338444555555555555";
    let claim = ["claim", "create", "--instance", uuid, "--name", "n", "--flavor", "f"];
    assert_eq!(ctl(&bus, &claim).await.code, 0);
    assert_eq!(
        service.world().asked,
        [
            r#"spawn {"domain_xml":"<domain>\n</domain>","flavor":"resources:VGPU=1","display":"on","operation_id":"7","dry_run":false}"#,
            r#"destroy "$(touch pwned);id #" Some("8")"#,
            r#"claim {"instance":"11111111-2222-4333-8444-555555555555","name":"n","flavor":"f","operation_id":null}"#,
        ]
    );
}

#[tokio::test]
async fn what_is_accepted_and_planned_arrives() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve(&service).await;
    let file = bus.dir().join("mdevirt.toml");
    std::fs::write(&file, "[devices]\nenabled_mdev_types = [\"GRID T4-2Q\"]\n").unwrap();
    service.world().asked.clear();
    let accept = ["trait", "accept", "GRID T4-2Q", "--reason", "a 'reason'", "--parent", "pci_0000_84_00_0"];
    assert_eq!(ctl(&bus, &accept).await.code, 0);
    assert_eq!(ctl(&bus, &["trait", "lock"]).await.code, 0);
    assert_eq!(ctl(&bus, &["plan"]).await.code, 0);
    assert_eq!(ctl(&bus, &["plan", "--config", file.to_str().unwrap()]).await.code, 0);
    let asked = service.world().asked.clone();
    assert_eq!(
        asked[..3],
        [
            r#"accept {"word":"GRID T4-2Q","reason":"a 'reason'","parent":"0000:84:00.0"}"#,
            "trait lock",
            "plan None",
        ]
    );
    assert!(asked[3].starts_with("plan Some(") && asked[3].contains("GRID T4-2Q"), "{}", asked[3]);
    // A file that does not check is the caller's, and the daemon is not asked.
    std::fs::write(&file, "[devices]\nenabled_mdev_types = 7\n").unwrap();
    let ran = ctl(&bus, &["plan", "--config", file.to_str().unwrap()]).await;
    assert_eq!((ran.code, service.world().asked.len()), (2, 4), "{}", ran.stderr);
    assert!(ran.stderr.contains("mdevirt.toml:2:"), "{}", ran.stderr);
}

#[tokio::test]
async fn a_name_that_looks_like_an_option_is_a_name_after_two_dashes() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve(&service).await;
    service.world().asked.clear();
    let mut command = crate::program(&["--address", bus.address(), "stop", "--", "--help"]);
    command.env("NO_COLOR", "1");
    assert_eq!(run(command, "").await.code, 0);
    assert_eq!(service.world().asked, [r#"stop "--help" None"#]);
}

#[tokio::test]
async fn the_same_operation_id_is_the_same_job() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve(&service).await;
    let args = ["start", "web-01", "--operation-id", "op", "--json"];
    let first = json(&ctl(&bus, &args).await.stdout);
    let second = json(&ctl(&bus, &args).await.stdout);
    assert_eq!(first, second);
    assert_eq!(service.world().jobs.len(), 1);
}

#[tokio::test]
async fn many_at_once_all_end_well() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::AtOnce));
    let _server = bus.serve(&service).await;
    let runs = (0..8).map(|_| run(on_bus(&bus, &["start", "web-01"]), ""));
    for ran in futures_util::future::join_all(runs).await {
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    }
}
