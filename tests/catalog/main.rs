//! The tables of facts about types, on what real machines print (`tests/cases/samples`).
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the whole crate is tests; clippy.toml allows it only inside of #[test]"
)]

mod os_traits;
mod reviewed;
mod samples;
