//! Input that is broken or means harm.
//!
//! | case | what is right | test |
//! |---|---|---|
//! | 31 | the table, 1, 3 | `one_listing_of_hostile_documents` (a test runs on a stack of 2 MiB) |
//! | 31 | 2 | no timing here; `tests/xml` shows that size and depth are looked at before anything is read |
//! | 32 | 1, 6, 8 | `names_of_others_are_shown_as_they_are`, `a_vm_is_called_what_it_is_called` |
//! | 32 | 2 | `a_vm_is_called_what_it_is_called` (the state directory), `no_form_of_a_path_is_a_name`; paths are built in `src/host` alone, from values with checked forms |
//! | 32 | 3 | `tests/config_cases` |
//! | 32 | 4 | `definitions_that_lead_elsewhere` |
//! | 32 | 5 | `no_form_of_a_path_is_a_name`, `a_type_is_compared_with_what_the_parent_offers`; the hook: later |
//! | 32 | 7 | `a_vm_is_called_what_it_is_called` |

use std::path::{Path, PathBuf};

use mdevirt::host::sim::{Change, ForeignMdev};
use mdevirt::host::{Hypervisor, NodeDevices};
use mdevirt::model::{DeviceApi, DisplayWish, FaultKind, FindingKind, MdevUuid, NewMdev, ParentAddr, TypeId};
use mdevirt::service::api::{SpawnRequest, UseCases};
use mdevirt::xml::domain::DomainDoc;
use mdevirt::xml::nodedev;

use crate::books::Remembered;
use crate::listing::{Listing, nodedev_dir};
use crate::setup::{Case, Setup, case_text};
use crate::tree::files_below;

const HOSTILE: &str = "31-hostile-xml";

/// About 100 MB of types, more than any parent has.
fn huge() -> Vec<u8> {
    let mut xml = String::from(
        "<device>\n<name>pci_0000_47_00_0</name>\n<path>/sys</path>\n<parent>computer</parent>\n<capability type=\"pci\">\n\
         <domain>0</domain><bus>71</bus><slot>0</slot><function>0</function>\n<capability type=\"mdev_types\">\n",
    );
    for thousand in 0..900 {
        let of = |n: u32| {
            format!(
                "<type id=\"nvidia-{n}\"><name>GRID T4-2Q</name><deviceAPI>vfio-pci</deviceAPI><availableInstances>8</availableInstances></type>\n"
            )
        };
        xml += &(0..1000).map(|n| of(thousand * 1000 + n)).collect::<String>();
    }
    (xml + "</capability>\n</capability>\n</device>\n").into_bytes()
}

/// 31
#[tokio::test]
async fn one_listing_of_hostile_documents() {
    let mut listing = Listing::default();
    let files = crate::fixture::xml_files(&nodedev_dir(HOSTILE));
    assert_eq!(files.len(), 10);
    for path in files {
        listing.add(&path.file_stem().unwrap().to_string_lossy(), &std::fs::read(&path).unwrap());
    }
    let huge = huge();
    assert!(huge.len() > 90_000_000);
    listing.add("huge", &huge);
    drop(huge);
    let enabled = "[devices]\nenabled_mdev_types = [\"nvidia-231\"]\n";
    let host = Setup::new(HOSTILE).on(listing.finish()).toml(enabled).start().await;

    assert_eq!(host.totals().await, ["0000:3b:00.0 VGPU 8", "0000:41:00.0 VGPU 8", "0000:46:00.0 VGPU 8"]);
    let names: Vec<String> = host.devices().await.iter().map(|d| d.name.clone()).collect();
    assert_eq!(
        names,
        ["TU104GL [Tesla T4]", "TU104GL \u{fffd}   [Tesla T4]", "TU104GL \u{fffd}[Tesla T4]"],
        "the product text of 41 and 46 is not what its bytes were"
    );
    let findings = host.status().await.findings;
    let told: Vec<(&str, FindingKind)> = findings.iter().map(|f| (f.about.as_str(), f.kind)).collect();
    let malformed = |name| (name, FindingKind::MalformedInput);
    assert_eq!(
        told,
        [
            malformed("03-nul"),
            malformed("04-truncated"),
            malformed("05-entity-bomb"),
            ("06-deep", FindingKind::LimitExceeded),
            malformed("08-empty"),
            malformed("09-text"),
            malformed("10-other-root"),
            ("huge", FindingKind::LimitExceeded),
        ]
    );
    assert!(findings.iter().all(|f| !format!("{}{}", f.about, f.text).contains(char::is_control)));
    assert!(findings.iter().all(|f| f.text.len() < 400), "{findings:?}");
    assert!(findings[2].text.contains("DOCTYPE"), "{findings:?}");
    // The good card works, whatever the others are.
    assert_eq!(host.claimed("resources:VGPU=1").await.claims[0].parent.to_string(), "0000:3b:00.0");
}

