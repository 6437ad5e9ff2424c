//! The whole life of a VM on simulated hosts, through the service: memory, definition, devices, flavor, host; the
//! scenarios of nova's vGPU tests among them, and the bugs that nova had.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "a test program has no outside and fails by panicking"
)]

#[path = "life/bench.rs"]
mod bench;
#[path = "life/bugs.rs"]
mod bugs;
#[path = "life/definition.rs"]
mod definition;
#[path = "life/evacuate.rs"]
mod evacuate;
#[path = "life/live.rs"]
mod live;
#[path = "life/memory.rs"]
mod memory;
#[path = "life/migrate.rs"]
mod migrate;
#[path = "life/nova.rs"]
mod nova;
#[path = "life/plug.rs"]
mod plug;
#[path = "life/refused.rs"]
mod refused;
#[path = "life/resize.rs"]
mod resize;
#[path = "world/mod.rs"]
mod world;
