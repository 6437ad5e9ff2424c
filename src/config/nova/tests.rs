//! nova's dialect, names old and new, and what is said about them.

use proptest::prelude::*;

use super::*;
use crate::config::parse;

#[test]
fn the_dialect_is_read_and_written_as_ours() {
    let text = "[DEFAULT]\nhost = n1\n# [mdev_x]\n[libvirt]\nconnection_uri = qemu+tcp://h/system\nvirt_type = kvm\n\
                [DEVICES]\nenabled_mdev_types = nvidia-35,\n  i915-GVTg_V5_4,\n\n\
                [mdev_I915-gvtg_v5_4]\ndevice_addresses: 0000:CA:01.2,\n\tmtty_mtty\nmax_instances = '2'\nmax_instances = 3\n\
                [mdev_nvidia-99]\nmdev_class = CUSTOM_X\n[devices]\npci_thing = 1\n";
    let Imported { toml, traps, notes, .. } = import(text, "nova.conf").unwrap();
    assert_eq!(
        toml,
        "# Written by mdevirtctl config import-nova, from nova.conf.\n\
         [libvirt]\nuri = \"qemu+tcp://h/system\"\n\n\
         [devices]\nenabled_mdev_types = [\"nvidia-35\", \"i915-GVTg_V5_4\"]\nunlisted = \"default\"\n\n\
         [mdev.\"nvidia-35\"]\nmdev_class = \"VGPU\"\n\n\
         [mdev.\"i915-GVTg_V5_4\"]\nmdev_class = \"VGPU\"\ndevice_addresses = [\"0000:ca:01.2\", \"mtty_mtty\"]\n\
         max_instances = 3\n\n\
         [mdev.\"nvidia-99\"]\nmdev_class = \"CUSTOM_X\"\n"
    );
    assert_eq!(
        traps,
        [
            "line 12: 0000:CA:01.2 is written as 0000:ca:01.2; nova compares text and never found 0000:CA:01.2 on a host",
            "line 14: [mdev_I915-gvtg_v5_4] max_instances is given again below, and that one counts",
            "line 15: [mdev_I915-gvtg_v5_4] max_instances = 3: nova gives nothing of a parent whose free slices would go over it, mdevirt gives what is left up to it",
            "line 17: [mdev_nvidia-99] mdev_class of a type without device_addresses: nova ignored it and published VGPU, mdevirt publishes CUSTOM_X",
            "mdev_nvidia-99 (nova.conf:16) has no effect: nvidia-99 is not enabled; add it to enabled_mdev_types or drop the table",
        ]
    );
    assert_eq!(notes, ["line 19: [devices] pci_thing was not carried over: mdevirt has no such option"]);
    assert_eq!(parse(&toml, "m.toml").unwrap().config.enabled.len(), 2);
}

#[test]
fn the_new_name_wins_over_the_old() {
    let text = "[devices]\nenabled_vgpu_types = a1\nenabled_mdev_types = b1\n\
                [vgpu_b1]\ndevice_addresses = 0000:01:00.0\nmdev_class = CUSTOM_OLD\nmax_instances = 4\ncolour = 1\n\
                [mdev_b1]\ndevice_addresses = 0000:02:00.0\n";
    let Imported { toml, traps, notes, .. } = import(text, "nova.conf").unwrap();
    let config = parse(&toml, "m.toml").unwrap().config;
    let [b1] = &config.enabled[..] else { panic!("{toml}") };
    assert_eq!(b1.addresses, ["0000:02:00.0".parse().unwrap()]);
    assert_eq!((b1.class.as_str(), b1.max_instances), ("CUSTOM_OLD", Some(4)));
    assert_eq!(
        traps,
        [
            "line 2: [devices] enabled_vgpu_types has no effect beside [devices] enabled_mdev_types",
            "line 5: [vgpu_b1] device_addresses has no effect beside [mdev_b1] device_addresses",
            "line 6: nova does not read [vgpu_b1] mdev_class in a group of the old name; mdevirt does",
            "line 7: nova does not read [vgpu_b1] max_instances in a group of the old name; mdevirt does",
        ]
    );
    assert_eq!(
        notes,
        [
            "line 2: enabled_vgpu_types is the old name of enabled_mdev_types",
            "line 4: [vgpu_b1] is the old name of [mdev_b1]",
            "line 8: [vgpu_b1] colour was not carried over: mdevirt has no such option",
        ]
    );
}

