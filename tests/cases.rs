//! The cases of `tests/cases`, each on the real service, store and operations over simulated hardware.
//!
//! Every file begins with a table of what is right in its cases, by number, and the test that shows it. `later` is what
//! belongs to a part that is not built yet. What a part alone can show is tested there: `tests/config_cases`
//! (configuration), `tests/xml` (documents), `tests/sysfs.rs` and `tests/libvirt_nodedev.rs` (hardware).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on shall stop"
)]

#[path = "fixture/mod.rs"]
mod fixture;
#[path = "world/mod.rs"]
mod world;

#[path = "cases_run/books.rs"]
mod books;
#[path = "cases_run/listing.rs"]
mod listing;
#[path = "cases_run/setup.rs"]
mod setup;
#[path = "cases_run/sysfs_text.rs"]
mod sysfs_text;

#[path = "cases_run/tree.rs"]
mod tree;

#[cfg(feature = "libvirt")]
#[path = "cases_run/agree.rs"]
mod agree;
#[path = "cases_run/capacity.rs"]
mod capacity;
#[path = "cases_run/clones.rs"]
mod clones;
#[path = "cases_run/configuration.rs"]
mod configuration;
#[path = "cases_run/hostdevs.rs"]
mod hostdevs;
#[path = "cases_run/hostile.rs"]
mod hostile;
#[path = "cases_run/kinds.rs"]
mod kinds;
#[path = "cases_run/names.rs"]
mod names;
#[path = "cases_run/others.rs"]
mod others;
#[path = "cases_run/upgrade.rs"]
mod upgrade;
