//! Pure decisions with reasons (rank 1): no I/O, no clock, the same input gives the same answer.
//!
//! 1. [`mapping`]: which configured type a parent has. 2. [`capacity`]: how much of it. 3. [`pick`]: who serves a request.
//! 4. [`restore`]: what becomes of devices that are gone. 5. [`reconcile`]: where books, hardware and domains differ.

pub mod capacity;
pub mod changes;
pub mod handover;
pub mod held;
pub mod live;
pub mod mapping;
pub mod migrate;
pub mod pick;
pub mod reconcile;
pub mod restore;
pub mod traits;

#[cfg(test)]
mod tests;
