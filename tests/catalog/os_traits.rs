//! The trait names of the table against the real list: the Python package that Placement fills its database from.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use mdevirt::catalog::capability::known_traits;

/// `make deps-check` puts it beside the test programs.
fn python() -> PathBuf {
    let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned();
    let python = target.join("venv-os-traits/bin/python");
    assert!(python.exists(), "no {}: run `make deps-check`", python.display());
    python
}

/// Every trait that os-traits has.
#[expect(clippy::disallowed_methods, reason = "the list is a Python package")]
fn real_traits() -> BTreeSet<String> {
    let script = "import os_traits; print(*os_traits.get_traits(), sep='\\n')";
    let output = Command::new(python()).args(["-c", script]).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "os-traits cannot be read; run `make deps-check`: {complaint}");
    let all: BTreeSet<String> =
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    assert!(all.len() > 300, "only {} traits: {all:?}", all.len());
    all
}

#[test]
fn standard_names_are_in_the_real_list_and_own_ones_are_not() {
    let real = real_traits();
    let mut standard = 0;
    for name in known_traits() {
        match name.as_str().strip_prefix("CUSTOM_") {
            None => {
                assert!(real.contains(name.as_str()), "{name} is no trait of os-traits");
                standard += 1;
            }
            Some(plain) => {
                assert!(!real.contains(plain), "os-traits has {plain} by now: make {name} standard");
            }
        }
    }
    assert!(standard > 50, "only {standard} standard traits in the table");
}

/// A new size or head count in os-traits belongs into the table: a type would lack it silently.
#[test]
fn no_display_trait_is_left_out() {
    let ours: BTreeSet<&str> = known_traits().iter().map(|name| name.as_str()).collect();
    let real = real_traits();
    let missing: Vec<&String> = real
        .iter()
        .filter(|t| t.starts_with("HW_GPU_RESOLUTION_") || t.starts_with("HW_GPU_MAX_DISPLAY_HEADS_"))
        .filter(|t| !ours.contains(t.as_str()))
        .collect();
    assert_eq!(missing, Vec::<&String>::new());
}
