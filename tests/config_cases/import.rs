//! Every nova.conf of the cases through `config import-nova`, against one file that is reviewed as a whole.
//! `MDEVIRT_REGEN=1` rewrites it.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use mdevirt::config::{self, Imported, parse};

/// The nova.confs below `dir`, in order.
fn nova_confs(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            found.extend(nova_confs(&path));
        } else if name.starts_with("nova") && name.ends_with(".conf") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// What an operator gets for one file.
fn outcome(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    match config::import(&text, "nova.conf") {
        Ok(Imported { toml, traits, traps, notes }) => {
            parse(&toml, "mdevirt.toml").unwrap();
            traits.parse::<toml::Table>().unwrap();
            let body = |text: &str| -> String {
                let lines = text.lines().filter(|line| !line.is_empty());
                lines.skip_while(|l| l.starts_with("# ")).map(|l| format!("  {l}\n")).collect()
            };
            // The head of the draft is the same for all and ends at the first empty line.
            let traits = traits.split_once("\n\n").map_or("", |(_, rest)| rest);
            let list =
                |word: &str, all: &[String]| all.iter().map(|t| format!("{word}: {t}\n")).collect::<String>();
            let traits: String =
                traits.lines().filter(|l| !l.is_empty()).map(|line| format!("  {line}\n")).collect();
            format!("{}traits.toml:\n{traits}{}{}", body(&toml), list("trap", &traps), list("note", &notes))
        }
        Err(errors) => errors.errors.iter().map(|err| format!("error: {err}\n")).collect(),
    }
}

#[test]
fn every_nova_conf_has_its_reviewed_outcome() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cases = root.join("tests/cases");
    let files = nova_confs(&cases);
    let mut all = String::new();
    for path in &files {
        let name = path.strip_prefix(&cases).unwrap().display();
        writeln!(all, "== {name}\n{}", outcome(path)).unwrap();
    }
    let golden = root.join("tests/golden/import-nova.txt");
    if std::env::var_os("MDEVIRT_REGEN").is_some() {
        fs::write(&golden, &all).unwrap();
    }
    let want = fs::read_to_string(&golden).unwrap();
    assert_eq!(all, want, "MDEVIRT_REGEN=1 rewrites {}", golden.display());
}
