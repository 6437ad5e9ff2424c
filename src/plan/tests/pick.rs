use super::*;
use crate::model::{FaultKind, Request};
use crate::plan::capacity::{Booked, capacity};
use crate::plan::pick::{Choice, Refusal, Wishes, pick};

/// Two T4, eight 2 GiB slices each; `free` of them on either.
pub(super) fn two_cards(free: [u32; 2]) -> HostScan {
    let t4 = |at, available| parent(at, None, vec![mdev_type("nvidia-231", available, 2048, 8)]);
    let fill = |at: &'static str, base: u128, free: u32| {
        (0..u128::from(8 - free)).map(move |n| mdev(base + n, at, "nvidia-231"))
    };
    let mdevs = fill("0000:3b:00.0", 100, free[0]).chain(fill("0000:86:00.0", 200, free[1])).collect();
    host(vec![t4("0000:3b:00.0", free[0]), t4("0000:86:00.0", free[1])], mdevs)
}

fn ask(flavor: &str, scan: &HostScan, rule: EnabledType, packing: Packing) -> Result<Vec<Choice>, Refusal> {
    let config = config(vec![rule]);
    let mapping = mapping(&config, scan);
    let caps = capacity(&mapping, scan, Booked::default());
    let wishes = Wishes { packing, ..Wishes::default() };
    pick(&Request::parse(flavor).unwrap(), &caps, &mapping.without, &wishes)
}

pub(super) fn parents(choices: &[Choice]) -> Vec<String> {
    choices.iter().map(|c| c.parent.to_string()).collect()
}

#[test]
fn breadth_takes_the_emptiest_card_depth_the_fullest() {
    let scan = two_cards([3, 6]);
    let one = |packing| parents(&ask("resources:VGPU=1", &scan, rule("nvidia-231"), packing).unwrap());
    assert_eq!(one(Packing::Breadth), ["0000:86:00.0"]);
    assert_eq!(one(Packing::Depth), ["0000:3b:00.0"]);
    let even = two_cards([8, 8]);
    assert_eq!(
        parents(&ask("resources:VGPU=1", &even, rule("nvidia-231"), Packing::Breadth).unwrap()),
        ["0000:3b:00.0"]
    );
}

#[test]
fn one_slice_of_a_card_for_one_vm_unless_the_vendor_allows_more() {
    let scan = two_cards([8, 8]);
    let two = ask("resources:VGPU=2", &scan, rule("nvidia-231"), Packing::Breadth).unwrap();
    assert_eq!(parents(&two), ["0000:3b:00.0", "0000:86:00.0"]);
    let refusal = ask("resources:VGPU=3", &scan, rule("nvidia-231"), Packing::Breadth).unwrap_err();
    assert_eq!(refusal.kind, FaultKind::NoCapacity);
    assert_eq!(refusal.reasons.len(), 2);
    assert!(refusal.reasons.iter().all(|r| r.reason.contains("one slice only")), "{refusal:?}");
    let mut several = rule("nvidia-231");
    several.several_per_vm = Some(true);
    let three = ask("resources1:VGPU=3", &scan, several, Packing::Breadth).unwrap();
    assert_eq!(parents(&three), ["0000:3b:00.0"; 3]);
}

#[test]
fn isolate_forces_different_parents() {
    let scan = two_cards([8, 8]);
    let mut several = rule("nvidia-231");
    several.several_per_vm = Some(true);
    let flavor = "resources1:VGPU=1,resources2:VGPU=1";
    let together = ask(flavor, &scan, several.clone(), Packing::Breadth).unwrap();
    assert_eq!(parents(&together), ["0000:3b:00.0", "0000:3b:00.0"]);
    let apart = ask(&format!("{flavor},group_policy=isolate"), &scan, several, Packing::Breadth).unwrap();
    assert_eq!(parents(&apart), ["0000:3b:00.0", "0000:86:00.0"]);
}

#[test]
fn refusals_have_a_kind_and_a_reason_for_each_parent() {
    let scan = two_cards([0, 0]);
    let kind = |flavor: &str| ask(flavor, &scan, rule("nvidia-231"), Packing::Breadth).unwrap_err();
    let full = kind("resources:VGPU=1");
    assert_eq!(full.kind, FaultKind::NoCapacity);
    assert!(full.reasons[0].reason.contains("8 reserved (8 foreign)"), "{full:?}");
    assert_eq!(kind("resources:CUSTOM_X=1").kind, FaultKind::TypeUnavailable);
    let unmapped = kind("resources:VGPU=1,trait:CUSTOM_GOLD=required");
    assert_eq!(unmapped.kind, FaultKind::TraitUnmapped);
    assert!(unmapped.message.contains("CUSTOM_GOLD"));
}

#[test]
fn a_second_group_can_push_the_first_elsewhere() {
    // Group 1 fits both cards, group 2 only the first by its class: the search must give the first card up again.
    let t4 = |at, id: &str| parent(at, None, vec![mdev_type(id, 8, 2048, 8)]);
    let scan = host(vec![t4("0000:3b:00.0", "nvidia-1"), t4("0000:86:00.0", "nvidia-2")], vec![]);
    let (mut a, mut b) = (rule("nvidia-1"), rule("nvidia-2"));
    a.traits = ["CUSTOM_A".parse().unwrap(), "CUSTOM_BOTH".parse().unwrap()].into();
    b.traits = ["CUSTOM_BOTH".parse().unwrap()].into();
    let config = config(vec![a, b]);
    let mapping = mapping(&config, &scan);
    let caps = capacity(&mapping, &scan, Booked::default());
    let request = Request::parse(
        "resources1:VGPU=1,trait1:CUSTOM_BOTH=required,resources2:VGPU=1,trait2:CUSTOM_A=required",
    )
    .unwrap();
    let choices = pick(&request, &caps, &mapping.without, &Wishes::default()).unwrap();
    assert_eq!(parents(&choices), ["0000:86:00.0", "0000:3b:00.0"]);
}

#[test]
fn a_hopeless_request_ends_soon() {
    let scan = two_cards([8, 8]);
    let refusal = ask("resources:VGPU=64", &scan, rule("nvidia-231"), Packing::Depth).unwrap_err();
    assert_eq!(refusal.kind, FaultKind::NoCapacity);
}
