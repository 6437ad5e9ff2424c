//! Cases of configurations that misled people: nova.conf is imported, read again as ours, and laid on the case's host.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the whole crate is tests; clippy.toml allows it only inside of #[test]"
)]

mod host;
mod import;

use std::fs;
use std::path::Path;

use mdevirt::catalog::memory::Memory;
use mdevirt::config::{self, Loaded};
use mdevirt::model::{Fault, FaultKind, HostScan, PciAddress, TypeId};
use mdevirt::plan::mapping::assign;

/// What an operator sees of a run.
struct Run {
    /// `ADDR ID CLASS` of each parent that has a type.
    assigned: Vec<String>,
    /// Everything that would be in `status`.
    warnings: Vec<String>,
    /// What the import said, traps first.
    notes: Vec<String>,
}

impl Run {
    fn warned(&self, words: &[&str]) -> bool {
        self.warnings.iter().any(|text| words.iter().all(|word| text.contains(word)))
    }

    fn noted(&self, words: &[&str]) -> bool {
        self.notes.iter().any(|text| words.iter().all(|word| text.contains(word)))
    }
}

fn nova(case: &str, file: &str) -> Result<config::Imported, String> {
    let text = fs::read_to_string(host::case(case).join(file)).unwrap();
    config::import(&text, file).map_err(|errors| {
        let fault = Fault::from(errors.clone());
        assert_eq!(fault.kind, FaultKind::InvalidMdevConfig);
        assert_eq!(fault.details.as_array().map(Vec::len), Some(errors.errors.len()));
        fault.message
    })
}

fn run(case: &str, file: &str, scan: &HostScan) -> Run {
    let config::Imported { toml, traps, notes, .. } = nova(case, file).unwrap();
    let Loaded { config, warnings, .. } = config::parse(&toml, "mdevirt.toml").unwrap();
    let again = config::parse(&config::to_toml(&config), "shown").unwrap().config;
    assert_eq!(again, config);
    let mapping = assign(&config, scan, &Memory::default());
    let assigned = mapping.assigned.iter();
    Run {
        assigned: assigned
            .map(|(addr, one)| format!("{addr} {} {}", one.mdev_type.id, one.rule.class))
            .collect(),
        warnings: warnings.iter().chain(&mapping.findings).map(|finding| finding.text.clone()).collect(),
        notes: traps.into_iter().chain(notes).collect(),
    }
}

/// 05: both spellings match their card; no warning about an absent device; a card in another domain is another card.
#[test]
fn pci_domain_spellings() {
    let case = "05-pci-domain-spellings";
    let run = run(case, "nova.conf", &host::from_nodedev(case));
    assert_eq!(run.assigned, ["0001:c8:00.0 nvidia-232 VGPU", "0001:d6:00.0 nvidia-231 VGPU"]);
    assert_eq!(run.warnings, [""; 0]);
    assert!(run.noted(&["line 5", "0001:D6:00.0", "0001:d6:00.0", "never found"]), "{:?}", run.notes);

    let table = fs::read_to_string(host::case(case).join("addresses.tsv")).unwrap();
    let rows: Vec<(&str, &str)> = table.lines().skip(1).map(|l| l.split_once('\t').unwrap()).collect();
    assert_eq!(rows.len(), 11);
    for (text, result) in rows {
        match text.parse::<PciAddress>() {
            Ok(addr) => assert!(result.contains(&addr.to_string()), "{text}"),
            Err(_) => assert!(result.starts_with("error"), "{text}"),
        }
    }
}

/// 06: the enabled id also fits the same type behind another driver's prefix, and the id used there is that parent's own.
#[test]
fn type_prefix_by_driver() {
    let case = "06-type-prefix-by-driver";
    let run = run(case, "nova.conf", &host::from_nodedev(case));
    assert_eq!(run.assigned, ["0000:e8:00.4 nvidia-575 VGPU", "0000:e8:04.0 vfio-pci-575 VGPU"]);
    assert_eq!(run.warnings, [""; 0]);

    let table = fs::read_to_string(host::case(case).join("type-ids.tsv")).unwrap();
    for row in table.lines().skip(1) {
        let [id, prefix, number] = row.split('\t').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let want = number.parse().ok().map(|number| (prefix, number));
        assert_eq!(id.parse::<TypeId>().unwrap().split(), want, "{row}");
    }
}

