//! Which parent serves each slice of a request, or why none does.
//!
//! 1. A numbered group comes from one parent; the slices of the unnumbered one may be spread.
//! 2. Two slices of one VM never share a card where the vendor refuses it, whatever the groups say; a slice that the
//!    domain's XML names already counts.
//! 3. A refusal has one reason per parent of the host.
//! 4. Parents on the NUMA nodes of the VM's memory come first, each kind in the order of the packing.
//!
//! | file | owns |
//! |---|---|
//! | `fit` | class and traits: what no room can mend |
//! | `numa` | nodes of devices and of memory |
//! | `search`, `obstacle` | all parts of the request together |
//! | `refusal` | what is said when nothing fits |

mod fit;
mod numa;
mod obstacle;
mod refusal;
mod search;

use std::collections::{BTreeMap, BTreeSet};

use super::capacity::ParentCapacity;
use crate::config::Packing;
use crate::model::{DeviceApi, Group, MdevUuid, ParentAddr, Request, ResourceClass, TraitName, TypeId};

use search::Search;

pub use refusal::{ParentReason, Refusal};

/// One slice of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Suffix of the group it serves.
    pub group: String,
    /// Where.
    pub parent: ParentAddr,
    /// Local type id there.
    pub type_id: TypeId,
    /// Vendor name, else the id.
    pub type_name: String,
    /// What it is to the guest.
    pub device_api: DeviceApi,
    /// Class it is asked for as.
    pub class: ResourceClass,
    /// Traits it was chosen for: all that were required, and of each list the first that the parent has.
    pub required: BTreeSet<TraitName>,
    /// An idle device of ours to take instead of a new one.
    pub reuse: Option<MdevUuid>,
}

/// What bears on the choice beside the request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Which card is filled first.
    pub packing: Packing,
    /// NUMA nodes of the VM's memory; `None` if it is not pinned or the domain is not known.
    pub memory_nodes: Option<BTreeSet<u32>>,
    /// Cards of which the VM has a device already, by its XML.
    pub cards: BTreeSet<ParentAddr>,
}

/// Chooses a parent for every slice.
///
/// `without` are the parents that have no type, with their reasons; they only appear in a refusal.
///
/// # Errors
/// A [`Refusal`] that names, for each parent, why it does not fit.
pub fn pick(
    request: &Request,
    parents: &[ParentCapacity<'_>],
    without: &BTreeMap<&ParentAddr, String>,
    wishes: &Wishes,
) -> Result<Vec<Choice>, Refusal> {
    let mut search = Search::new(request, parents, wishes);
    if search.place_all() {
        return Ok(search.choices());
    }
    Err(refusal::refuse(&search, without))
}

fn choice(group: &Group, cap: &ParentCapacity<'_>, nth: usize) -> Choice {
    let (parent, mdev_type) = (cap.assigned.parent, cap.assigned.mdev_type);
    let by_lists = group.any_of.iter().filter_map(|list| list.intersection(&cap.traits).next());
    Choice {
        group: group.suffix.clone(),
        parent: parent.addr.clone(),
        type_id: mdev_type.id.clone(),
        type_name: mdev_type.label().to_owned(),
        device_api: mdev_type.device_api,
        class: group.class.clone(),
        required: group.required.iter().chain(by_lists).cloned().collect(),
        reuse: cap.idle.get(nth).copied(),
    }
}
