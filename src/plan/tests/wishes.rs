//! What is asked for beside class and number: traits, nodes, groups, cards that the VM has already.

use super::pick::{parents, two_cards};
use super::*;
use crate::model::{FaultKind, Request};
use crate::plan::capacity::{Booked, ParentCapacity, capacity};
use crate::plan::pick::{Choice, Refusal, Wishes, pick};

const FIRST: &str = "0000:3b:00.0";
const SECOND: &str = "0000:86:00.0";
const THIRD: &str = "0000:af:00.0";

/// Three T4 of types of their own: gold and ssd on the first, gold on the second, silver on the third.
struct Host {
    config: Config,
    scan: HostScan,
}

impl Host {
    fn new() -> Self {
        let card = |at, id: &str| parent(at, None, vec![mdev_type(id, 8, 2048, 8)]);
        let scan =
            host(vec![card(FIRST, "nvidia-1"), card(SECOND, "nvidia-2"), card(THIRD, "nvidia-3")], vec![]);
        let rule = |id, traits: &[&str]| EnabledType {
            traits: traits.iter().map(|t| t.parse().unwrap()).collect(),
            several_per_vm: Some(true),
            ..rule(id)
        };
        let rules = vec![
            rule("nvidia-1", &["CUSTOM_GOLD", "CUSTOM_SSD"]),
            rule("nvidia-2", &["CUSTOM_GOLD"]),
            rule("nvidia-3", &["CUSTOM_SILVER"]),
        ];
        Self { config: config(rules), scan }
    }

    fn on_nodes(mut self, nodes: [Option<u32>; 3]) -> Self {
        for (parent, node) in self.scan.parents.iter_mut().zip(nodes) {
            parent.numa_node = node;
        }
        self
    }

    fn several_per_vm(mut self, several: bool) -> Self {
        self.config.enabled.iter_mut().for_each(|rule| rule.several_per_vm = Some(several));
        self
    }

    fn ask(&self, flavor: &str, wishes: &Wishes) -> Result<Vec<Choice>, Refusal> {
        self.ask_changed(flavor, wishes, |_| {})
    }

