//! Sagas: operations as lists of steps that survive a crash at any instant (rank 2: knows store and model, never host).
//!
//! 1. `Started` is committed before the effect.
//! 2. Claim rows change in the same transaction as the step's `Done` or `Undone`.
//! 3. A step may run twice, an undo may run twice.
//! 4. After a crash [`Step::seen`] is asked before anything is done or undone. What cannot be found out is waited for,
//!    never guessed.
//! 5. Each script names its point of no return. Before it, a failure unwinds newest first and collects every undo that
//!    fails; after it there is only forward, or stuck for the operator.
//!
//! `tests/` holds each law against a world that fails, forgets and crashes at every step.
//!
//! ```text
//! begin            done+started      done+started         done
//!   | running ----------> running ----------> running ------> Done       n steps, n + 1 commits
//!   |                        | failed+undo-started
//!   |                        v        undone+undo-started      undone
//!   |                    unwinding ----------> unwinding ------> Failed, or Stuck if an undo failed
//!   |                        | failed, past the point of no return
//!   |                        v
//!   +- the journal        Stuck
//!      cannot be followed --^
//! ```
//! Shutdown is a crash with manners: the runner stops between two steps and leaves the saga open, as it does when the
//! store cannot write. [`Runner::resume`] is the way on from both, and from a crash.
//! Not taken: an executor crate with a graph of steps; it could not put claim rows and journal into one transaction.

mod failpoint;
mod forward;
mod observer;
mod recover;
mod runner;
mod script;
mod signal;
mod step;
mod unwind;
mod walk;

#[cfg(test)]
mod tests;

pub use failpoint::{Action, FailPoints, Moment};
pub use observer::{Observer, Progress};
pub use recover::{Plan, Recovery, plan};
pub use runner::{Ending, Interrupted, Runner};
pub use script::{ResultOf, Script};
pub use signal::{Stop, Wake};
pub use step::{Part, Seen, Step, StepError};
