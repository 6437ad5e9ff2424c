//! Why a parent that fits cannot take one part more. Kept as words until somebody is told: the search asks very often.

use crate::plan::capacity::ParentCapacity;

use super::search::{Place, Unit};

/// What stands in the way.
#[derive(Debug, Clone, Copy)]
pub(super) enum Obstacle<'a> {
    /// Too little room.
    Full,
    /// Several slices of it for one VM.
    OnePerVm,
    /// The VM's XML names a device of its card.
    CardIsNamed,
    /// Its card serves the VM.
    CardServes,
    /// Its card serves the VM with slices of another size.
    OtherSize,
    /// Another parent serves this group.
    GroupElsewhere(&'a str),
    /// Another numbered group is here.
    Isolated,
}

impl Obstacle<'_> {
    /// The same for people.
    pub(super) fn text(self, cap: &ParentCapacity<'_>) -> String {
        let card = cap.assigned.parent.card();
        let one = cap.one_per_vm_reason.as_deref().unwrap_or("so it is with another slice of this card");
        match self {
            Self::Full if cap.free == 0 => cap.reason.clone(),
            Self::Full => format!("only {} free", cap.free),
            Self::OnePerVm => format!("one slice per VM: {one}"),
            Self::CardIsNamed => {
                format!("the domain's XML names a device of card {card} already, one slice per VM: {one}")
            }
            Self::CardServes => {
                format!("card {card} already serves this VM, one slice per VM: {one}")
            }
            Self::OtherSize => format!("card {card} holds one size of slices only"),
            Self::GroupElsewhere(suffix) => {
                format!("group {suffix} comes from one parent, and another one serves it")
            }
            Self::Isolated => "group_policy=isolate: another group has this parent".to_owned(),
        }
    }
}

/// Why a unit cannot go to its place if another one has gone to another place.
///
/// # Source
/// OpenStack Placement, "Granular resource requests": `group_policy=isolate` parts the numbered groups; the unnumbered
/// one may share a provider with any of them.
pub(super) fn conflict<'a>(
    this: (&Unit<'a>, &Place<'_>),
    that: (&Unit<'a>, &Place<'_>),
) -> Option<Obstacle<'a>> {
    let ((unit, place), (other, there)) = (this, that);
    if there.card == place.card {
        if place.one_per_vm || there.one_per_vm {
            return Some(Obstacle::CardServes);
        }
        let size = |p: &Place<'_>| p.cap.assigned.mdev_type.facts.framebuffer_mib;
        if place.cap.assigned.parent.one_size_per_card() && size(place) != size(there) {
            return Some(Obstacle::OtherSize);
        }
    }
    let (mine, theirs) = (&unit.group.suffix, &other.group.suffix);
    if mine.is_empty() || theirs.is_empty() {
        return None;
    }
    match (mine == theirs, place.index == there.index) {
        (true, false) => Some(Obstacle::GroupElsewhere(mine)),
        (false, true) if unit.isolate => Some(Obstacle::Isolated),
        (true, true) | (false, _) => None,
    }
}
