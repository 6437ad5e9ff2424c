//! `config`: what works without a daemon.

use serde_json::json;

use crate::{json, program, run};

const NOVA: &str =
    "[devices]\nenabled_mdev_types = nvidia-35\n\n[mdev_nvidia-35]\ndevice_addresses = 0000:84:00.0\n";

#[tokio::test]
async fn a_good_file_is_good_and_its_warnings_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mdevirt.toml");
    let text = "[devices]\nenabled_mdev_types = [\"nvidia-35\"]\n[mdev.\"nvidia-36\"]\nreserved = 1\n";
    std::fs::write(&file, text).unwrap();
    let ran = run(program(&["config", "check", file.to_str().unwrap()]), "").await;
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(
        ran.stdout.starts_with(&format!("{}: good, 1 types enabled\n", file.display())),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("config-warning"), "{}", ran.stdout);
    let ran = run(program(&["config", "check", file.to_str().unwrap(), "--json"]), "").await;
    let shown = json(&ran.stdout);
    assert_eq!((&shown["enabled_types"], &shown["files"]), (&json!(1), &json!([file])));
    assert_eq!(shown["warnings"][0]["kind"], "config-warning");
}

#[tokio::test]
async fn everything_that_is_wrong_is_shown_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mdevirt.toml");
    std::fs::write(&file, "[devices]\nenabled_mdev_types = 7\nunlisted = \"x\"\n").unwrap();
    let ran = run(program(&["config", "check", file.to_str().unwrap()]), "").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(
        ran.stderr.contains("mdevirt.toml:2:") && ran.stderr.contains("mdevirt.toml:3:"),
        "{}",
        ran.stderr
    );
    let ran = run(program(&["config", "check", file.to_str().unwrap(), "--json"]), "").await;
    let error = &json(&ran.stderr)["error"];
    assert_eq!((&error["kind"], &error["details"][0]["line"]), (&json!("InvalidMdevConfig"), &json!(2)));
    let ran = run(program(&["config", "check", "/nonexistent/mdevirt.toml"]), "").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
}

#[tokio::test]
async fn a_nova_conf_becomes_a_configuration_that_checks() {
    let dir = tempfile::tempdir().unwrap();
    let (nova, ours) = (dir.path().join("nova.conf"), dir.path().join("mdevirt.toml"));
    std::fs::write(&nova, NOVA).unwrap();
    let (nova, target) = (nova.to_str().unwrap(), ours.to_str().unwrap());
    let ran = run(program(&["config", "import-nova", nova, "-o", target]), "").await;
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, format!("written to {target}\n").as_str()),
        "{}",
        ran.stderr
    );
    let written = std::fs::read_to_string(&ours).unwrap();
    assert!(written.contains("unlisted = \"default\""), "{written}");
    assert_eq!(run(program(&["config", "check", target]), "").await.code, 0);
    let again = run(program(&["config", "import-nova", nova, "-o", target]), "").await;
    assert_eq!(again.code, 2, "never over what is there");
    let shown = run(program(&["config", "import-nova", "-", "--json"]), NOVA).await;
    let shown = json(&shown.stdout);
    assert!(shown["toml"].as_str().unwrap().contains("nvidia-35") && shown["notes"].is_array(), "{shown}");
    assert_eq!(shown["file"], json!(null));
}

#[tokio::test]
async fn traits_are_drafted_into_a_file_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (ours, traits) = (path("mdevirt.toml"), path("traits.toml"));
    let named = "[devices]\nenabled_mdev_types = GRID T4-2Q\n[mdev_GRID T4-2Q]\nmax_instances = 2\n";
    let ran = run(program(&["config", "import-nova", "-"]), named).await;
    assert!(ran.stdout.contains("[devices]") && !ran.stdout.contains("[trait."), "{}", ran.stdout);
    assert!(ran.stderr.contains("trap: line 4: ") && ran.stderr.contains("--traits FILE"), "{}", ran.stderr);
    let ran = run(program(&["config", "import-nova", "-", "-o", &ours, "--traits", &traits]), named).await;
    assert_eq!((ran.code, ran.stdout), (0, format!("written to {ours}\nwritten to {traits}\n")));
    let draft = std::fs::read_to_string(&traits).unwrap();
    assert!(draft.ends_with("[trait.CUSTOM_GRID_T4_2Q]\ntype = \"GRID T4-2Q\"\n"), "{draft}");
    let shown = run(program(&["config", "import-nova", "-", "--json"]), named).await;
    let shown = json(&shown.stdout);
    assert_eq!((&shown["traits"], &shown["traits_file"]), (&json!(draft), &json!(null)));
    assert_eq!(shown["traps"].as_array().unwrap().len(), 1);

    // Neither file, if one of them cannot be made.
    let other = path("other.toml");
    let ran = run(program(&["config", "import-nova", "-", "-o", &other, "--traits", &traits]), named).await;
    assert_eq!((ran.code, std::fs::exists(&other).unwrap()), (2, false), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(&traits).unwrap(), draft);
}

#[tokio::test]
async fn a_bad_nova_conf_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("mdevirt.toml");
    let args = ["config", "import-nova", "-", "-o", target.to_str().unwrap()];
    let ran = run(program(&args), "[devices]\nenabled_mdev_types = ../../x\n").await;
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(!target.exists());
}
