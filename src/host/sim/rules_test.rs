//! Tables from listings of real cards: M60, A2, A40 before and after a create, P40 with slices of others, mtty's ports.

use super::super::types::add_facts;
use super::*;
use crate::model::{DeviceApi, Framework, MdevUuid, TypeFacts};

/// A parent `ADDR`, a VF if `pf` is given, that offers `(id, name, available)`.
fn parent(addr: &str, pf: Option<&str>, vendor: Option<u16>, offer: &[(&str, &str, u32)]) -> Parent {
    let types = offer.iter().map(|(id, name, available)| MdevType {
        id: id.parse().unwrap(),
        name: Some((*name).to_owned()),
        device_api: DeviceApi::VfioPci,
        available_instances: *available,
        facts: TypeFacts::default(),
    });
    let mut parent = Parent {
        addr: addr.parse().unwrap(),
        framework: Some(Framework::Mdev),
        physical_function: pf.map(|a| a.parse().unwrap()),
        vendor_id: vendor,
        device_id: None,
        product: None,
        numa_node: None,
        iommu_group: None,
        driver: None,
        types: types.collect(),
    };
    add_facts(&mut parent);
    parent
}

fn device(n: u128, parent: &str, type_id: &str) -> Mdev {
    Mdev {
        uuid: MdevUuid(uuid::Uuid::from_u128(n)),
        parent: parent.parse().unwrap(),
        type_id: Some(type_id.parse().unwrap()),
        active: true,
        defined: true,
        parent_missing: false,
        iommu_group: None,
    }
}

fn left(card: &[Parent], addr: &str, id: &str) -> u32 {
    let parent = card.iter().find(|p| p.addr == addr.parse().unwrap()).unwrap();
    parent.mdev_type(&id.parse().unwrap()).unwrap().available_instances
}

fn offered(card: &[Parent], file: &[Mdev], now: &[Mdev]) -> Vec<Parent> {
    let mut card = card.to_vec();
    offer(&mut card, file, now);
    card
}

const NVIDIA: Option<u16> = Some(0x10de);

#[test]
fn an_m60_gpu_holds_one_size() {
    let types = [
        ("nvidia-15", "GRID M60-1Q", 8),
        ("nvidia-17", "GRID M60-2B", 4),
        ("nvidia-18", "GRID M60-2Q", 4),
        ("nvidia-22", "GRID M60-8Q", 1),
    ];
    let card = [parent("0000:84:00.0", None, NVIDIA, &types)];
    let at = "0000:84:00.0";
    assert_eq!(offered(&card, &[], &[]), card);
    let one = offered(&card, &[], &[device(1, at, "nvidia-18")]);
    assert_eq!(
        ["nvidia-15", "nvidia-17", "nvidia-18", "nvidia-22"].map(|id| left(&one, at, id)),
        [0, 3, 3, 0]
    );
    let four: Vec<Mdev> =
        [18, 17, 18, 18].iter().zip(1..).map(|(t, n)| device(n, at, &format!("nvidia-{t}"))).collect();
    assert_eq!(left(&offered(&card, &[], &four), at, "nvidia-18"), 0);
    // Another GPU of the same board is another card.
    assert_eq!(offered(&card, &[], &[device(1, "0000:85:00.0", "nvidia-18")]), card);
}

#[test]
fn an_a2_holds_four_of_4q_on_sixteen_vfs() {
    let types = [
        ("nvidia-744", "NVIDIA A2-1Q", 1),
        ("nvidia-746", "NVIDIA A2-4Q", 1),
        ("nvidia-751", "NVIDIA A2-4A", 1),
    ];
    let vfs: Vec<String> = (4..20).map(|n| format!("0000:08:{:02x}.{}", n / 8, n % 8)).collect();
    let card: Vec<Parent> = vfs.iter().map(|vf| parent(vf, Some("0000:08:00.0"), NVIDIA, &types)).collect();
    let mut made = Vec::new();
    for (n, vf) in vfs.iter().take(4).enumerate() {
        assert_eq!(left(&offered(&card, &[], &made), vf, "nvidia-746"), 1, "{n} made");
        made.push(device(n as u128, vf, "nvidia-746"));
        let after = offered(&card, &[], &made);
        assert_eq!([744, 746, 751].map(|t| left(&after, vf, &format!("nvidia-{t}"))), [0, 0, 0], "a used VF");
        assert!(vfs.iter().all(|vf| left(&after, vf, "nvidia-744") == 0), "another size");
    }
    let full = offered(&card, &[], &made);
    assert!(vfs.iter().all(|vf| left(&full, vf, "nvidia-746") + left(&full, vf, "nvidia-751") == 0));
    made.pop();
    assert_eq!(left(&offered(&card, &[], &made), &vfs[15], "nvidia-751"), 1);
}