/// 07: each VF gets its type, and one warning names the card and both sizes.
#[test]
fn two_sizes_on_one_card() {
    let case = "07-sriov-homogeneous-collapse";
    let scan = host::from_sysfs(case, "sysfs-before.txt");
    let mixed = run(case, "nova-mixed.conf", &scan);
    assert_eq!(
        mixed.assigned,
        [
            "0000:e8:00.4 nvidia-560 VGPU",
            "0000:e8:00.5 nvidia-558 VGPU",
            "0000:e8:00.6 nvidia-558 VGPU",
            "0000:e8:00.7 nvidia-560 VGPU",
        ]
    );
    assert_eq!(mixed.warnings.len(), 1, "{:?}", mixed.warnings);
    assert!(mixed.warned(&["0000:e8:00.0", "2 GiB", "4 GiB"]), "{:?}", mixed.warnings);
    let one = run(case, "nova-24q.conf", &scan);
    assert_eq!(one.assigned.len(), 4);
    assert_eq!(one.warnings, [""; 0]);
}

/// 08: a cap of 0 is an error that names the option; other caps are carried over.
#[test]
fn cap_below_parent_room() {
    let case = "08-cap-below-parent-room";
    let error = nova(case, "nova-0.conf").unwrap_err();
    assert!(error.starts_with("nova-0.conf:5: mdev_nvidia-230.max_instances: "), "{error}");
    assert!(error.contains("1 to"), "{error}");
    let scan = host::from_nodedev(case);
    assert_eq!(run(case, "nova-4.conf", &scan).assigned, ["0000:3b:00.0 nvidia-230 VGPU"]);
    assert_eq!(run(case, "nova-20.conf", &scan).assigned.len(), 2);
    assert!(nova(case, "nova-20.conf").unwrap().toml.contains("max_instances = 20"));
}

/// 10: addresses that repeat, are wrong, or are not there.
#[test]
fn config_addresses() {
    let case = "10-config-addresses";
    let scan = host::from_nodedev(case);
    let only_first = ["0000:3b:00.0 nvidia-231 VGPU"];

    let duplicate = nova(case, "nova-duplicate.conf").unwrap_err();
    for word in ["0000:86:00.0", "mdev_nvidia-231", "mdev_nvidia-232"] {
        assert!(duplicate.contains(word), "{duplicate}");
    }
    let malformed = nova(case, "nova-malformed.conf").unwrap_err();
    assert!(malformed.starts_with("nova-malformed.conf:5: mdev_nvidia-231.device_addresses: \"0000:86:00\""));

    let absent = run(case, "nova-absent.conf", &scan);
    assert_eq!(absent.assigned, only_first);
    assert!(absent.warned(&["0000:af:00.0", "configured", "not present"]), "{:?}", absent.warnings);
    assert_eq!(run(case, "nova-repeat.conf", &scan).assigned, only_first);
    let spare = run(case, "nova-group-not-enabled.conf", &scan);
    assert_eq!(spare.assigned, only_first);
    assert!(spare.warned(&["nvidia-232", "not enabled"]), "{:?}", spare.warnings);
    assert!(spare.noted(&["mdev_nvidia-232", "not enabled"]), "{:?}", spare.notes);
    let missing = run(case, "nova-type-not-offered.conf", &scan);
    assert_eq!(missing.assigned, [""; 0]);
    assert!(missing.warned(&[
        "nvidia-474",
        "0000:3b:00.0",
        "nvidia-231 (GRID T4-2Q)",
        "nvidia-232 (GRID T4-4Q)"
    ]));

    // The absent card comes: it is taken up, and the warning goes.
    let mut later = scan.clone();
    later.parents[1].addr = "0000:af:00.0".parse().unwrap();
    let absent = run(case, "nova-absent.conf", &later);
    assert_eq!(absent.assigned.len(), 2);
    assert_eq!(absent.warnings, [""; 0]);
}

