//! What a `traits.toml` may say, and what is said about one that says something else.

use std::fmt::Write;

use super::*;

fn errors(text: &str) -> Vec<String> {
    let errors = Catalog::parse(text, "t.toml").unwrap_err();
    errors.errors.iter().map(ToString::to_string).collect()
}

#[test]
fn every_key_is_read_in_every_spelling() {
    let text = "[trait.CUSTOM_GOLD]\ntype = \" NVIDIA  A2-4Q \"\nvendor_id = \"10DE\"\ndevice_id = \"0x25b6\"\n\
                framework = \"vendor-vfio\"\nframebuffer_mib = 4_096\n\
                [trait]\nCUSTOM_SMALL = { type = \"nvidia-35\" }\n\"HW_GPU_API_VULKAN\".type = \"NVIDIA A2-4Q\"\n";
    let catalog = Catalog::parse(text, "t.toml").unwrap();
    let names: Vec<&str> = catalog.bindings.keys().map(TraitName::as_str).collect();
    assert_eq!(names, ["CUSTOM_GOLD", "CUSTOM_SMALL", "HW_GPU_API_VULKAN"]);
    let gold = Binding {
        type_key: "NVIDIA A2-4Q".into(),
        vendor_id: Some(0x10de),
        device_id: Some(0x25b6),
        framework: Some(Framework::VendorVfio),
        framebuffer_mib: Some(4096),
    };
    assert_eq!(catalog.bindings[&"CUSTOM_GOLD".parse().unwrap()], gold);
    assert_eq!(
        catalog.bindings[&"HW_GPU_API_VULKAN".parse().unwrap()].type_key,
        gold.type_key,
        "several name one type"
    );
    assert_eq!(Catalog::parse("# nothing\n", "t.toml").unwrap(), Catalog::default());
}

#[test]
fn one_attempt_names_everything_with_its_place() {
    let text = "[trait.CUSTOM_A]\ntyp = \"x\"\nvendor_id = \"4318d\"\nframework = \"mdve\"\nframebuffer_mib = 0\n\
                [trait.GOLD]\ntype = \"x\"\n[trait.CUSTOM_B]\ntype = 7\ndevice_id = 0x25b6\n[trait.CUSTOM_C]\ntype = \" \"\n\
                [trait.CUSTOM_D]\ntype = \"a\\u0007\"\n[traits]\n";
    let want = [
        "t.toml:1: trait.CUSTOM_A: type is missing: the vendor's type name, or the type id where the driver gives no names",
        "t.toml:2: trait.CUSTOM_A: unknown key \"typ\"; did you mean type?",
        "t.toml:3: trait.CUSTOM_A.vendor_id: \"4318d\" is not a valid PCI id: expected four hexadecimal digits, as in 0x10de",
        "t.toml:4: trait.CUSTOM_A.framework: unknown word \"mdve\"; did you mean mdev?",
        "t.toml:5: trait.CUSTOM_A.framebuffer_mib: expected a number from 1 to 4294967295, found 0",
        "t.toml:6: trait.GOLD: \"GOLD\" is no standard trait of GPUs; a name of your own begins with CUSTOM_; did you mean CUSTOM_GOLD?",
        "t.toml:9: trait.CUSTOM_B.type: expected a string, found integer",
        "t.toml:10: trait.CUSTOM_B.device_id: expected a string, found integer",
        "t.toml:12: trait.CUSTOM_C.type: \" \" is not a valid mdev type: expected a type id or vendor type name of 1 to 128 bytes",
        "t.toml:14: trait.CUSTOM_D.type: \"a\\u{7}\" is not a valid mdev type: it has a character that is not printable",
        "t.toml:15: unknown key \"traits\"; did you mean trait?",
    ];
    assert_eq!(errors(text), want);
    assert!(errors("trait = 1")[0].starts_with("t.toml:1: trait: expected a table, found integer"));
    assert!(errors("[trait]\nCUSTOM_A = \"x\"")[0].starts_with("t.toml:2: trait.CUSTOM_A: expected a table"));
    let long = format!("[trait.CUSTOM_A]\ntype = \"{}\"", "x".repeat(129));
    assert!(errors(&long)[0].contains("1 to 128 bytes"));
}

#[test]
fn names_that_nobody_tells_apart_are_refused() {
    for later in ["CUSTOM_A100-1-5C", "custom_a100_1_5c", "\"CUSTOM_A100 1 5C\"", "CUSTOM_A100__1_5C"] {
        let text = format!("[trait.CUSTOM_A100_1_5C]\ntype = \"x\"\n[trait.{later}]\ntype = \"y\"\n");
        let [error] = &errors(&text)[..] else { panic!("{later}") };
        assert!(error.starts_with("t.toml:3: trait."), "{error}");
        assert!(error.contains("clashes with trait.CUSTOM_A100_1_5C (t.toml:1)"), "{error}");
    }
    let [alone] = &errors("[trait.CUSTOM_A100-1-5C]\ntype = \"x\"")[..] else { panic!() };
    assert!(alone.ends_with("did you mean CUSTOM_A100_1_5C?"), "{alone}");
    let twice = errors("[trait.CUSTOM_A]\ntype = \"x\"\n[trait.CUSTOM_A]\ntype = \"y\"\n");
    assert_eq!(twice[0], "t.toml:3: not TOML: duplicate key");
}

#[test]
fn sizes_are_bounded() {
    let mut text = String::from("[trait]\n");
    for n in 0..=MAX_TRAITS {
        writeln!(text, "CUSTOM_{n}.type=\"x\"").unwrap();
    }
    let [error] = &errors(&text)[..] else { panic!() };
    assert!(error.contains("10001 traits"), "{error}");
    let [error] = &errors(&"#".repeat(MAX_FILE_BYTES + 1))[..] else { panic!() };
    assert!(error.contains("larger than"), "{error}");
    let long = format!("[trait.\"CUSTOM_{}\"]\ntype = \"x\"", "\u{1b}".repeat(100_000));
    assert!(errors(&long)[0].len() < 4000, "{}", errors(&long)[0].len());
}

/// The example that is shipped binds nothing, and each of its examples is right.
#[test]
fn the_shipped_example_is_valid() {
    let text = include_str!("../../../packaging/traits.toml");
    assert_eq!(Catalog::parse(text, "traits.toml").unwrap(), Catalog::default());
    let lines =
        text.lines().map(|line| line.strip_prefix('#').filter(|line| !line.starts_with(' ')).unwrap_or(line));
    let full = Catalog::parse(&lines.collect::<Vec<_>>().join("\n"), "example").unwrap();
    let keys: Vec<&str> = full.bindings.values().map(|binding| binding.type_key.as_str()).collect();
    assert_eq!(keys, ["NVIDIA A2-4Q", "NVIDIA A2-2Q", "NVIDIA A2-2Q"]);
    let gold = &full.bindings[&"CUSTOM_GOLD".parse().unwrap()];
    assert_eq!(
        (gold.vendor_id, gold.device_id, gold.framebuffer_mib),
        (Some(0x10de), Some(0x25b6), Some(4096))
    );
}
