//! Configurations that misled people, on their hosts.
//!
//! | case | what is right | test |
//! |---|---|---|
//! | 05 | the table, 1 | `pci_domains_are_parts_of_an_address` |
//! | 05 | 2 | later: vendor-vfio; the writing of PCI host devices is tested in `tests/xml` |
//! | 05 | 3 | `tests/config_cases` |
//! | 10 | the table | `config_addresses`; its error texts in `tests/config_cases` |
//! | 10 | a card that comes later | `a_configured_card_that_comes_is_taken_up` |
//! | 10 | reload, first start, all findings together | `a_bad_configuration_changes_nothing` |
//! | 11 | the table | `default_type_and_class`; its error in `tests/config_cases` |
//! | 11 | a class that no type has | `default_type_and_class` |

use mdevirt::model::FaultKind;
use mdevirt::service::SettingsCell;
use mdevirt::service::api::UseCases;

use crate::setup::{Case, Setup, nova};
use mdevirt::host::sim::Change;

async fn run(case: &'static str, file: &str) -> Case {
    Setup::new(case).nova(file).start().await
}

/// 05
#[tokio::test]
async fn pci_domains_are_parts_of_an_address() {
    let host = run("05-pci-domain-spellings", "nova.conf").await;
    assert_eq!(host.totals().await, ["0001:c8:00.0 VGPU 4", "0001:d6:00.0 VGPU 8"]);
    assert_eq!(host.record("0001:c8:00.0").await.mdev_type.as_str(), "nvidia-232");
    assert_eq!(host.record("0001:d6:00.0").await.provider, "h1_pci_0001_d6_00_0");
    assert_eq!(host.findings().await, [""; 0]);
    assert_eq!(host.claimed("resources:VGPU=1").await.claims[0].parent.to_string(), "0001:c8:00.0");
}

const T4S: &str = "10-config-addresses";

/// 10
#[tokio::test]
async fn config_addresses() {
    for (file, totals, words) in [
        (
            "nova-absent.conf",
            &["0000:3b:00.0 VGPU 8"][..],
            &["0000:af:00.0", "configured", "not present"][..],
        ),
        ("nova-repeat.conf", &["0000:3b:00.0 VGPU 8"], &[]),
        ("nova-group-not-enabled.conf", &["0000:3b:00.0 VGPU 8"], &["nvidia-232"]),
        (
            "nova-type-not-offered.conf",
            &[],
            &["nvidia-474", "0000:3b:00.0", "nvidia-231 (GRID T4-2Q)", "nvidia-232 (GRID T4-4Q)"],
        ),
    ] {
        let host = run(T4S, file).await;
        assert_eq!(host.totals().await, totals, "{file}");
        let findings = host.findings().await;
        let said = findings.iter().any(|text| words.iter().all(|word| text.contains(word)));
        assert!(said || words.is_empty(), "{file}: {findings:?}");
    }
}

/// 10
#[tokio::test]
async fn a_configured_card_that_comes_is_taken_up() {
    let mut listing = crate::listing::Listing::of_files(&crate::listing::nodedev_dir(T4S));
    listing.scan.parents[1].addr = "0000:af:00.0".parse().unwrap();
    let host = Setup::new(T4S).on(listing).nova("nova-absent.conf").start().await;
    let card = || "0000:af:00.0".parse().unwrap();
    host.sim.change(Change::ParentGone(card())).await.unwrap();
    assert_eq!(host.totals().await, ["0000:3b:00.0 VGPU 8"]);
    assert!(host.finds("0000:af:00.0", &["not present"]).await);
    host.sim.change(Change::ParentBack(card())).await.unwrap();
    assert_eq!(host.totals().await, ["0000:3b:00.0 VGPU 8", "0000:af:00.0 VGPU 8"]);
    assert_eq!(host.findings().await, [""; 0]);
}

/// Both mistakes of case 10 in one file: one address for two types, and one that is none.
const BAD: &str = r#"
[devices]
enabled_mdev_types = ["nvidia-231", "nvidia-232"]
[mdev."nvidia-231"]
device_addresses = ["0000:3b:00.0", "0000:86:00.0", "0000:86:00"]
[mdev."nvidia-232"]
device_addresses = ["0000:86:00.0"]
"#;

/// 10
#[tokio::test]
async fn a_bad_configuration_changes_nothing() {
    let host = run(T4S, "nova-absent.conf").await;
    host.write_config(BAD);
    let fault = host.service().reload().await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::InvalidMdevConfig);
    let said = format!("{} {}", fault.message, fault.details);
    for word in ["0000:86:00.0", "nvidia-231", "nvidia-232", "\"0000:86:00\\\""] {
        assert!(said.contains(word.trim_matches('"')), "{word}: {said}");
    }
    assert_eq!(fault.details.as_array().map(Vec::len), Some(2), "{said}");
    assert_eq!(host.totals().await, ["0000:3b:00.0 VGPU 8"]);
    host.claimed("resources:VGPU=1").await;

    let first_start = SettingsCell::load(host.dir.path().join("mdevirt.toml")).unwrap_err();
    assert_eq!(first_start.errors.len(), 2);

    host.write_config(&nova(T4S, "nova-repeat.conf"));
    assert_eq!(host.service().reload().await.unwrap(), []);
    assert_eq!(host.findings().await, [""; 0]);
}

const DEFAULTS: &str = "11-config-default-type-and-class";

/// 11
#[tokio::test]
async fn default_type_and_class() {
    let host = run(DEFAULTS, "nova-class.conf").await;
    assert_eq!(host.totals().await, ["0000:3b:00.0 CUSTOM_T4_2Q 8", "0000:86:00.0 CUSTOM_T4_2Q 8"]);
    let (kind, text) = host.refused("resources:VGPU=1").await;
    assert_eq!(kind, FaultKind::TypeUnavailable);
    assert!(text.contains("VGPU"), "{text}");
    let held = host.claimed("resources:CUSTOM_T4_2Q=1").await;
    assert_eq!(held.claims.len(), 1);
    let made = host.scan().await.mdevs;
    assert_eq!(made.len(), 1);
    assert_eq!(made[0].parent.to_string(), "0000:3b:00.0");
    assert_eq!(made[0].type_id.as_ref().unwrap().as_str(), "nvidia-231");

    let host = run(DEFAULTS, "nova-two-defaults.conf").await;
    assert_eq!(host.totals().await, ["0000:3b:00.0 VGPU 4", "0000:86:00.0 VGPU 4"]);
    let findings = host.findings().await;
    assert!(findings.iter().any(|f| f.contains("nvidia-231 will not be used")), "{findings:?}");

    let host = run(DEFAULTS, "nova-default-and-explicit.conf").await;
    assert_eq!(host.totals().await, ["0000:3b:00.0 VGPU 8", "0000:86:00.0 CUSTOM_T4_4Q 4"]);
    assert_eq!(host.findings().await, [""; 0]);

    let host = run(DEFAULTS, "nova-old-names.conf").await;
    assert_eq!(host.totals().await, ["0000:3b:00.0 VGPU 8"]);
}
