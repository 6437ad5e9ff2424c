//! What is known of types on every host: their names, what they can do, what a vendor allows (rank 1).
//!
//! 1. Facts are rows of data files in this room; each row names its public source, and a test parses every row.
//! 2. Nothing here follows from a local type id, which means something else on the next host.
//! 3. What no row states is not claimed: no trait, no permission.

pub mod capability;
pub mod series;
pub mod type_name;