const NAMES: &str = "32-hostile-names";
const SHELL: &str = "$(touch pwned);id #";
const HELD: &str = "256d380e-25f7-4254-b709-825b65ae10c4";
const FILES: [(&str, &str); 5] = [
    ("blank", "a b\tc"),
    ("dash", "--help"),
    ("dots", ".."),
    ("quotes", "it's \"x\" `id`"),
    ("shell", SHELL),
];

fn enabled() -> &'static str {
    "[devices]\nenabled_mdev_types = [\"nvidia-231\"]\n"
}

/// Nothing called `pwned` came to be where this test may write.
fn assert_no_shell_ran(host: &Case) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert!(!here.join("pwned").exists() && !std::env::current_dir().unwrap().join("pwned").exists());
    let books = ["state.db", "state.db-shm", "state.db-wal", "state.lock"];
    for (dir, known) in [(host.dir.path(), &["mdevirt.toml"][..]), (&host.state, &books)] {
        let below = |path: &PathBuf| path.strip_prefix(dir).unwrap().to_string_lossy().into_owned();
        assert_eq!(files_below(dir).keys().map(below).collect::<Vec<_>>(), known);
    }
}

/// 32, 1, 6 and 8: five domains that others defined; one of them holds a device, ours or not.
#[tokio::test]
async fn names_of_others_are_shown_as_they_are() {
    let ours = || Remembered {
        uuid: HELD.parse().unwrap(),
        parent: "0000:3b:00.0".into(),
        type_id: "nvidia-231".into(),
        type_name: "GRID T4-2Q".into(),
        vm: DomainDoc::parse(case_text("32-hostile-names/domains/shell.xml")).unwrap().uuid,
    };
    for (books, usage) in [(vec![ours()], format!("instance {SHELL}")), (vec![], format!("used by {SHELL}"))]
    {
        let mut setup = Setup::new(NAMES).toml(enabled()).remembering(books);
        for (file, _) in FILES {
            setup = setup.domain(&format!("domains/{file}.xml"), true);
        }
        let host = setup.start().await;
        let t4 = host.device("0000:3b:00.0").await;
        assert_eq!(t4.mdevs.len(), 1);
        assert_eq!(t4.mdevs[0].usage, usage);
        let json = serde_json::to_value(&t4).unwrap();
        assert_eq!(json["mdevs"][0]["usage"], usage);
        assert_eq!(host.findings().await, [""; 0]);
        assert_no_shell_ran(&host);
    }
}

fn spawn(xml: String) -> SpawnRequest {
    SpawnRequest {
        domain_xml: xml,
        flavor: "resources:VGPU=1".into(),
        display: DisplayWish::Off,
        operation_id: None,
        dry_run: false,
    }
}

/// 32, 1, 7 and 8: the same domains, spawned by us.
#[tokio::test]
async fn a_vm_is_called_what_it_is_called() {
    // shell.xml names a slice of the one card and gets a second one.
    let several = format!("{}[mdev.nvidia-231]\nseveral_per_vm = true\n", enabled());
    let host = Setup::new(NAMES).toml(&several).start().await;
    for (file, name) in FILES {
        let xml = case_text(&format!("32-hostile-names/domains/{file}.xml"));
        let spawned = host.service().spawn(spawn(xml.clone())).await;
        if name == ".." {
            let fault = spawned.unwrap_err();
            assert_eq!(fault.kind, FaultKind::InvalidDomainXml);
            assert!(fault.message.contains("'..'"), "{fault}");
            continue;
        }
        let job = host.done(spawned).await;
        assert_eq!(host.held_by(job.instance).await.name, name);
        let defined = host.sim.domain(job.instance).await.unwrap().unwrap();
        assert_eq!(defined.name, name);
        let after = defined.xml.split("<devices>").next();
        assert_eq!(after, xml.split("<devices>").next(), "everything before the devices is as it was");
        assert_no_shell_ran(&host);
        host.done(host.service().stop(name, None).await).await;
        host.done(host.service().start(name, None).await).await;
        host.done(host.service().destroy(name, None).await).await;
        assert_no_shell_ran(&host);
    }
    assert_eq!(host.service().instances().await.unwrap(), []);
    assert_eq!(host.active().await.len(), 1, "the device that shell.xml names was there before");
}

