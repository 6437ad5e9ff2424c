//! Pure decisions with reasons (rank 1).
pub mod mapping;
