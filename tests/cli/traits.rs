//! `trait verify`: without a daemon, on files that hosts exported.

use std::collections::BTreeMap;
use std::path::Path;

use mdevirt::catalog::{Export, Lock, TraitState};
use mdevirt::model::{DeviceApi, TraitName, TypeIdentity};
use serde_json::json;

use crate::golden::check;
use crate::{Ran, json, program, run};

fn identity(name: &str, mib: u32) -> TypeIdentity {
    TypeIdentity {
        vendor_id: Some(0x10de),
        device_id: None,
        name: Some(name.to_owned()),
        type_id: None,
        device_api: DeviceApi::VfioPci,
        framebuffer_mib: Some(mib),
        heads: Some(4),
        max_resolution: Some("7680x4320".to_owned()),
    }
}

type Resolved = BTreeMap<TraitName, (TraitState, Option<TypeIdentity>)>;

/// What a host makes of three traits when nothing is wrong.
fn usual() -> Resolved {
    let one = |name: &str, type_name, mib| {
        (name.parse().unwrap(), (TraitState::Ok, Some(identity(type_name, mib))))
    };
    BTreeMap::from([
        one("CUSTOM_GOLD", "NVIDIA A2-8Q", 8192),
        one("CUSTOM_SILVER", "NVIDIA A2-4Q", 4096),
        one("CUSTOM_SMALL", "NVIDIA A2-2Q", 2048),
    ])
}

fn lock() -> Lock {
    Lock::of(None, &usual().into_iter().filter_map(|(name, (_, id))| Some((name, id?))).collect())
}

fn write(dir: &Path, host: &str, lock: Option<&Lock>, resolved: &Resolved) -> String {
    let file = dir.join(format!("{host}.json"));
    std::fs::write(&file, serde_json::to_string_pretty(&Export::of(host, lock, resolved)).unwrap()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Two hosts that agree, and one with something of everything that can differ.
fn fleet(dir: &Path) -> Vec<String> {
    let mut other = usual();
    other.insert("CUSTOM_EXTRA".parse().unwrap(), (TraitState::Ok, Some(identity("NVIDIA A2-16Q", 16384))));
    other.insert("CUSTOM_GOLD".parse().unwrap(), (TraitState::Ok, Some(identity("NVIDIA A2-8Q", 4096))));
    other.insert("CUSTOM_SILVER".parse().unwrap(), (TraitState::Drift, Some(identity("NVIDIA A2-4Q", 4096))));
    other.remove(&"CUSTOM_SMALL".parse().unwrap());
    vec![
        write(dir, "gpu-01", Some(&lock()), &usual()),
        write(dir, "gpu-02", Some(&lock()), &usual()),
        write(dir, "gpu-03", None, &other),
    ]
}

async fn verify(files: &[String], more: &[&str]) -> Ran {
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    run(program(&[&["trait", "verify"], &files[..], more].concat()), "").await
}

#[tokio::test]
async fn differences_are_a_table_and_json_and_the_code_is_five() {
    let dir = tempfile::tempdir().unwrap();
    let files = fleet(dir.path());
    let ran = verify(&files, &[]).await;
    let said = "mdevirtctl: hosts disagree about traits: 5 differences in 3 exports\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (5, said));
    check("trait-verify.txt", &ran.stdout);
    let ran = verify(&files, &["--json"]).await;
    assert_eq!((ran.code, &json(&ran.stderr)["error"]["kind"]), (5, &json!("TraitMismatch")));
    check("trait-verify.json", &ran.stdout);
    for difference in json(&ran.stdout)["differences"].as_array().unwrap() {
        for key in ["trait", "host", "type_name", "expected"] {
            assert!(difference.as_object().unwrap().contains_key(key), "{key} is promised: {difference}");
        }
    }
}

#[tokio::test]
async fn hosts_that_agree_are_told_so() {
    let dir = tempfile::tempdir().unwrap();
    let files = &fleet(dir.path())[..2];
    let ran = verify(files, &[]).await;
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
        (0, "agreed: 3 traits on 2 hosts\n", "")
    );
    let ran = verify(files, &["--json"]).await;
    let want = json!({"agree": true, "hosts": 2, "traits": 3, "differences": []});
    assert_eq!((ran.code, json(&ran.stdout)), (0, want));
}

#[tokio::test]
async fn a_bad_file_is_named_and_nothing_is_said_of_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let good = write(dir.path(), "gpu-01", None, &usual());
    let text = std::fs::read_to_string(&good).unwrap();
    for (content, why) in [
        (text.replace("\"ok\"", "\"drift\""), "was changed after it was made"),
        (text.replace("8192", "4096"), "was changed after it was made"),
        ("{".to_owned(), "not an export"),
        ("{\"version\": 7}".to_owned(), "form 7"),
    ] {
        let bad = dir.path().join("bad.json");
        std::fs::write(&bad, content).unwrap();
        let bad = bad.to_str().unwrap().to_owned();
        let ran = verify(&[good.clone(), bad.clone()], &[]).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
        assert!(
            ran.stderr.starts_with(&format!("mdevirtctl: {bad}: ")) && ran.stderr.contains(why),
            "{}",
            ran.stderr
        );
    }
    let ran = verify(&[good, "/nonexistent.json".to_owned()], &[]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("/nonexistent.json: cannot be read"), "{}", ran.stderr);
    assert_eq!(verify(&[], &[]).await.code, 2);
}

/// Neither end of the comparison needs a running daemon: each host's program prints its own part and ends.
#[cfg(feature = "libvirt")]
#[tokio::test]
async fn hosts_are_compared_without_any_daemon() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = tempfile::tempdir().unwrap();
    let export = async |name: &str, moved: &str| {
        let (scenario, config) = (dir.path().join(name), dir.path().join(format!("{name}.toml")));
        let host = std::fs::read_to_string(root.join("tests/scenarios/two-m60.xml")).unwrap();
        std::fs::write(&scenario, host.replace("'nvidia-22'", moved)).unwrap();
        let traits = root.join("tests/demo/traits.toml");
        let text = format!(
            "[devices]\nenabled_mdev_types = [\"GRID M60-8Q\"]\n[traits]\nfile = {traits:?}\nlock = \"/nowhere/lock\"\n"
        );
        std::fs::write(&config, text).unwrap();
        #[allow(clippy::disallowed_methods, reason = "tests start the programs they test")]
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_mdevirtd"));
        command.arg("--export-traits").arg("--sim").arg(&scenario).arg("--config").arg(&config);
        command.arg("--state-dir").arg(dir.path().join(format!("{name}.state"))).args(["--host-name", name]);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let file = dir.path().join(format!("{name}.json"));
        std::fs::write(&file, output.stdout).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let (a, b) = (export("gpu-01", "'nvidia-22'").await, export("gpu-02", "'nvidia-522'").await);
    let ran = run(program(&["trait", "verify", &a, &b, "--json"]), "").await;
    assert_eq!((ran.code, &json(&ran.stdout)["agree"]), (0, &serde_json::json!(true)), "{}", ran.stderr);
    let exported = json(&std::fs::read_to_string(&b).unwrap());
    assert_eq!(exported["host"], "gpu-02");
    assert_eq!(exported["traits"]["CUSTOM_GOLD"]["state"], "ok");
}
