//! Drivers that renumber, rename and drop types.
//!
//! | case | what is right | test |
//! |---|---|---|
//! | 25 | the table, 1 to 4 | `a_driver_upgrade_moves_ids_and_names` |
//! | 25 | 5 | `a_first_start_takes_the_configuration_as_it_reads` |
//! | 26 | the traits, 1 and 2 | `one_id_means_two_types_on_two_hosts` |
//! | 26 | the runs | `a_move_is_checked_by_what_types_are_not_by_ids` |
//! | 26 | 3 | later: live migration |

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use mdevirt::catalog::memory::Memory;
use mdevirt::catalog::resolve::Resolution;
use mdevirt::catalog::{Export, TraitState, verify};
use mdevirt::config::parse;
use mdevirt::host::Hypervisor;
use mdevirt::host::sim::{FileHost, SimHost, SimOptions};
use mdevirt::model::{FaultKind, Mdev, SagaState, TypeFacts, TypeIdentity};
use mdevirt::plan::capacity::{Booked, capacity};
use mdevirt::plan::mapping::assign;
use mdevirt::plan::migrate::{Moving, landings};
use mdevirt::service::api::{TraitView, UseCases};
use tempfile::TempDir;

use crate::fixture;
use crate::listing::Listing;
use crate::setup::{Setup, nova};
use crate::world::{World, spawn_request};

const UPGRADE: &str = "25-driver-upgrade";

/// What an operator writes beside the imported configuration.
const TRAITS: &str = "[trait.CUSTOM_GRID_T4_2Q]\ntype = \"GRID T4-2Q\"\n\
                      [trait.CUSTOM_GRID_A100_1_5C]\ntype = \"GRID A100-1-5C\"\n\
                      [trait.CUSTOM_GRID_T4_2B]\ntype = \"GRID T4-2B\"\n";

/// The hardware of a case's directory, with the descriptions of its table.
fn hardware(nodes: &Path, types: &Path) -> Listing {
    let mut listing = Listing::of_files(nodes);
    let text = fs::read_to_string(types).unwrap();
    let rows = text.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
    let facts: BTreeMap<(String, String), TypeFacts> =
        rows.map(|row| ((row[0].to_owned(), row[1].to_owned()), TypeFacts::parse(row[3]))).collect();
    for parent in &mut listing.scan.parents {
        let addr = parent.addr.to_string();
        for offered in &mut parent.types {
            offered.facts = facts[&(addr.clone(), offered.id.to_string())].clone();
        }
    }
    listing
}

fn upgraded(which: &str) -> Listing {
    let case = fixture::case(UPGRADE);
    hardware(&case.join(format!("nodedev-{which}")), &case.join(format!("types-{which}.tsv")))
}

async fn simulated(nodes: Listing) -> Arc<SimHost> {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("none.xml");
    fs::write(&file, "<node></node>").unwrap();
    SimHost::new(Arc::new(nodes), FileHost::load(&file).unwrap(), SimOptions::default()).await.unwrap()
}

/// A directory with the configuration of the case and the traits.
fn files() -> TempDir {
    let dir = TempDir::new().unwrap();
    let traits = dir.path().join("traits.toml");
    fs::write(&traits, TRAITS).unwrap();
    let places = format!("[traits]\nfile = {traits:?}\nlock = {:?}\n", dir.path().join("traits.lock"));
    let config = nova(UPGRADE, "nova.conf") + &places;
    fs::write(dir.path().join("mdevirt.toml"), config).unwrap();
    dir
}

async fn traits(world: &World) -> BTreeMap<String, TraitView> {
    let all = world.service().traits().await.unwrap();
    all.into_iter().map(|one| (one.name.to_string(), one)).collect()
}

async fn totals(world: &World) -> Vec<String> {
    let records = world.service().inventory().await.unwrap();
    let line = |r: &mdevirt::model::InventoryRecord| {
        format!("{} {} {} {} reserved", r.parent, r.total, r.type_name, r.reserved)
    };
    records.iter().map(line).collect()
}

/// What is on disk when the host comes up with the new driver: definitions with the old ids.
fn definitions(before: &[Mdev]) -> Vec<Mdev> {
    before
        .iter()
        .map(|mdev| Mdev { active: false, defined: true, iommu_group: None, ..mdev.clone() })
        .collect()
}

