//! The laws, each against a world that fails, forgets and crashes at every step.

mod crash;
mod doubt;
mod failure;
mod house;
mod journal;
mod kill;
mod plan;
mod points;
mod random;
mod world;
