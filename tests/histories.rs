//! Histories of three VMs on two hosts: any operations in any order, daemons that die, libvirt that goes away and loses
//! answers, cards that are pulled and put back, hosts that are full. Brought to rest, books, devices and domains agree, and
//! nothing of anybody else was touched.
//!
//! The orchestrator of these histories ([`run`]) keeps the order of a migration, as whoever carries the document has to; all
//! else is left to chance. A history that fails is made as short as it goes and shown, one act a line.
//!
//! `MDEVIRT_HISTORIES` is how many are told (80 without it; `make histories`: 10,000), `MDEVIRT_SEED` begins with others, and
//! `MDEVIRT_TELL` says each act before it is done.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::needless_range_loop,
    clippy::too_many_lines,
    unreachable_pub,
    reason = "a test program has no outside and fails by panicking"
)]

#[path = "histories/act.rs"]
mod act;
#[path = "histories/judge.rs"]
mod judge;
#[path = "histories/orchestrator.rs"]
mod orchestrator;
#[path = "histories/run.rs"]
mod run;
#[path = "world/mod.rs"]
mod world;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use act::{Act, Kinds};
use run::Pair;

/// How many tests share the histories, so that they run beside each other.
const SHARES: u32 = 8;

fn number(variable: &str, default: u32) -> u32 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// Tells this share of the histories, of acts of these kinds.
fn tell(share: u8, kinds: Kinds) {
    let cases = number("MDEVIRT_HISTORIES", 80).div_ceil(SHARES);
    let mut seed = [share; 32];
    seed[..4].copy_from_slice(&number("MDEVIRT_SEED", 0).to_le_bytes());
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 300, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let told = runner.run(&act::history(kinds), |acts| {
        let odds = Pair::new().tell(&acts);
        if odds.is_empty() {
            return Ok(());
        }
        Err(TestCaseError::fail(odds.join("\n")))
    });
    if let Err(TestError::Fail(why, acts)) = told {
        panic!("{why}\nafter\n{}", lines(&acts));
    }
    told.unwrap();
}

fn lines(acts: &[Act]) -> String {
    acts.iter().map(|act| format!("  {act:?}\n")).collect()
}

#[test]
fn of_calm_days_1() {
    tell(1, Kinds::Calm);
}

#[test]
fn of_calm_days_2() {
    tell(2, Kinds::Calm);
}

#[test]
fn of_crashes_1() {
    tell(3, Kinds::Crashes);
}

#[test]
fn of_crashes_2() {
    tell(4, Kinds::Crashes);
}

#[test]
fn of_faults_1() {
    tell(5, Kinds::Faults);
}

#[test]
fn of_faults_2() {
    tell(6, Kinds::Faults);
}

#[test]
fn of_everything_1() {
    tell(7, Kinds::All);
}

#[test]
fn of_everything_2() {
    tell(8, Kinds::All);
}