/// 25
#[test]
fn a_driver_upgrade_moves_ids_and_names() {
    let life = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (dir, runtime) = (files(), life());
    let (remains, made, domains) = runtime.block_on(async {
        let world = World::on(
            TempDir::new().unwrap(),
            simulated(upgraded("before")).await,
            &dir.path().join("mdevirt.toml"),
        );
        for (vm, name) in [("vm-a", "GRID_T4_2Q"), ("vm-b", "GRID_A100_1_5C"), ("vm-c", "GRID_T4_2B")] {
            world.spawn(vm, &format!("resources:VGPU=1,trait:CUSTOM_{name}=required")).await;
            world.done(world.service().stop(vm, None).await).await;
        }
        let domains = world.sim.domains().await.unwrap();
        let made = world.scan().await.mdevs;
        (world.fall(), made, domains)
    });
    drop(runtime);
    life().block_on(async {
        let mut after = upgraded("after");
        after.scan.mdevs = definitions(&made);
        let sim = simulated(after.finish()).await;
        for domain in &domains {
            sim.define(&domain.xml).await.unwrap();
        }
        let world = remains.rise_on(sim);
        second_life(&world).await;
    });
}

async fn second_life(world: &World) {
    assert_eq!(
        totals(world).await,
        ["0000:3b:00.0 8 GRID T4-2Q 0 reserved", "0000:c1:00.4 1 NVIDIA A100-1-5C 0 reserved"]
    );
    let traits = traits(world).await;
    let (a, b, c) =
        (&traits["CUSTOM_GRID_T4_2Q"], &traits["CUSTOM_GRID_A100_1_5C"], &traits["CUSTOM_GRID_T4_2B"]);
    assert_eq!((a.state, b.state, c.state), (TraitState::Ok, TraitState::Ok, TraitState::Unavailable));
    assert!(a.local_types.iter().all(|local| local.id.as_str() == "nvidia-1231"));
    world.service().reload().await.unwrap();
    let told = |history: &[mdevirt::service::api::HistoryLine], parent: &str| {
        let here = history.iter().filter(|line| line.parent.to_string() == parent);
        here.map(|line| format!("{} {} {}", line.kind, line.was, line.now)).collect::<Vec<_>>()
    };
    let again = self::traits(world).await;
    assert_eq!(
        told(&again["CUSTOM_GRID_T4_2Q"].history, "0000:3b:00.0"),
        ["renumbered nvidia-231 nvidia-1231"]
    );
    assert_eq!(
        told(&again["CUSTOM_GRID_A100_1_5C"].history, "0000:c1:00.4"),
        ["renamed GRID A100-1-5C NVIDIA A100-1-5C"]
    );

    for (vm, id) in [("vm-a", "nvidia-1231"), ("vm-b", "nvidia-474")] {
        let held = |all: Vec<mdevirt::service::api::InstanceView>| {
            all.into_iter().find(|i| i.name == vm).unwrap().claims.remove(0)
        };
        let before = held(world.service().instances().await.unwrap());
        world.done(world.service().start(vm, None).await).await;
        let found = world.scan().await;
        let mdev = found.mdevs_with(before.uuid).next().unwrap();
        assert_eq!((mdev.active, mdev.type_id.as_ref().unwrap().as_str()), (true, id), "{vm}");
        assert_eq!(mdev.parent, before.parent, "{vm}");
        assert_eq!(held(world.service().instances().await.unwrap()).mdev_type.as_str(), id, "{vm}");
    }
    let job = world.service().start("vm-c", None).await.unwrap().job;
    let ended = world.ended(job).await;
    assert_eq!(ended.state, SagaState::Failed);
    let text = ended.result.unwrap().to_string();
    assert!(text.contains("GRID T4-2B") && text.contains("0000:86:00.0"), "{text}");

    let status = world.service().status().await.unwrap();
    let said =
        |words: &[&str]| status.findings.iter().any(|f| words.iter().all(|word| f.text.contains(word)));
    let told = ["nvidia-231 in the configuration means GRID T4-4Q", "GRID T4-2Q", "nvidia-1231"];
    assert!(said(&told), "{:?}", status.findings);
    assert!(said(&["nvidia-223", "0000:86:00.0", "GRID T4-2B"]), "{:?}", status.findings);
    let refused =
        world.service().spawn(spawn_request("vm-d", "resources:VGPU=1,trait:CUSTOM_GRID_T4_2B=required"));
    assert_eq!(refused.await.unwrap_err().kind, FaultKind::TraitUnmapped);
}

/// 25, 5
#[tokio::test]
async fn a_first_start_takes_the_configuration_as_it_reads() {
    let host = Setup::new(UPGRADE).on(upgraded("after")).nova("nova.conf").start().await;
    assert_eq!(host.totals().await, ["0000:3b:00.0 VGPU 4", "0000:c1:00.4 VGPU 1"]);
}

