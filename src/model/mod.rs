//! Pure values: no I/O, no async, no clock, no randomness (rank 0).
//!
//! 1. A value that exists is valid: parsing is the only way in, and it names what it refuses.
//! 2. States are enums with one table of legal moves each ([`claim`], [`journal`]).
//! 3. Time and new ids come from outside, through [`Clock`] and [`Ids`].

pub mod address;
pub mod claim;
pub mod fault;
pub mod hostdev;
pub mod id;
pub mod identity;
pub mod inventory;
pub mod job;
pub mod journal;
pub mod mdev_type;
pub mod meaning;
pub mod movement;
pub mod parent;
pub(crate) mod pci_id;
pub mod request;
pub mod version;
pub mod vocab;

pub use address::{NodeName, ParentAddr, PciAddress};
pub use claim::{Claim, ClaimEvent, ClaimRole, ClaimState, ClaimView, DomainOwner, Instance, OwnDevice};
pub use fault::{Fault, FaultKind};
pub use hostdev::{DisplayWish, Hostdev};
pub use id::{ClaimId, Clock, Ids, InstanceUuid, InvalidName, JobId, MdevUuid, Usec};
pub use identity::TypeIdentity;
pub use inventory::InventoryRecord;
pub use job::Job;
pub use journal::{OpKind, SagaEventRow, SagaRow, SagaState, StepEvent, StepStatus};
pub use mdev_type::{DeviceApi, Framework, MdevType, TypeFacts, TypeId};
pub use meaning::{Lesson, Meaning, NewShift, Shift, ShiftKind, Word, WordKind};
pub use movement::{Baggage, Move, MoveKind, MovePhase};
pub use parent::{Finding, FindingKind, HostScan, Mdev, NewMdev, Parent};
pub use request::{FromSpecs, Group, NumaPolicy, Request};
pub use version::{Version, Versions};
pub use vocab::{ResourceClass, TraitName};
