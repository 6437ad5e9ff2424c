//! Tests of the room as a whole.

mod begin;
mod damage;
mod disk;
pub(crate) mod fixture;
mod group;
mod journal;
mod meanings;
mod upgrade;