#[test]
fn an_a40_collapses_to_one_size_and_comes_back() {
    let types = [
        ("nvidia-558", "NVIDIA A40-2Q", 1),
        ("nvidia-560", "NVIDIA A40-4Q", 1),
        ("nvidia-570", "NVIDIA A40-4A", 1),
        ("nvidia-565", "NVIDIA A40-24Q", 1),
    ];
    let vfs = ["0000:e8:00.4", "0000:e8:00.5", "0000:e8:00.6", "0000:e8:00.7"];
    let card: Vec<Parent> = vfs.iter().map(|vf| parent(vf, Some("0000:e8:00.0"), NVIDIA, &types)).collect();
    let after = offered(&card, &[], &[device(1, vfs[0], "nvidia-560")]);
    let row = |card: &[Parent], vf| [558, 560, 570, 565].map(|t| left(card, vf, &format!("nvidia-{t}")));
    assert_eq!(row(&after, vfs[0]), [0, 0, 0, 0]);
    for vf in &vfs[1..] {
        assert_eq!(row(&after, vf), [0, 1, 1, 0], "{vf}");
    }
    assert_eq!(offered(&card, &[], &[]), card);
    // Two of 24 GiB fill 48 GiB, whatever the number of VFs.
    let two = [device(1, vfs[0], "nvidia-565"), device(2, vfs[1], "nvidia-565")];
    assert_eq!(row(&offered(&card, &[], &two), vfs[3]), [0, 0, 0, 0]);
}

#[test]
fn slices_in_the_file_count_and_free_the_card_when_they_go() {
    let types = [("nvidia-46", "GRID P40-1Q", 23), ("nvidia-51", "GRID P40-8Q", 0)];
    let at = "0000:02:00.0";
    let card = [parent(at, None, NVIDIA, &types)];
    let file = [device(1, at, "nvidia-46")];
    let same = offered(&card, &file, &file);
    assert_eq!((left(&same, at, "nvidia-46"), left(&same, at, "nvidia-51")), (23, 0));
    let gone = offered(&card, &file, &[]);
    assert_eq!((left(&gone, at, "nvidia-46"), left(&gone, at, "nvidia-51")), (24, 3));
    let full: Vec<Mdev> = (1..4).map(|n| device(n, at, "nvidia-51")).collect();
    assert_eq!(left(&offered(&card, &full, &full), at, "nvidia-51"), 0);
    assert_eq!(left(&offered(&card, &full, &full[1..]), at, "nvidia-51"), 1);
}

#[test]
fn a_zero_without_a_cause_stays_zero() {
    let at = "0000:02:00.0";
    let card = [parent(at, None, NVIDIA, &[("nvidia-51", "GRID P40-8Q", 0)])];
    assert_eq!(left(&offered(&card, &[], &[]), at, "nvidia-51"), 0);
}

#[test]
fn a_definition_takes_no_room() {
    let at = "0000:84:00.0";
    let card = [parent(at, None, NVIDIA, &[("nvidia-18", "GRID M60-2Q", 4)])];
    let only_defined = Mdev { active: false, ..device(1, at, "nvidia-18") };
    assert_eq!(left(&offered(&card, &[], &[only_defined]), at, "nvidia-18"), 4);
}

#[test]
fn sizes_unknown_to_the_table_keep_to_one_type() {
    let at = "0000:84:00.0";
    let card =
        [parent(at, None, NVIDIA, &[("nvidia-1", "NVIDIA NEW-1X", 4), ("nvidia-2", "NVIDIA NEW-2X", 2)])];
    let after = offered(&card, &[], &[device(1, at, "nvidia-1")]);
    assert_eq!((left(&after, at, "nvidia-1"), left(&after, at, "nvidia-2")), (3, 0));
    let vfs = ["0000:e8:00.4", "0000:e8:00.5"]
        .map(|vf| parent(vf, Some("0000:e8:00.0"), NVIDIA, &[("nvidia-1", "NVIDIA NEW-1X", 1)]));
    assert_eq!(
        left(&offered(&vfs, &[], &[device(1, "0000:e8:00.4", "nvidia-1")]), "0000:e8:00.5", "nvidia-1"),
        1
    );
}

#[test]
fn other_parents_are_a_plain_pool() {
    let at = "mtty_mtty";
    let card =
        [parent(at, None, None, &[("mtty-1", "Single port serial", 24), ("mtty-2", "Dual port serial", 12)])];
    assert_eq!(offered(&card, &[], &[]), card);
    let made = [device(1, at, "mtty-1"), device(2, at, "mtty-2")];
    let after = offered(&card, &[], &made);
    assert_eq!((left(&after, at, "mtty-1"), left(&after, at, "mtty-2")), (21, 10));
    let full: Vec<Mdev> = (0..24).map(|n| device(n, at, "mtty-1")).collect();
    let after = offered(&card, &[], &full);
    assert_eq!((left(&after, at, "mtty-1"), left(&after, at, "mtty-2")), (0, 0));
    // Numbers read while one of two was taken; then it goes.
    let half = [parent(at, None, None, &[("mtty-1", "Single port serial", 1)])];
    assert_eq!(left(&offered(&half, &made[..1], &[]), at, "mtty-1"), 2);
}
