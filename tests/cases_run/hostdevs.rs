//! Host devices in the XML of a domain, the user's own and ours.
//!
//! | case | what is right | test |
//! |---|---|---|
//! | 18 | the files | `a_console_of_the_users_own` |
//! | 18 | the requests | `a_console_on_our_devices` |
//! | 18 | before libvirt, before any mdev; nothing is left | `a_console_of_the_users_own`, `a_console_on_our_devices` |
//! | 19 | no-model, alias-*, mdev-managed-empty | `attributes_of_the_users_own` |
//! | 19 | vf-* | later: vendor-vfio; the checks themselves are tested in `tests/xml` |
//! | 19 | 1 | `attributes_of_ours`; VFs later |
//! | 19 | 2 | no alias is written; a device is found by its UUID: `attributes_of_the_users_own` |
//! | 19 | 3 | later: vendor-vfio |

use mdevirt::host::Hypervisor;
use mdevirt::host::sim::{Change, ForeignMdev};
use mdevirt::model::{DisplayWish, Fault, FaultKind, InstanceUuid, Job, MdevUuid};
use mdevirt::service::api::{SpawnRequest, UseCases};
use mdevirt::xml::domain::DomainDoc;

use crate::setup::{Case, Setup, case_text};

/// Two T4 cards, with devices of somebody else that the domains of a case name.
async fn host(named: &[&str]) -> Case {
    let host = Setup::new("20-two-vgpus-one-pgpu").nova("nova-2q.conf").start().await;
    for (uuid, parent) in named.iter().zip(["0000:3b:00.0", "0000:86:00.0"]) {
        let foreign = ForeignMdev {
            uuid: uuid.parse().unwrap(),
            parent: parent.parse().unwrap(),
            type_id: "nvidia-231".parse().unwrap(),
        };
        host.sim.change(Change::ForeignMdev(foreign)).await.unwrap();
    }
    host
}

fn request(xml: String, count: u32, display: DisplayWish) -> SpawnRequest {
    SpawnRequest {
        domain_xml: xml,
        flavor: format!("resources:VGPU={count}"),
        display,
        operation_id: None,
        dry_run: false,
    }
}

/// Spawns a domain of a case with one device of ours.
async fn spawned(host: &Case, file: &str) -> Result<Job, Fault> {
    let accepted = host.service().spawn(request(case_text(file), 1, DisplayWish::Off)).await?;
    Ok(host.done(Ok(accepted)).await)
}

/// Spawns a domain that must be refused, and leaves nothing behind.
async fn refused(host: &Case, file: &str, words: &[&str]) {
    let before = host.scan().await;
    let fault = spawned(host, file).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::InvalidDomainXml, "{file}");
    for word in words {
        assert!(fault.message.contains(word), "{file}: {word}: {fault}");
    }
    host.assert_untouched(&before).await;
    assert_eq!(host.sim.domains().await.unwrap(), []);
}

const FIRST: &str = "6ed6d2cd-e746-4a7b-8f5f-f5472be271cc";
const SECOND: &str = "af2266d5-e04c-48c3-b10f-a5c955666a77";

/// 18, the files
#[tokio::test]
async fn a_console_of_the_users_own() {
    let host = host(&[FIRST, SECOND]).await;
    let file = |name: &str| format!("18-display-and-ramfb/domains/{name}.xml");
    refused(&host, &file("two-ramfb"), &[FIRST, SECOND, "only one host device"]).await;
    refused(&host, &file("display-no-graphics"), &[FIRST, "<graphics>"]).await;

    spawned(&host, &file("plain")).await.unwrap();
    assert_eq!(host.findings().await, [""; 0]);
    let plain = DomainDoc::parse(case_text(&file("plain"))).unwrap().name;
    host.done(host.service().destroy(&plain, None).await).await;
    spawned(&host, &file("ramfb-without-display")).await.unwrap();
    let name = DomainDoc::parse(case_text(&file("ramfb-without-display"))).unwrap().name;
    assert!(host.finds(&name, &[FIRST, "shows nothing", "unplugged"]).await, "{:?}", host.findings().await);
    assert_eq!(host.findings().await.len(), 1);
}

fn domain(graphics: bool) -> String {
    let graphics = if graphics { "<graphics type='vnc' port='-1'/>" } else { "" };
    crate::world::domain_xml("desk").replace("  </devices>", &format!("  {graphics}</devices>"))
}

