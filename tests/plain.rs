//! Domains that are libvirt's own: what the daemon answers its hook, and what becomes of devices when they stop.
#![allow(unreachable_pub, reason = "the modules of one test program")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has to stop")]

#[path = "plain/bench.rs"]
mod bench;
#[path = "plain/life.rs"]
mod life;
#[path = "plain/moves.rs"]
mod moves;
#[path = "plain/refused.rs"]
mod refused;
#[path = "plain/waiting.rs"]
mod waiting;
#[path = "world/mod.rs"]
mod world;
