//! One text as a whole configuration.

use std::path::PathBuf;

use crate::text::{ConfigErrors, Problems};

use super::Loaded;
use super::check::{Checked, check};
use super::document;

/// Reads and checks one TOML text; `origin` is its file name in messages.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(text: &str, origin: &str) -> Result<Loaded, ConfigErrors> {
    let mut problems = Problems::default();
    let layer = document::read(text, origin, &mut problems);
    let Checked { config, warnings, .. } = check(layer, origin, &mut problems);
    problems.or(Loaded { config, warnings, files: vec![PathBuf::from(origin)] })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{MAX_ENTRIES, MAX_FILE_BYTES, OnRelease, Packing, Unlisted};
    use super::*;

    fn errors(text: &str) -> Vec<String> {
        let errors = parse(text, "m.toml").unwrap_err();
        errors.errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_key_is_read() {
        let text = r#"
            [libvirt]
            uri = "test:///node.xml"
            [devices]
            enabled_mdev_types = ["nvidia-35", " GRID M60-2Q "]
            unlisted = "ignore"
            [mdev."GRID M60-2Q"]
            device_addresses = ["pci_0000_84_00_0", "00000001:C8:00.0", "mtty_mtty"]
            mdev_class = "CUSTOM_M60_2Q"
            max_instances = 8
            reserved = 1
            traits = ["CUSTOM_GOLD", "HW_GPU_API_VULKAN"]
            several_per_vm = true
            [traits]
            file = "/a"
            lock = "/b"
            [policy]
            packing = "depth"
            on_release = "keep"
            restore_deadline_sec = 20
            live_deadline_sec = 30
        "#;
        let Loaded { config, warnings, files } = parse(text, "m.toml").unwrap();
        assert_eq!(files, [PathBuf::from("m.toml")]);
        assert_eq!((config.libvirt_uri.as_str(), config.unlisted), ("test:///node.xml", Unlisted::Ignore));
        assert_eq!((config.packing, config.on_release), (Packing::Depth, OnRelease::Keep));
        assert_eq!((config.restore_deadline_sec, config.live_deadline_sec), (20, 30));
        assert_eq!((config.traits_file, config.traits_lock), ("/a".into(), "/b".into()));
        let [plain, m60] = &config.enabled[..] else { panic!("{:?}", config.enabled) };
        assert_eq!((plain.key.as_str(), plain.class.as_str(), plain.reserved), ("nvidia-35", "VGPU", 0));
        assert_eq!(m60.key, "GRID M60-2Q");
        let addresses: Vec<String> = m60.addresses.iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["0000:84:00.0", "0001:c8:00.0", "mtty_mtty"]);
        assert_eq!((m60.max_instances, m60.reserved, m60.several_per_vm), (Some(8), 1, Some(true)));
        assert_eq!(m60.traits.len(), 2);
        let [ignored] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(ignored.text.starts_with("nvidia-35 will not be used"), "{ignored:?}");
    }

    #[test]
    fn one_attempt_names_everything_with_its_place() {
        let text = "[devices]\nenabled_mdev_types = [\"nvidia-1\",\n \"../x\", 7]\nunlisted = \"frist\"\ncolour = 1\n\
                    [mdev.\"nvidia-1\"]\ndevice_adresses = []\nmax_instances = 0\nreserved = -1\n\
                    mdev_class = \"T4_2q\"\ntraits = [\"custom_x\"]\nseveral_per_vm = \"yes\"\n\
                    [mdev.b]\ndevice_addresses = \"0000:86:00.0\"\n[policy]\npacking = \"deep\"\n[vgpu]\n\
                    [traits]\nfile = \"x\"\n[libvirt]\nuri = \"here\"\n";
        let want = [
            "m.toml:3: devices.enabled_mdev_types: \"../x\" is not a valid mdev type: it looks like a path",
            "m.toml:3: devices.enabled_mdev_types: expected a string, found integer",
            "m.toml:4: devices.unlisted: unknown word \"frist\"; did you mean first?",
            "m.toml:5: devices: unknown key \"colour\"; expected enabled_mdev_types, unlisted",
            "m.toml:7: mdev.\"nvidia-1\": unknown key \"device_adresses\"; did you mean device_addresses?",
            "m.toml:8: mdev.\"nvidia-1\".max_instances: expected a number from 1 to 4294967295, found 0",
            "m.toml:9: mdev.\"nvidia-1\".reserved: expected a number from 0 to 4294967295, found -1",
            "m.toml:10: mdev.\"nvidia-1\".mdev_class: \"T4_2q\" is not a valid resource class: expected VGPU or CUSTOM_[A-Z0-9_]+",
            "m.toml:11: mdev.\"nvidia-1\".traits: \"custom_x\" is not a valid trait: expected CUSTOM_[A-Z0-9_]+ or a standard trait",
            "m.toml:12: mdev.\"nvidia-1\".several_per_vm: expected true or false, found string",
            "m.toml:14: mdev.\"b\".device_addresses: expected a list of strings, found string",
            "m.toml:16: policy.packing: unknown word \"deep\"; expected breadth, depth",
            "m.toml:17: unknown key \"vgpu\"; expected libvirt, devices, mdev, traits, policy, hook",
            "m.toml:19: traits.file: \"x\" is not a valid path: expected an absolute path",
            "m.toml:21: libvirt.uri: \"here\" is not a valid libvirt URI: expected a form like qemu:///system",
        ];
        assert_eq!(errors(text), want);
    }

    #[test]
    fn an_address_has_one_type() {
        let text = |second: &str| {
            format!(
                "[devices]\nenabled_mdev_types = [\"a1\", \"b1\"]\n[mdev.a1]\ndevice_addresses = [\"0000:CA:00.0\"]\n\
                 [mdev.b1]\ndevice_addresses = [\n \"{second}\"]\n"
            )
        };
        for second in ["0000:ca:00.0", "00000000:CA:00.0", "pci_0000_ca_00_0"] {
            let [error] = &errors(&text(second))[..] else { panic!("{second}") };
            assert_eq!(
                error,
                "m.toml:7: mdev.\"b1\".device_addresses: 0000:ca:00.0 has two types, from mdev.\"a1\" (m.toml:4) and \
                 mdev.\"b1\" (m.toml:7); list it in one of them"
            );
        }
        assert!(parse(&text("0001:ca:00.0"), "m.toml").is_ok());
    }

    #[test]
    fn syntax_errors_do_not_hide_the_rest() {
        let text = "[devices]\nunlisted = first\n[mdev.\"nvidia-1\"]\nmax_instances = 0\nmax_instances = 1\nreserved = 1 1\n\
                    device_addresses = [\"0000:86:00\"]\n";
        let found = errors(text);
        let starts = [
            "m.toml:2: not TOML: ",
            "m.toml:4: mdev.\"nvidia-1\".max_instances: expected a number",
            "m.toml:5: not TOML: duplicate key",
            "m.toml:6: not TOML: ",
            "m.toml:7: mdev.\"nvidia-1\".device_addresses: \"0000:86:00\" is not a valid PCI address",
        ];
        assert_eq!(found.len(), starts.len(), "{found:#?}");
        for (error, start) in found.iter().zip(starts) {
            assert!(error.starts_with(start), "{error}");
        }
    }

    #[test]
    fn parts_without_effect_are_warned_of() {
        let text = "[devices]\nenabled_mdev_types = [\"a1\", \"b1\", \"a1\"]\nunlisted = \"default\"\n\
                    [mdev.\"c1\"]\ndevice_addresses = [\"0000:01:00.0\", \"0000:01:00.0\"]\n";
        let warnings: Vec<String> = parse(text, "m.toml")
            .unwrap()
            .warnings
            .into_iter()
            .map(|w| format!("{}: {}", w.about, w.text))
            .collect();
        assert_eq!(
            warnings,
            [
                "a1: a1 is listed twice in devices.enabled_mdev_types; the second time has no effect",
                "c1: mdev.\"c1\" (m.toml:4) has no effect: c1 is not enabled; add it to enabled_mdev_types or drop the table",
                "0000:01:00.0: 0000:01:00.0 is listed twice in mdev.\"c1\".device_addresses; it counts once",
                "b1: b1 will not be used: it lists no device_addresses, and a1 before it is the default already; list the addresses of one of them",
            ]
        );
    }

    #[test]
    fn sizes_are_bounded() {
        let [error] = &errors(&"#".repeat(MAX_FILE_BYTES + 1))[..] else { panic!() };
        assert!(error.contains("larger than"), "{error}");
        let many: Vec<String> = (0..=MAX_ENTRIES).map(|n| format!("\"t{n}\"")).collect();
        let [error] = &errors(&format!("[devices]\nenabled_mdev_types = [{}]", many.join(",")))[..] else {
            panic!()
        };
        assert!(error.contains("10001 types"), "{error}");
        let deep = format!("x = {}1{}", "[".repeat(5000), "]".repeat(5000));
        assert!(parse(&deep, "m.toml").is_err());
    }

    /// One address in the spellings that are known.
    fn spellings(domain: u16, bus: u8, slot: u8, function: u8) -> [String; 5] {
        let low = format!("{domain:04x}:{bus:02x}:{slot:02x}.{function:x}");
        let node = format!("pci_{}", low.replace([':', '.'], "_"));
        [
            low.to_uppercase(),
            format!("0000{low}"),
            format!("0{}", low.to_uppercase()),
            format!(" {low} "),
            node,
        ]
    }

    proptest! {
        #[test]
        fn spellings_of_an_address_are_one(
            (domain, bus, slot, function) in (any::<u16>(), any::<u8>(), 0u8..32, 0u8..8), one in 0usize..5, other in 0usize..5
        ) {
            let all = spellings(domain, bus, slot, function);
            let two = |second: &str| format!(
                "[devices]\nenabled_mdev_types = [\"a1\", \"b1\"]\n[mdev.a1]\ndevice_addresses = [\"{}\"]\n\
                 [mdev.b1]\ndevice_addresses = [\"{second}\"]\n", all[one]);
            let error = parse(&two(&all[other]), "m.toml").unwrap_err().to_string();
            prop_assert!(error.contains("has two types"), "{}", error);
            let neighbour = &spellings(domain, bus, slot, function ^ 1)[other];
            prop_assert!(parse(&two(neighbour), "m.toml").is_ok());
        }

        #[test]
        fn no_text_panics(text in "(\\PC|\n){0,200}") {
            let _ = parse(&text, "m.toml");
        }

        #[test]
        fn no_near_miss_panics(
            words in prop::collection::vec(
                prop::sample::select(&[
                    "[devices]", "[mdev.x1]", "[[mdev]]", "enabled_mdev_types", "device_addresses", "max_instances",
                    "=", "[", "]", "\"", "x1", "0000:3b:00.0", ",", "\n", "1", "'''", "\"\"\"", "{", "}", "#", ".", "\r",
                ][..]), 0..60)
        ) {
            let _ = parse(&words.concat(), "m.toml");
        }
    }
}