/// 18, the requests
#[tokio::test]
async fn a_console_on_our_devices() {
    let mut seen = Vec::new();
    for line in case_text("18-display-and-ramfb/requests.tsv").lines().skip(1) {
        let [name, graphics, count, wanted] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let wish = if wanted == "yes" { DisplayWish::On } else { DisplayWish::default() };
        let host = host(&[]).await;
        let before = host.scan().await;
        let request = request(domain(graphics == "yes"), count.parse().unwrap(), wish);
        match host.service().spawn(request).await {
            Ok(accepted) => {
                let job = host.done(Ok(accepted)).await;
                let xml = host.domain_xml(job.instance).await;
                let shape = DomainDoc::parse(xml).unwrap().hostdevs;
                let shape = shape.iter().map(|h| (h.display, h.ramfb.unwrap_or(false)));
                seen.push((name.to_owned(), Ok(shape.collect::<Vec<_>>())));
            }
            Err(fault) => {
                assert_eq!(fault.kind, FaultKind::InvalidDomainXml);
                assert!(fault.message.contains("<graphics>"), "{fault}");
                host.assert_untouched(&before).await;
                seen.push((name.to_owned(), Err(())));
            }
        }
    }
    let (on, off) = ((Some(true), true), (Some(false), false));
    let wanted =
        [("R1", Ok(vec![on, off])), ("R2", Err(())), ("R3", Ok(vec![off, off])), ("R4", Ok(vec![off]))];
    assert_eq!(seen, wanted.map(|(name, shape)| (name.to_owned(), shape)));
}

const ATTRIBUTED: &str = "65e07e12-480e-42cd-b5df-9edc68b1675c";

/// 19
#[tokio::test]
async fn attributes_of_the_users_own() {
    let host = host(&[ATTRIBUTED]).await;
    let file = |name: &str| format!("19-hostdev-attributes/domains/{name}.xml");
    refused(&host, &file("no-model"), &[ATTRIBUTED, "model missing", "model='vfio-pci'"]).await;
    for (name, warned) in
        [("alias-dot", true), ("alias-plain", true), ("alias-good", false), ("mdev-managed-empty", false)]
    {
        let job = spawned(&host, &file(name)).await.unwrap();
        let uuid: InstanceUuid = job.instance;
        let domain = host.sim.domain(uuid).await.unwrap().unwrap();
        let findings = host.findings().await;
        assert_eq!(findings.len(), usize::from(warned), "{name}: {findings:?}");
        if warned {
            assert!(host.finds(&domain.name, &[ATTRIBUTED, "drops the alias"]).await, "{findings:?}");
        }
        // Found whatever its alias is.
        let mdevs = host.device("0000:3b:00.0").await.mdevs;
        let usage = mdevs.iter().find(|m| m.uuid.to_string() == ATTRIBUTED).map(|m| m.usage.clone());
        assert_eq!(usage, Some(format!("used by {}", domain.name)));
        host.done(host.service().destroy(&uuid.to_string(), None).await).await;
    }
}

/// The name that libvirt gives to a device of a running domain is none of the user's.
#[tokio::test]
async fn libvirts_own_alias_is_no_finding() {
    let host = host(&[ATTRIBUTED]).await;
    let xml = case_text("19-hostdev-attributes/domains/alias-plain.xml");
    let doc = DomainDoc::parse(&xml).unwrap();
    let alias = doc.hostdevs[0].alias.clone().unwrap();
    host.sim.define(&xml.replace(&alias, "hostdev0")).await.unwrap();
    host.sim.start(doc.uuid.unwrap()).await.unwrap();
    assert_eq!(host.findings().await, [""; 0]);
}

/// An idle device of ours is given by a claim, never because a domain names it.
#[tokio::test]
async fn an_idle_device_of_ours_is_not_for_the_taking() {
    let idle = "c0eaede1-d1b7-46df-8289-6edbefc1036d";
    let host = Setup::new("09-zero-available-zero-total").nova("nova.conf").remembered().start().await;
    let xml = case_text("19-hostdev-attributes/domains/alias-good.xml").replace(ATTRIBUTED, idle);
    let before = host.scan().await;
    let fault = host.service().spawn(request(xml, 1, DisplayWish::Off)).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::InvalidDomainXml);
    assert!(fault.message.contains(idle) && fault.message.contains("kept for a claim"), "{fault}");
    assert_eq!(host.scan().await, before);
}

/// 19, 1
#[tokio::test]
async fn attributes_of_ours() {
    let host = host(&[]).await;
    let shown = host.service().preview_spawn(request(domain(true), 1, DisplayWish::Off)).await.unwrap();
    let uuid: MdevUuid = shown.devices[0].uuid;
    let element = shown.domain_xml.split("<hostdev").nth(1).unwrap().split("</hostdev>").next().unwrap();
    assert!(element.contains("model='vfio-pci'") && element.contains(&uuid.to_string()), "{element}");
    assert!(!element.contains("managed=''") && !element.contains("alias"), "{element}");
    assert_eq!(host.scan().await.mdevs, []);
}
