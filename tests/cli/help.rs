//! Help, usage, completions and manual pages: all from the definitions.

use clap::CommandFactory;
use mdevirt::cli::args::Cli;

use crate::{program, run};

/// Every command with its path, `claim create`.
fn commands(command: &clap::Command, path: &[String], all: &mut Vec<Vec<String>>) {
    all.push(path.to_vec());
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        commands(inner, &[path, &[inner.get_name().to_owned()]].concat(), all);
    }
}

#[tokio::test]
async fn every_command_has_help_with_examples() {
    let mut all = Vec::new();
    commands(&Cli::command(), &[], &mut all);
    assert!(all.len() > 32, "{all:?}");
    for path in all {
        let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
        args.push("--help");
        let ran = run(program(&args), "").await;
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
        let (_, examples) = ran.stdout.split_once("\nExamples:\n").unwrap_or_else(|| panic!("{args:?}"));
        assert!(examples.contains("  mdevirtctl "), "{args:?}");
        for example in examples.lines().filter(|line| line.starts_with("  mdevirtctl")) {
            parses(example);
        }
    }
}

/// Words as a shell has them, `'one word'`, up to a pipe, a redirection or `&&`.
fn words(example: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (n, part) in example.split('\'').enumerate() {
        if n % 2 == 1 {
            words.push(part.to_owned());
            continue;
        }
        for word in part.split_whitespace() {
            if matches!(word, "|" | ">" | "<" | "&&") {
                return words;
            }
            words.push(word.to_owned());
        }
    }
    words
}

/// An example that does not parse is a lie.
fn parses(example: &str) {
    let words = words(example);
    if let Err(err) = <Cli as clap::Parser>::try_parse_from(words) {
        panic!("{example}: {err}");
    }
}

#[tokio::test]
async fn wrong_usage_is_two() {
    for args in [
        &[][..],
        &["frobnicate"],
        &["status", "--colour"],
        &["spawn", "x.xml"],
        &["start", ""],
        &["status", "--timeout", "0"],
        &["--system", "--session", "status"],
        &["--system", "status", "--session"],
        &["--address", "unix:path=/x", "inventory", "--session"],
        &["spawn", "-", "--flavor", "f", "--dry-run", "--no-wait"],
        &["spawn", "-", "--flavor", "f", "--display", "maybe"],
        &["trait"],
        &["trait", "accept", "CUSTOM_GOLD"],
        &["trait", "accept", "CUSTOM_GOLD", "--reason", ""],
        &["trait", "accept", "--reason", "r"],
    ] {
        let ran = run(program(args), "").await;
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
        assert!(ran.stdout.is_empty() && ran.stderr.contains("--help"), "{args:?}: {}", ran.stderr);
    }
}

#[tokio::test]
async fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = run(program(&["completions", shell]), "").await;
        assert_eq!(ran.code, 0);
        assert!(ran.stdout.contains("import-nova") && ran.stdout.contains("operation-id"), "{shell}");
    }
}

#[tokio::test]
async fn manual_pages_are_written_for_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let ran = run(program(&["man", dir.path().to_str().unwrap()]), "").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    for page in ["mdevirtctl.1", "mdevirtctl-spawn.1", "mdevirtctl-claim-create.1"] {
        let text =
            std::fs::read_to_string(dir.path().join(page)).unwrap_or_else(|err| panic!("{page}: {err}"));
        assert!(text.contains("Examples:"), "{page}");
    }
    assert!(!dir.path().join("mdevirtctl-man.1").exists(), "it is for packagers");
    let ran = run(program(&["man", "/nonexistent"]), "").await;
    assert_eq!(ran.code, 2);
}
