//! (room head)