    fn ask_changed(
        &self,
        flavor: &str,
        wishes: &Wishes,
        change: impl Fn(&mut ParentCapacity<'_>),
    ) -> Result<Vec<Choice>, Refusal> {
        let mapping = mapping(&self.config, &self.scan);
        let mut caps = capacity(&mapping, &self.scan, Booked::default());
        caps.iter_mut().for_each(change);
        pick(&Request::parse(flavor).unwrap(), &caps, &mapping.without, wishes)
    }
}

fn any() -> Wishes {
    Wishes::default()
}

fn memory_on(nodes: &[u32]) -> Wishes {
    Wishes { memory_nodes: Some(nodes.iter().copied().collect()), ..Wishes::default() }
}

fn reasons(refusal: &Refusal) -> Vec<String> {
    refusal.reasons.iter().map(|r| format!("{} {}", r.parent, r.reason)).collect()
}

#[test]
fn one_trait_of_a_list_is_enough() {
    let host = Host::new();
    let choices = host.ask("resources:VGPU=1,required=in:CUSTOM_SILVER,CUSTOM_PLATINUM", &any()).unwrap();
    assert_eq!(parents(&choices), [THIRD]);
    // The claim says by which trait it was served.
    assert_eq!(choices[0].required, ["CUSTOM_SILVER".parse().unwrap()].into());
    let both = "resources:VGPU=1,required=in:CUSTOM_GOLD,CUSTOM_SILVER,required=in:CUSTOM_SSD,CUSTOM_X";
    assert_eq!(parents(&host.ask(both, &any()).unwrap()), [FIRST]);
    let not_first = "resources:VGPU=1,required=in:CUSTOM_GOLD,CUSTOM_SILVER,required=!CUSTOM_SSD";
    assert_eq!(parents(&host.ask(not_first, &any()).unwrap()), [SECOND]);
}

#[test]
fn refusals_name_the_trait_for_each_parent() {
    let host = Host::new();
    let unmapped = host.ask("resources:VGPU=1,required=in:CUSTOM_X,CUSTOM_Y", &any()).unwrap_err();
    assert_eq!(unmapped.kind, FaultKind::TraitUnmapped);
    assert_eq!(unmapped.message, "no configured type on this host has any of the traits CUSTOM_X, CUSTOM_Y");
    let flavor = "resources:VGPU=1,trait:CUSTOM_GOLD=required,required=in:CUSTOM_SSD,CUSTOM_X,trait:CUSTOM_SSD=forbidden";
    let none = host.ask(flavor, &any()).unwrap_err();
    assert_eq!(none.kind, FaultKind::TypeUnavailable);
    assert_eq!(
        none.message,
        "no parent on this host is what the unnumbered group asks for: VGPU, trait CUSTOM_GOLD, \
         one of CUSTOM_SSD, CUSTOM_X, not CUSTOM_SSD"
    );
    assert_eq!(
        reasons(&none),
        [
            "0000:3b:00.0 NVIDIA nvidia-1 has the forbidden trait CUSTOM_SSD",
            "0000:86:00.0 NVIDIA nvidia-2 has none of the traits CUSTOM_SSD, CUSTOM_X",
            "0000:af:00.0 NVIDIA nvidia-3 does not have trait CUSTOM_GOLD",
        ]
    );
}

#[test]
fn reasons_say_which_group_they_are_about() {
    let flavor = "resources1:VGPU=1,resources2:VGPU=9,trait2:CUSTOM_SILVER=required";
    let refusal = Host::new().ask(flavor, &any()).unwrap_err();
    assert_eq!(refusal.kind, FaultKind::NoCapacity);
    assert_eq!(
        reasons(&refusal),
        [
            "0000:3b:00.0 group 2: NVIDIA nvidia-1 does not have trait CUSTOM_SILVER",
            "0000:86:00.0 group 2: NVIDIA nvidia-2 does not have trait CUSTOM_SILVER",
            "0000:af:00.0 group 2: only 8 free",
        ]
    );
}

#[test]
fn traits_may_come_from_elsewhere() {
    let host = Host::new();
    let platinum = "resources:VGPU=1,trait:CUSTOM_PLATINUM=required";
    let add = |cap: &mut ParentCapacity<'_>| {
        if cap.assigned.parent.addr == addr(SECOND) {
            cap.traits.insert("CUSTOM_PLATINUM".parse().unwrap());
        }
    };
    assert_eq!(host.ask(platinum, &any()).unwrap_err().kind, FaultKind::TraitUnmapped);
    assert_eq!(parents(&host.ask_changed(platinum, &any(), add).unwrap()), [SECOND]);
    let not_platinum = "resources:VGPU=1,required=CUSTOM_GOLD,!CUSTOM_PLATINUM,!CUSTOM_SSD";
    assert_eq!(parents(&host.ask(not_platinum, &any()).unwrap()), [SECOND]);
    let refusal = host.ask_changed(not_platinum, &any(), add).unwrap_err();
    assert!(refusal.reasons[1].reason.contains("forbidden trait CUSTOM_PLATINUM"), "{refusal:?}");
    let (config, scan) = (&host.config, &host.scan);
    let mapping = mapping(config, scan);
    let mut caps = capacity(&mapping, scan, Booked::default());
    caps.iter_mut().for_each(add);
    let record = caps[1].record("h1").unwrap();
    assert_eq!(record.traits, ["CUSTOM_GOLD".parse().unwrap(), "CUSTOM_PLATINUM".parse().unwrap()].into());
}

#[test]
fn a_quarantined_parent_is_counted_and_gives_nothing() {
    let host = Host::new();
    let mapping = mapping(&host.config, &host.scan);
    let mut caps = capacity(&mapping, &host.scan, Booked::default());
    caps[0].quarantine(FaultKind::TraitDrift, "its type changed");
    let record = caps[0].record("h1").unwrap();
    assert_eq!((record.total, record.reserved, caps[0].free), (8, 8, 0));
    assert_eq!(caps[0].reason, "its type changed");
}