/// 11: the default type and its class; old option names.
#[test]
fn default_type_and_class() {
    let case = "11-config-default-type-and-class";
    let scan = host::from_nodedev(case);
    let class = run(case, "nova-class.conf", &scan);
    assert_eq!(
        class.assigned,
        ["0000:3b:00.0 nvidia-231 CUSTOM_T4_2Q", "0000:86:00.0 nvidia-231 CUSTOM_T4_2Q"]
    );
    assert!(class.noted(&["mdev_nvidia-231", "ignored", "CUSTOM_T4_2Q"]), "{:?}", class.notes);

    let two = run(case, "nova-two-defaults.conf", &scan);
    assert_eq!(two.assigned, ["0000:3b:00.0 nvidia-232 VGPU", "0000:86:00.0 nvidia-232 VGPU"]);
    assert!(two.warned(&["nvidia-231 will not be used", "nvidia-232"]), "{:?}", two.warnings);

    let both = run(case, "nova-default-and-explicit.conf", &scan);
    assert_eq!(both.assigned, ["0000:3b:00.0 nvidia-231 VGPU", "0000:86:00.0 nvidia-232 CUSTOM_T4_4Q"]);
    assert_eq!(both.warnings, [""; 0]);

    let bad = nova(case, "nova-bad-class.conf").unwrap_err();
    assert!(bad.contains("T4_2q") && bad.contains("VGPU or CUSTOM_[A-Z0-9_]+"), "{bad}");

    let old = run(case, "nova-old-names.conf", &scan);
    assert_eq!(old.assigned, ["0000:3b:00.0 nvidia-231 VGPU"]);
    assert!(old.noted(&["enabled_vgpu_types", "enabled_mdev_types"]), "{:?}", old.notes);
    assert!(old.noted(&["[vgpu_nvidia-231]", "[mdev_nvidia-231]"]), "{:?}", old.notes);
}

/// 12: an empty list enables nothing and is no error.
#[test]
fn an_empty_list_enables_nothing() {
    let case = "12-foreign-mdevs";
    let scan = host::from_nodedev(case);
    assert_eq!(run(case, "nova.conf", &scan).assigned, ["0000:3b:00.0 nvidia-231 VGPU"]);
    let empty = run(case, "nova-empty.conf", &scan);
    assert_eq!(empty.assigned, [""; 0]);
    assert_eq!(empty.warnings, [""; 0]);
    assert!(empty.noted(&["enables no mdev type"]), "{:?}", empty.notes);
}

/// 30: ids of both frameworks on one host; a VF on the wrong driver is named, the physical function is no provider.
#[test]
fn mixed_host() {
    let case = "30-mixed-host";
    let run = run(case, "nova.conf", &host::from_sysfs(case, "sysfs.txt"));
    assert_eq!(
        run.assigned,
        ["0000:26:00.4 1150 VGPU", "0000:26:00.5 1150 VGPU", "0000:3b:00.0 nvidia-231 VGPU"]
    );
    assert_eq!(run.warnings.len(), 1, "{:?}", run.warnings);
    assert!(run.warned(&["0000:26:00.6", "1150", "configured", "vfio-pci"]), "{:?}", run.warnings);
}

/// 32: type ids that are paths are refused, both named, and nothing of the file is taken over.
#[test]
fn path_like_type_ids() {
    let errors = nova("32-hostile-names", "nova.conf").unwrap_err();
    assert!(errors.contains("\"../../x\""), "{errors}");
    assert!(errors.contains("\"nvidia-231/../nvidia-234\""), "{errors}");
    let ours = "[devices]\nenabled_mdev_types = [\"nvidia-231\"]\n[mdev.\"../../x\"]\n[mdev.\"nvidia-231/../nvidia-234\"]\n";
    let errors = config::parse(ours, "mdevirt.toml").unwrap_err();
    assert_eq!(errors.errors.iter().filter_map(|e| e.line).collect::<Vec<_>>(), [3, 4]);
}

/// The example that is shipped is valid and says what an empty file says.
#[test]
fn the_shipped_example_is_valid() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/mdevirt.toml");
    let Loaded { config, warnings, files } = config::load(&file).unwrap();
    assert_eq!((config, warnings, files), (config::Config::default(), Vec::new(), vec![file.clone()]));
    // With the comment signs of its keys taken away it is an example of every key.
    let text = fs::read_to_string(&file).unwrap().replace("\nenabled_mdev_types = []\n", "\n");
    let lines =
        text.lines().map(|line| line.strip_prefix('#').filter(|l| !l.starts_with(' ')).unwrap_or(line));
    let full = config::parse(&lines.collect::<Vec<_>>().join("\n"), "example").unwrap().config;
    let [by_id, by_name] = &full.enabled[..] else { panic!("{:?}", full.enabled) };
    assert_eq!((by_id.addresses.len(), by_id.max_instances, by_id.reserved), (2, Some(8), 1));
    assert_eq!((by_id.traits.len(), by_id.several_per_vm), (1, Some(false)));
    assert_eq!(by_name.key, "GRID M60-2Q");
}
