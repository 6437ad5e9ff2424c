//! The command line: commands, tables for people and JSON for scripts from one value, exit codes (rank 6).
//!
//! 1. What is printed as a table and what is printed as JSON is the same value ([`output`]); JSON keys are added, never
//!    renamed (`tests/cli`, golden files).
//! 2. A failure goes to standard error, as `mdevirtctl: <message>` or as `{error: {kind, message, details}}`, and the
//!    exit code is the kind's ([`FaultKind::exit_code`](crate::model::FaultKind::exit_code)); wrong usage is 2.
//! 3. Nothing from outside reaches a terminal with its control characters ([`table::printable`]).
//! 4. Whoever waits for a job listens before the job begins ([`session`]); nothing is polled.
//! 5. A reader that goes away ends the program quietly.
//! 6. Help, completions and manual pages come from the definitions in [`args`] alone.
//!
//! A new command is a variant in [`args`], an arm in [`run`], and a [`Show`](output::Show) if it has a new answer.

pub mod args;
pub mod books;
pub mod config;
mod doctor;
mod examples;
pub mod generate;
pub mod hardware;
pub mod input;
pub mod monitor;
pub mod operate;
mod operation_args;
pub mod output;
pub mod run;
pub mod session;
pub mod table;
mod traits;
mod travel;
mod upkeep;
mod verify;

pub use run::main;
