//! The host boots, cards come and go: what becomes of the devices of the books.
#![allow(unreachable_pub, reason = "the modules of one test program")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has to stop")]

#[path = "boot/host.rs"]
mod host;
#[path = "boot/reboot.rs"]
mod reboot;
#[path = "boot/reconcile.rs"]
mod reconcile;
#[path = "boot/unplug.rs"]
mod unplug;
#[path = "world/mod.rs"]
mod world;