#[test]
fn a_trait_in_quarantine_everywhere_has_its_own_refusal() {
    let host = Host::new();
    let gold = "resources:VGPU=1,trait:CUSTOM_GOLD=required";
    let only = |at: &'static [&'static str]| {
        move |cap: &mut ParentCapacity<'_>| {
            if at.contains(&cap.assigned.parent.addr.to_string().as_str()) {
                cap.quarantine(FaultKind::TraitDrift, "its type is another now; accept it");
            }
        }
    };
    assert_eq!(parents(&host.ask_changed(gold, &any(), only(&[FIRST])).unwrap()), [SECOND]);
    let drift = host.ask_changed(gold, &any(), only(&[FIRST, SECOND])).unwrap_err();
    assert_eq!(drift.kind, FaultKind::TraitDrift);
    assert_eq!(
        drift.message,
        "every parent that has trait CUSTOM_GOLD is in quarantine; 0000:3b:00.0: its type is another now; accept it"
    );
    assert_eq!(drift.reasons[1].reason, "its type is another now; accept it");
    assert!(drift.reasons[2].reason.contains("does not have trait CUSTOM_GOLD"));
    let list = "resources:VGPU=1,required=in:CUSTOM_GOLD,CUSTOM_SSD";
    let drift = host.ask_changed(list, &any(), only(&[FIRST, SECOND])).unwrap_err();
    assert_eq!(drift.kind, FaultKind::TraitDrift);
    let many = "resources1:VGPU=9,trait1:CUSTOM_GOLD=required";
    let full = host.ask_changed(many, &any(), only(&[FIRST])).unwrap_err();
    assert_eq!(full.kind, FaultKind::NoCapacity);
}

#[test]
fn the_nodes_of_the_memory_come_first() {
    let host = Host::new().on_nodes([Some(0), None, Some(1)]);
    let one = |flavor: &str, wishes: &Wishes| parents(&host.ask(flavor, wishes).unwrap());
    assert_eq!(one("resources:VGPU=1", &any()), [FIRST]);
    assert_eq!(one("resources:VGPU=1", &memory_on(&[1])), [THIRD]);
    assert_eq!(one("resources:VGPU=1,numa=ignore", &memory_on(&[1])), [FIRST]);
    assert_eq!(one("resources:VGPU=1,numa=required", &memory_on(&[1])), [THIRD]);
    // An unknown node is nearer than a wrong one.
    assert_eq!(one("resources:VGPU=1,trait:CUSTOM_GOLD=required", &memory_on(&[1])), [SECOND]);
    // Preferred is no more than that.
    assert_eq!(one("resources1:VGPU=8,trait1:CUSTOM_SSD=required", &memory_on(&[1])), [FIRST; 8]);
    assert_eq!(one("resources:VGPU=9", &memory_on(&[1])), [[THIRD; 8].as_slice(), &[SECOND]].concat());
}

#[test]
fn packing_orders_within_the_nodes() {
    let mut scan = two_cards([3, 6]);
    scan.parents.iter_mut().for_each(|p| p.numa_node = Some(1));
    let far = parent("0000:af:00.0", None, vec![mdev_type("nvidia-231", 8, 2048, 8)]);
    scan.parents.push(Parent { numa_node: Some(0), ..far });
    let host = Host { config: config(vec![rule("nvidia-231")]), scan };
    for (packing, want) in [(Packing::Breadth, SECOND), (Packing::Depth, FIRST)] {
        let wishes = Wishes { packing, ..memory_on(&[1, 2]) };
        assert_eq!(parents(&host.ask("resources:VGPU=1", &wishes).unwrap()), [want], "{packing}");
    }
}

#[test]
fn required_nodes_are_kept_to_and_named() {
    let host = Host::new().on_nodes([Some(0), None, Some(1)]);
    let refusal = host.ask("resources:VGPU=1,numa=required", &memory_on(&[2, 3, 5])).unwrap_err();
    assert_eq!(refusal.kind, FaultKind::NoCapacity);
    assert!(refusal.message.contains("numa=required"), "{}", refusal.message);
    assert_eq!(
        reasons(&refusal),
        [
            "0000:3b:00.0 it is on NUMA node 0, and numa=required: the VM's memory is on nodes 2-3,5",
            "0000:86:00.0 its NUMA node is not known, and numa=required: the VM's memory is on nodes 2-3,5",
            "0000:af:00.0 it is on NUMA node 1, and numa=required: the VM's memory is on nodes 2-3,5",
        ]
    );
    let blind = host.ask("resources:VGPU=1,numa=required", &any()).unwrap_err();
    assert_eq!(blind.kind, FaultKind::InvalidRequest);
    assert!(blind.message.contains("<numatune>") && blind.reasons.len() == 3, "{blind:?}");
}

