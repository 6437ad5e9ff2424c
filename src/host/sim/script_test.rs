//! Scripts that are read, and scripts that are refused.

use super::*;

#[test]
fn the_example_of_the_head_is_read() {
    let head = include_str!("script.rs");
    let text: String = head
        .lines()
        .map_while(|l| l.strip_prefix("//! ").or(l.strip_prefix("//!")))
        .fold(String::new(), |text, line| text + line + "\n");
    let example = text.split("```").nth(1).unwrap().strip_prefix("toml").unwrap();
    let script = Script::parse(example).unwrap();
    assert_eq!((script.fail[0].nth, script.fail[0].kind), (2, FailKind::NoRoom));
    assert_eq!(script.change[0].change, Change::ParentBack("0000:85:00.0".parse().unwrap()));
    assert_eq!(script.change[0].after.as_ref().unwrap().count, 1);
}

#[test]
fn every_change_is_read() {
    let script = Script::parse(
        r#"
        [[change]]
        do = { parent-gone = "pci_0000_84_00_0" }
        [[change]]
        do = { foreign-mdev = { uuid = "3d1f0a52-6c0b-4f0e-9a53-0d5c2f5b7e10", parent = "mtty_mtty", type = "mtty-1" } }
        [[change]]
        do = { mdev-lost = "3d1f0a52-6c0b-4f0e-9a53-0d5c2f5b7e10" }
        [[change]]
        do = { renumber = { "nvidia-18" = "nvidia-20", "nvidia-20" = "nvidia-18" } }
        [[change]]
        do = { withdraw = ["nvidia-18"] }
        [[change]]
        do = "reboot"
        [[change]]
        do = { autostart = "3d1f0a52-6c0b-4f0e-9a53-0d5c2f5b7e10" }
        "#,
    )
    .unwrap();
    assert_eq!(script.change.len(), 7);
    assert!(script.change.iter().all(|rule| rule.after.is_none()));
}

#[test]
fn mistakes_are_named() {
    for (bad, word) in [
        ("[[fail]]\ncall = \"create\"\nkind = \"nope\"", "nope"),
        ("[[fail]]\ncall = \"create\"\nkind = \"refused\"\nnth = 0", "from 1"),
        ("[[fail]]\ncall = \"create\"\nkind = \"refused\"\nparent = \"0000:84:00\"", "PCI address"),
        ("[[fail]]\ncall = \"create\"\nkind = \"refused\"\nnht = 1", "nht"),
        ("[[change]]\ndo = { renumber = { \"a\" = \"c\", \"b\" = \"c\" } }", "one id"),
        ("[fails]", "fails"),
    ] {
        let err = Script::parse(bad).unwrap_err().to_string();
        assert!(err.contains(word), "{bad}: {err}");
    }
}

#[test]
fn a_huge_file_is_refused_unread() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("script.toml");
    std::fs::write(&path, "#".repeat(70_000)).unwrap();
    assert!(Script::load(&path).unwrap_err().to_string().contains("70000 bytes"));
    assert!(Script::load(&dir.path().join("none")).unwrap_err().to_string().contains("none"));
}

#[test]
fn the_committed_script_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/faults.toml");
    let script = Script::load(&path).unwrap();
    assert_eq!((script.fail.len(), script.change.len()), (5, 5));
}
