//! The search against a plain one that tries every assignment: the same requests are served, and by the rules.

use proptest::prelude::*;

use super::*;
use crate::model::{Group, Request};
use crate::plan::capacity::{Booked, ParentCapacity, capacity};
use crate::plan::pick::{Wishes, pick};

/// Two functions of card 08, two of card 09, one GPU of its own.
const PARENTS: [(&str, Option<&str>); 5] = [
    ("0000:08:00.4", Some("0000:08:00.0")),
    ("0000:08:00.5", Some("0000:08:00.0")),
    ("0000:09:00.4", Some("0000:09:00.0")),
    ("0000:09:00.5", Some("0000:09:00.0")),
    ("0000:0a:00.0", None),
];
const TRAITS: [&str; 3] = ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C"];

/// Room, traits as bits, several slices for one VM, node.
type Spec = (u32, u8, bool, Option<u32>);

fn spec() -> impl Strategy<Value = Spec> {
    (0u32..3, 0u8..8, any::<bool>(), prop::sample::select(&[None, Some(0), Some(1)][..]))
}

fn request() -> impl Strategy<Value = String> {
    let wish = prop::sample::select(
        &[
            "",
            "trait{}:CUSTOM_A=required,",
            "trait{}:CUSTOM_B=forbidden,",
            "required{}=in:CUSTOM_B,CUSTOM_C,",
            "required{}=in:CUSTOM_A,CUSTOM_B,trait{}:CUSTOM_C=forbidden,",
        ][..],
    );
    let group = (1u32..3, wish);
    let rest = prop::sample::select(
        &["", "group_policy=isolate,", "numa=required,", "group_policy=isolate,numa=required"][..],
    );
    (prop::collection::btree_map(0usize..4, group, 1..4), rest).prop_map(|(groups, rest)| {
        let text = groups.into_iter().map(|(nth, (count, wish))| {
            let suffix = ["", "1", "2", "3"][nth];
            format!("resources{suffix}:VGPU={count},{}", wish.replace("{}", suffix))
        });
        text.collect::<String>() + rest
    })
}

/// Each unit of the request: its group and how many slices it takes.
fn units(request: &Request) -> Vec<(&Group, u32)> {
    let mut units = Vec::new();
    for group in &request.groups {
        let (times, each) = if group.suffix.is_empty() { (group.count, 1) } else { (1, group.count) };
        units.extend((0..times).map(|_| (group, each)));
    }
    units
}

/// Whether these parents, one for each unit, may serve the request: the rules once more, as the documents say them.
fn allowed(request: &Request, caps: &[ParentCapacity<'_>], wishes: &Wishes, at: &[usize]) -> bool {
    let units = units(request);
    let pairs = || units.iter().zip(at);
    let suits = pairs().all(|((group, count), index)| {
        let cap = &caps[*index];
        let node =
            || cap.numa_node.is_some_and(|n| wishes.memory_nodes.as_ref().is_some_and(|m| m.contains(&n)));
        group.required.iter().all(|t| cap.traits.contains(t))
            && !group.forbidden.iter().any(|t| cap.traits.contains(t))
            && group.any_of.iter().all(|list| list.iter().any(|t| cap.traits.contains(t)))
            && (request.numa != crate::model::NumaPolicy::Required || node())
            && !(cap.one_per_vm() && (*count > 1 || wishes.cards.contains(&cap.assigned.parent.card())))
    });
    let room = (0..caps.len())
        .all(|i| pairs().filter(|(_, at)| **at == i).map(|((_, n), _)| n).sum::<u32>() <= caps[i].free);
    let apart = (0..at.len()).all(|i| {
        (0..i).all(|j| {
            let (a, b) = (&caps[at[i]], &caps[at[j]]);
            let one_card = a.assigned.parent.card() == b.assigned.parent.card();
            let (g, h) = (&units[i].0.suffix, &units[j].0.suffix);
            let isolated = request.isolate && !g.is_empty() && !h.is_empty() && g != h && at[i] == at[j];
            !(one_card && (a.one_per_vm() || b.one_per_vm())) && !isolated
        })
    });
    suits && room && apart
}

fn any_assignment(units: usize, parents: usize, good: impl Fn(&[usize]) -> bool) -> bool {
    let all = parents.pow(u32::try_from(units).unwrap());
    (0..all).any(|n| {
        let digits = (0..units).scan(n, |left, _| Some(std::mem::replace(left, *left / parents) % parents));
        good(&digits.collect::<Vec<_>>())
    })
}

fn built(specs: &[Spec]) -> (Config, HostScan) {
    let parents = PARENTS.iter().zip(specs).enumerate().map(|(nth, ((at, pf), spec))| Parent {
        numa_node: spec.3,
        ..parent(at, *pf, vec![mdev_type(&format!("nvidia-{nth}"), spec.0, 2048, 99)])
    });
    let rules = specs.iter().enumerate().map(|(nth, (_, bits, several, _))| EnabledType {
        traits: (0..3).filter(|bit| bits >> bit & 1 == 1).map(|bit| TRAITS[bit].parse().unwrap()).collect(),
        several_per_vm: Some(*several),
        ..rule(&format!("nvidia-{nth}"))
    });
    (config(rules.collect()), host(parents.collect(), vec![]))
}

proptest! {
    #[test]
    fn the_search_finds_what_there_is(
        specs in prop::collection::vec(spec(), PARENTS.len()),
        flavor in request(),
        named in prop::option::of(0..PARENTS.len()),
        depth in any::<bool>(),
    ) {
        let (config, scan) = built(&specs);
        let mapping = mapping(&config, &scan);
        let caps = capacity(&mapping, &scan, Booked::default());
        let wishes = Wishes {
            packing: if depth { Packing::Depth } else { Packing::Breadth },
            memory_nodes: Some([0].into()),
            cards: named.map(|i| caps[i].assigned.parent.card()).into_iter().collect(),
        };
        let request = Request::parse(&flavor).unwrap();
        let units = units(&request);
        let exists = any_assignment(units.len(), caps.len(), |at| allowed(&request, &caps, &wishes, at));
        match pick(&request, &caps, &mapping.without, &wishes) {
            Ok(choices) => {
                let index = |a: &ParentAddr| caps.iter().position(|c| c.assigned.parent.addr == *a).unwrap();
                let mut slices = choices.iter().map(|c| index(&c.parent));
                let at: Vec<usize> =
                    units.iter().map(|(_, n)| slices.nth(*n as usize - 1).unwrap()).collect();
                prop_assert_eq!(choices.len(), request.device_count() as usize);
                prop_assert!(allowed(&request, &caps, &wishes, &at), "{flavor}: {at:?}");
            }
            Err(refusal) => {
                prop_assert!(!exists, "{flavor}: {refusal:?}");
                prop_assert_eq!(refusal.reasons.len(), caps.len());
                prop_assert!(refusal.reasons.iter().all(|r| !r.reason.is_empty()), "{refusal:?}");
            }
        }
    }
}