#[test]
fn a_function_without_a_node_is_where_its_card_is() {
    let mut pf = parent("0000:08:00.0", None, vec![]);
    (pf.framework, pf.numa_node) = (None, Some(1));
    let vf = |at, node| Parent {
        numa_node: node,
        ..parent(at, Some("0000:08:00.0"), vec![mdev_type("nvidia-7", 1, 4096, 4)])
    };
    let scan = host(vec![pf, vf("0000:08:00.4", None), vf("0000:08:00.5", Some(0))], vec![]);
    let config = config(vec![rule("nvidia-7")]);
    let mapping = mapping(&config, &scan);
    let caps = capacity(&mapping, &scan, Booked::default());
    assert_eq!(caps.iter().map(|c| c.numa_node).collect::<Vec<_>>(), [Some(1), Some(0)]);
}

#[test]
fn a_card_that_the_xml_names_serves_no_second_slice() {
    let named = |at: &str| Wishes { cards: [addr(at)].into(), ..Wishes::default() };
    let host = Host::new().several_per_vm(false);
    assert_eq!(parents(&host.ask("resources:VGPU=1", &named(FIRST)).unwrap()), [SECOND]);
    let refusal = host.ask("resources:VGPU=1,trait:CUSTOM_SSD=required", &named(FIRST)).unwrap_err();
    assert_eq!(refusal.kind, FaultKind::NoCapacity);
    assert!(refusal.reasons[0].reason.contains("XML names a device of card 0000:3b:00.0"), "{refusal:?}");
    let host = host.several_per_vm(true);
    assert_eq!(parents(&host.ask("resources:VGPU=1", &named(FIRST)).unwrap()), [FIRST]);
}

#[test]
fn isolate_parts_numbered_groups_only() {
    let host = Host::new();
    let pick = |flavor: &str| parents(&host.ask(flavor, &any()).unwrap());
    let flavor = "resources:VGPU=1,resources1:VGPU=1,resources2:VGPU=1,group_policy";
    assert_eq!(pick(&format!("{flavor}=none")), [FIRST; 3]);
    assert_eq!(pick(&format!("{flavor}=isolate")), [FIRST, FIRST, SECOND]);
    // Isolation, lists and nodes together.
    let host = Host::new().on_nodes([Some(0), Some(1), Some(1)]);
    let flavor = "resources1:VGPU=1,required1=in:CUSTOM_GOLD,CUSTOM_SILVER,resources2:VGPU=1,\
                  required2=in:CUSTOM_GOLD,CUSTOM_X,group_policy=isolate,numa=required";
    assert_eq!(parents(&host.ask(flavor, &memory_on(&[1])).unwrap()), [THIRD, SECOND]);
    let refusal = host.ask(flavor, &memory_on(&[0])).unwrap_err();
    assert_eq!(refusal.kind, FaultKind::NoCapacity);
}

#[test]
fn a_numbered_group_has_one_parent() {
    let mut host = Host::new();
    host.config.enabled[1].class = "CUSTOM_B".parse().unwrap();
    let spread = "resources:VGPU=1,resources:CUSTOM_B=1";
    assert_eq!(parents(&host.ask(spread, &any()).unwrap()), [SECOND, FIRST]);
    let refusal = host.ask("resources1:VGPU=1,resources1:CUSTOM_B=1", &any()).unwrap_err();
    assert_eq!(refusal.kind, FaultKind::TypeUnavailable);
    assert!(refusal.message.contains("use two groups"), "{}", refusal.message);
}

/// The bound on a search holds for the widest host: 16 cards of 24 VFs, one slice of a card for a VM.
#[test]
fn a_wide_host_is_searched_in_bounds() {
    let vf = |n: u8| {
        let (card, function) = (n / 24, n % 24);
        let at = format!("0000:{card:02x}:{:02x}.{}", 1 + function / 8, function % 8);
        parent(&at, Some(&format!("0000:{card:02x}:00.0")), vec![mdev_type("nvidia-7", 1, 2048, 24)])
    };
    let scan = host((0..=239).map(vf).collect(), vec![]);
    let host = Host { config: config(vec![rule("nvidia-7")]), scan };
    let ten = (1..=10).map(|n| format!("resources{n}:VGPU=1")).collect::<Vec<_>>().join(",");
    let choices = host.ask(&format!("{ten},group_policy=isolate"), &any()).unwrap();
    assert_eq!(choices.len(), 10);
    let refusal = host.ask(&format!("{ten},resources11:VGPU=1"), &any()).unwrap_err();
    assert_eq!((refusal.kind, refusal.reasons.len()), (FaultKind::NoCapacity, 240));
}