/// 32, 5
#[test]
fn no_form_of_a_path_is_a_name() {
    let table = case_text("32-hostile-names/requests.tsv");
    let mut rows = 0;
    for row in table.lines().filter(|line| !line.starts_with('#')) {
        let [operation, field, value, outcome] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let value = if value == "(empty)" { "" } else { value };
        let taken = match (operation, field) {
            (_, "type") => value.parse::<TypeId>().is_ok(),
            (_, "parent") => value.parse::<ParentAddr>().is_ok(),
            (_, "uuid") => value.parse::<MdevUuid>().is_ok(),
            ("set-attr", "attr") => {
                let attr = format!("<attr name='{value}' value='1'/></capability>");
                let xml = case_text("32-hostile-names/nodedev/mdev_m.xml");
                let xml = xml.replacen("</capability>", &attr, 1);
                nodedev::parse(xml.as_bytes()).is_ok()
            }
            ("hook", "vm name") => {
                let xml = format!("<domain><name>{value}</name></domain>");
                DomainDoc::parse(xml).unwrap().name == value
            }
            _ => panic!("{row}"),
        };
        assert_eq!(taken, outcome != "invalid-name", "{row}");
        rows += 1;
    }
    assert_eq!(rows, 17);
}

/// 32, 5: a good form is not enough.
#[tokio::test]
async fn a_type_is_compared_with_what_the_parent_offers() {
    let host = Setup::new(NAMES).toml(enabled().replace("nvidia-231", "nvidia-999")).start().await;
    assert_eq!(host.totals().await, [""; 0]);
    let (kind, _) = host.refused("resources:VGPU=1").await;
    assert_eq!(kind, FaultKind::TypeUnavailable);
    let new = NewMdev {
        uuid: "0a5b022e-bdb7-42e6-b3ce-490b4ced4963".parse().unwrap(),
        parent: "0000:3b:00.0".parse().unwrap(),
        type_id: "nvidia-999".parse().unwrap(),
        device_api: DeviceApi::VfioPci,
    };
    assert!(host.sim.create(&new).await.is_err());
    let foreign = ForeignMdev { uuid: new.uuid, parent: new.parent.clone(), type_id: new.type_id.clone() };
    assert!(host.sim.change(Change::ForeignMdev(foreign)).await.is_err());
    assert_eq!(host.active().await.len(), 1);
}

/// 32, 4, through libvirt's test driver and the directory beside it.
#[cfg(feature = "libvirt")]
#[tokio::test(flavor = "multi_thread")]
async fn definitions_that_lead_elsewhere() {
    let root = tempfile::tempdir().unwrap();
    crate::fixture::plant_mdevctl(&crate::fixture::case(NAMES).join("mdevctl.d"), root.path());
    let before = files_below(&root.path().join("etc"));
    assert_eq!(before.len(), 2);
    let host = Setup::new(NAMES).on_libvirt(root.path(), &nodedev_dir(NAMES)).toml(enabled()).start().await;
    let findings = host.status().await.findings;
    let told: Vec<&str> =
        findings.iter().filter(|f| f.kind == FindingKind::MalformedInput).map(|f| f.about.as_str()).collect();
    let bad = ["4b521763-face-44e3-8e9e-6145592e16ae", "eb88840c-4ba3-404e-97ea-dd2ed426b97c"];
    assert_eq!(told, bad.map(|uuid| format!("/etc/mdevctl.d/0000:3b:00.0/{uuid}")));
    host.claimed("resources:VGPU=1").await;
    assert!(host.active().await.iter().all(|uuid| !bad.contains(&uuid.to_string().as_str())));
    assert_eq!(files_below(&root.path().join("etc")), before);
}