/// What an operator has who takes the # away: comments are `# text`, proposals are `#key`.
fn filled_in(draft: &str) -> String {
    let lines =
        draft.lines().map(|line| line.strip_prefix('#').filter(|l| !l.starts_with(' ')).unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn names_become_traits_and_ids_are_left_to_the_operator() {
    let text = "[devices]\nenabled_mdev_types = NVIDIA A100-1-5C, nvidia-35, NVIDIA A100 1.5C, i915-GVTg_V5_4, \"q\" x\n";
    let draft = import(text, "nova.conf").unwrap().traits;
    let read = |text: &str| -> Vec<(String, String)> {
        let table: toml::Table = text.parse().unwrap();
        let traits = table.get("trait").and_then(toml::Value::as_table).unwrap();
        let all = traits.iter().map(|(name, t)| (name.clone(), t["type"].as_str().unwrap().to_owned()));
        all.collect()
    };
    let pair = |name: &str, key: &str| (name.to_owned(), key.to_owned());
    let bound = [pair("CUSTOM_NVIDIA_A100_1_5C", "NVIDIA A100-1-5C"), pair("CUSTOM_Q_X", "\"q\" x")];
    assert_eq!(read(&draft), bound);
    assert_eq!(
        read(&filled_in(&draft)),
        [
            pair("CUSTOM_FILL_IN_2", "vendor's name of nvidia-35"),
            pair("CUSTOM_FILL_IN_3", "NVIDIA A100 1.5C"),
            pair("CUSTOM_FILL_IN_4", "vendor's name of i915-GVTg_V5_4"),
            bound[0].clone(),
            bound[1].clone(),
        ]
    );
    assert!(draft.contains("CUSTOM_NVIDIA_A100_1_5C is taken above"), "{draft}");
    assert!(draft.contains("# On this host its id is nvidia-35."), "{draft}");
}

#[test]
fn all_errors_come_together_in_novas_names() {
    let text = "[devices]\nenabled_mdev_types = a1, a\u{7f}1, $types\n[libvirt]\nconnection_uri = here\n[mdev_a1]\nnonsense\n\
                mdev_class = vgpu\nmax_instances = many\n[mdev_../b]\n";
    let errors = import(text, "nova.conf").unwrap_err();
    let starts: Vec<String> =
        errors.errors.iter().map(|e| format!("{:?} {}", e.line.unwrap(), e.key)).collect();
    assert_eq!(
        starts,
        [
            "2 devices.enabled_mdev_types",
            "4 libvirt.connection_uri",
            "6 ",
            "7 mdev_a1.mdev_class",
            "8 mdev_a1.max_instances",
            "9 mdev_../b",
        ]
    );
}

proptest! {
    #[test]
    fn no_text_panics_and_what_is_written_is_read(
        lines in prop::collection::vec(
            prop_oneof![
                "\\PC{0,20}",
                prop::sample::select(&[
                    "[devices]", "[mdev_a1]", "[vgpu_a1]", "[MDEV_A\"1]", "enabled_mdev_types = a1, A\"1, b\\c", " x1,",
                    "enabled_vgpu_types = a1", "device_addresses = 0000:CA:00.0", "mdev_class = CUSTOM_A", "",
                ][..]).prop_map(str::to_owned),
            ], 0..12)
    ) {
        if let Ok(Imported { toml, traits, .. }) = import(&lines.join("\n"), "nova.conf") {
            prop_assert!(parse(&toml, "m.toml").is_ok(), "{}", toml);
            prop_assert!(traits.parse::<toml::Table>().is_ok(), "{}", traits);
            prop_assert!(filled_in(&traits).parse::<toml::Table>().is_ok(), "{}", traits);
        }
    }
}