/// 26
#[tokio::test]
async fn one_id_means_two_types_on_two_hosts() {
    const CASE: &str = "26-same-id-two-hosts";
    let mut exports = Vec::new();
    for (host, config, totals) in [
        ("host-a", "nova.conf", &["0000:3b:00.0 VGPU 8"][..]),
        ("host-b", "nova.conf", &["0000:3b:00.0 VGPU 4", "0000:86:00.0 VGPU 8"]),
        ("host-b", "nova-only-106.conf", &["0000:3b:00.0 VGPU 4", "0000:86:00.0 VGPU 4"]),
    ] {
        let nodes = Listing::of_files(&fixture::case(CASE).join(host).join("nodedev"));
        let world = Setup::new(CASE).on(nodes).nova(&format!("{host}/{config}")).start().await;
        assert_eq!(world.totals().await, totals, "{host} {config}");
        let traits = world.dir.path().join("traits.toml");
        fs::write(
            &traits,
            "[trait.CUSTOM_TWO]\ntype = \"GRID V100-2Q\"\n[trait.CUSTOM_FOUR]\ntype = \"GRID V100-4Q\"\n",
        )
        .unwrap();
        let config = fs::read_to_string(world.dir.path().join("mdevirt.toml")).unwrap();
        world.write_config(&format!("{config}[traits]\nfile = {traits:?}\n"));
        world.service().reload().await.unwrap();
        let carriers = |name: &str, all: &[mdevirt::model::InventoryRecord]| {
            let with = all.iter().filter(|r| r.traits.iter().any(|t| t.as_str() == name));
            with.map(|r| r.parent.to_string()).collect::<Vec<_>>()
        };
        let all = world.service().inventory().await.unwrap();
        let two = carriers("CUSTOM_TWO", &all);
        match (host, config.contains("nvidia-105")) {
            ("host-a", _) => {
                assert_eq!(two, ["0000:3b:00.0"]);
                assert_eq!(carriers("CUSTOM_FOUR", &all), [""; 0]);
            }
            (_, true) => assert_eq!(two, ["0000:86:00.0"]),
            (_, false) => assert_eq!(two, [""; 0]),
        }
        exports.push(Export::parse(world.service().trait_export().await.unwrap().as_bytes(), host).unwrap());
    }
    assert_eq!(exports[0].digest(), exports[1].digest(), "the ids of the hosts do not enter");
    assert!(verify(&exports).agree, "{:?}", verify(&exports));
    // An operator who goes by the id binds the trait to another type on the other host.
    let mut other = exports[1].clone();
    let four = other.traits[&"CUSTOM_FOUR".parse().unwrap()].clone();
    other.traits.insert("CUSTOM_TWO".parse().unwrap(), four);
    let verdict = verify(&[exports[0].clone(), other]);
    let names = |identity: &Option<TypeIdentity>| identity.as_ref().map(|i| i.label().to_owned());
    let told: Vec<_> =
        verdict.differences.iter().map(|d| (names(&d.expected_identity), names(&d.identity))).collect();
    assert!(told.contains(&(Some("GRID V100-2Q".into()), Some("GRID V100-4Q".into()))), "{told:?}");
    let text = serde_json::to_string(&exports[1]).unwrap();
    assert!(!text.contains("nvidia-10"), "no local id leaves the host: {text}");
}

/// 26, both runs
#[test]
fn a_move_is_checked_by_what_types_are_not_by_ids() {
    const CASE: &str = "26-same-id-two-hosts";
    let listed = |host: &str| Listing::of_files(&fixture::case(CASE).join(host).join("nodedev")).scan;
    let (source, target) = (listed("host-a"), listed("host-b"));
    let device = source.mdevs.iter().find(|mdev| mdev.uuid.to_string().starts_with("3e4b0790")).unwrap();
    let parent = source.parent(&device.parent).unwrap();
    let mdev_type = parent.mdev_type(device.type_id.as_ref().unwrap()).unwrap();
    let moving = Moving { uuid: device.uuid, identity: TypeIdentity::of(parent, mdev_type) };
    let check = |file: &str| {
        let config = parse(&nova(CASE, file), file).unwrap().config;
        let mapping = assign(&config, &target, &Memory::default());
        let parents = capacity(&mapping, &target, Booked::default());
        landings(std::slice::from_ref(&moving), &parents, &Resolution::new())
    };
    let landing = check("host-b/nova.conf").unwrap().remove(0);
    assert_eq!(
        (landing.source, landing.parent.to_string().as_str(), landing.type_id.as_str()),
        (device.uuid, "0000:86:00.0", "nvidia-105")
    );
    let refused = check("host-b/nova-only-106.conf").unwrap_err();
    assert!(refused.to_string().contains("GRID V100-2Q"), "{refused}");
    assert!(refused.reasons.iter().all(|r| r.reason.contains("GRID V100-4Q")), "{:?}", refused.reasons);
    assert_eq!(refused.reasons.len(), target.parents.len());
}
