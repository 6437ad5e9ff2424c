//! The use cases (rank 4).
pub mod api;
