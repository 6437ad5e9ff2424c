//! Tests of the room as a whole.

pub(crate) mod fixture;
