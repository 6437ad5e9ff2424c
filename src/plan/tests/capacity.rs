use super::*;
use crate::plan::capacity::{Booked, capacity};

fn vfs(available: u32, count: u32) -> Vec<Parent> {
    (0..count)
        .map(|i| {
            let at = format!("0000:08:{:02x}.{:x}", (i + 4) / 8, (i + 4) % 8);
            parent(
                &at,
                Some("0000:08:00.0"),
                vec![mdev_type("nvidia-746", available, 4096, 4), mdev_type("nvidia-745", 1, 2048, 8)],
            )
        })
        .collect()
}

#[test]
fn sixteen_vfs_of_a_card_for_four_make_four() {
    let (config, scan) = (config(vec![rule("nvidia-746")]), host(vfs(1, 16), vec![]));
    let caps = capacity(&mapping(&config, &scan), &scan, Booked::default());
    let totals: Vec<u32> = caps.iter().map(|c| c.total).collect();
    assert_eq!(totals.iter().sum::<u32>(), 4);
    assert_eq!(totals[..5], [1, 1, 1, 1, 0], "lowest address first");
    assert!(caps[4].reason.contains("at most 4"), "{}", caps[4].reason);
    assert!(caps[4].record("h").is_none(), "a total of 0 is never published");
    assert_eq!(caps[0].record("h").unwrap().provider, "h_pci_0000_08_00_4");
}

#[test]
fn a_booked_vf_keeps_its_place_when_the_card_is_trimmed() {
    let (config, scan) = (config(vec![rule("nvidia-746")]), host(vfs(1, 16), vec![]));
    let claims = [claim(1, "0000:08:01.7", "nvidia-746")];
    let devices = [own(1, "0000:08:01.7", "nvidia-746")];
    let caps = capacity(&mapping(&config, &scan), &scan, Booked { claims: &claims, own: &devices });
    let with_total: Vec<String> =
        caps.iter().filter(|c| c.total > 0).map(|c| c.assigned.parent.addr.to_string()).collect();
    assert_eq!(with_total, ["0000:08:00.4", "0000:08:00.5", "0000:08:00.6", "0000:08:01.7"]);
    assert_eq!(caps.iter().map(|c| c.free).sum::<u32>(), 3);
}

#[test]
fn a_claim_binds_the_card_to_its_size_before_the_driver_knows() {
    let mut two = vec![rule("nvidia-746"), rule("nvidia-745")];
    two[0].addresses = vec![addr("0000:08:00.4"), addr("0000:08:00.5")];
    let (config, scan) = (config(two), host(vfs(1, 4), vec![]));
    let claims = [claim(1, "0000:08:00.4", "nvidia-746")];
    let caps = capacity(&mapping(&config, &scan), &scan, Booked { claims: &claims, own: &[] });
    expect(
        &rows(&caps),
        &[("08:00.4", 1, 0, 0), ("08:00.5", 1, 0, 1), ("08:00.6", 1, 0, 0), ("08:00.7", 1, 0, 0)],
    );
    assert!(caps[2].reason.contains("bound to slices of 4096 MiB"), "{}", caps[2].reason);
}

#[test]
fn foreign_devices_are_counted_and_reserved() {
    let t4 = parent("0000:3b:00.0", None, vec![mdev_type("nvidia-231", 5, 2048, 8)]);
    let scan = host(vec![t4], (1..=3).map(|n| mdev(n, "0000:3b:00.0", "nvidia-231")).collect());
    let config = config(vec![rule("nvidia-231")]);
    let (claims, devices) =
        ([claim(1, "0000:3b:00.0", "nvidia-231")], [own(1, "0000:3b:00.0", "nvidia-231")]);
    let caps = capacity(&mapping(&config, &scan), &scan, Booked { claims: &claims, own: &devices });
    expect(&rows(&caps), &[("3b:00.0", 8, 2, 5)]);
    assert_eq!((caps[0].used, caps[0].foreign, caps[0].max_unit), (1, 2, 1));
}

#[test]
fn full_is_not_unavailable_and_idle_ones_are_given_again() {
    let p40 = |at, available| {
        parent(
            at,
            None,
            vec![mdev_type("nvidia-51", available, 8192, 3), mdev_type("nvidia-46", 0, 1024, 24)],
        )
    };
    let scan = host(
        vec![p40("0000:02:00.0", 0), p40("0000:03:00.0", 0), p40("0000:82:00.0", 2)],
        vec![
            mdev(9, "0000:02:00.0", "nvidia-46"),
            mdev(1, "0000:03:00.0", "nvidia-51"),
            mdev(2, "0000:03:00.0", "nvidia-51"),
            mdev(3, "0000:03:00.0", "nvidia-51"),
            mdev(4, "0000:82:00.0", "nvidia-51"),
        ],
    );
    let config = config(vec![rule("nvidia-51")]);
    let claims: Vec<Claim> = (1..=3).map(|n| claim(n, "0000:03:00.0", "nvidia-51")).collect();
    let mut devices: Vec<OwnDevice> = (1..=3).map(|n| own(n, "0000:03:00.0", "nvidia-51")).collect();
    devices.push(own(4, "0000:82:00.0", "nvidia-51"));
    let caps = capacity(&mapping(&config, &scan), &scan, Booked { claims: &claims, own: &devices });
    expect(&rows(&caps), &[("02:00.0", 0, 0, 0), ("03:00.0", 3, 0, 0), ("82:00.0", 3, 0, 3)]);
    assert!(caps[0].reason.contains("nvidia-46 (1024 MiB)"), "{}", caps[0].reason);
    assert_eq!(caps[2].idle.len(), 1);
}

#[test]
fn a_cap_trims_in_address_order_and_never_what_exists() {
    let t4 = |at, available| parent(at, None, vec![mdev_type("nvidia-230", available, 1024, 16)]);
    let mut capped = rule("nvidia-230");
    capped.max_instances = Some(20);
    let config_20 = config(vec![capped.clone()]);
    let scan = host(vec![t4("0000:3b:00.0", 16), t4("0000:86:00.0", 16)], vec![]);
    let caps = capacity(&mapping(&config_20, &scan), &scan, Booked::default());
    expect(&rows(&caps), &[("3b:00.0", 16, 0, 16), ("86:00.0", 4, 0, 4)]);

    capped.max_instances = Some(2);
    let config_2 = config(vec![capped]);
    let scan =
        host(vec![t4("0000:3b:00.0", 12)], (1..=4).map(|n| mdev(n, "0000:3b:00.0", "nvidia-230")).collect());
    let devices: Vec<OwnDevice> = (1..=4).map(|n| own(n, "0000:3b:00.0", "nvidia-230")).collect();
    let claims: Vec<Claim> = (1..=4).map(|n| claim(n, "0000:3b:00.0", "nvidia-230")).collect();
    let caps = capacity(&mapping(&config_2, &scan), &scan, Booked { claims: &claims, own: &devices });
    expect(&rows(&caps), &[("3b:00.0", 4, 0, 0)]);
    assert!(caps[0].reason.contains("max_instances = 2"), "{}", caps[0].reason);
}

#[test]
fn a_lost_device_keeps_its_place() {
    let t4 = parent("0000:3b:00.0", None, vec![mdev_type("nvidia-231", 8, 2048, 8)]);
    let scan = host(vec![t4], vec![]);
    let config = config(vec![rule("nvidia-231")]);
    let (claims, devices) =
        ([claim(1, "0000:3b:00.0", "nvidia-231")], [own(1, "0000:3b:00.0", "nvidia-231")]);
    let caps = capacity(&mapping(&config, &scan), &scan, Booked { claims: &claims, own: &devices });
    expect(&rows(&caps), &[("3b:00.0", 8, 0, 7)]);
}

#[test]
fn the_operators_reserve_is_kept_back() {
    let t4 = parent("0000:3b:00.0", None, vec![mdev_type("nvidia-231", 2, 2048, 8)]);
    let (mut kept, scan) = (rule("nvidia-231"), host(vec![t4], vec![]));
    kept.reserved = 1;
    let config = config(vec![kept]);
    let caps = capacity(&mapping(&config, &scan), &scan, Booked::default());
    expect(&rows(&caps), &[("3b:00.0", 2, 1, 1)]);
}

#[test]
fn a_full_card_says_what_it_carries() {
    let config = config(vec![rule("nvidia-746")]);
    let devices = vec![mdev(1, "0000:08:00.4", "nvidia-746"), mdev(2, "0000:08:00.5", "nvidia-746")];
    let scan = host(vfs(0, 3), devices);
    let caps = capacity(&mapping(&config, &scan), &scan, Booked::default());
    assert_eq!(caps[2].reason, "card 0000:08:00.0 is full: it carries 2 NVIDIA nvidia-746");
    let empty = host(vfs(0, 3), vec![]);
    let caps = capacity(&mapping(&config, &empty), &empty, Booked::default());
    assert_eq!(caps[2].reason, "the driver says that no NVIDIA nvidia-746 can be made");
}

#[test]
fn a_vm_has_one_ap_matrix_whatever_is_configured() {
    let mut matrix = parent("ap_matrix", None, vec![mdev_type("vfio_ap-passthrough", 65536, 0, 0)]);
    matrix.vendor_id = None;
    matrix.types[0].device_api = DeviceApi::VfioAp;
    let mut several = rule("vfio_ap-passthrough");
    several.several_per_vm = Some(true);
    let (config, scan) = (config(vec![several]), host(vec![matrix], vec![]));
    let caps = capacity(&mapping(&config, &scan), &scan, Booked::default());
    assert_eq!((caps[0].total, caps[0].max_unit), (65536, 1));
}

/// Device, type name, framework and the operator's word; what max_unit and the reason then are.
#[test]
fn the_operators_word_stands_above_the_vendors_and_no_word_is_no() {
    let (mdev, vf) = (Framework::Mdev, Framework::VendorVfio);
    for (device, framework, name, operator, unit, why) in [
        (0x1eb8, mdev, "GRID T4-2B", None, 1, "B-series"),
        (0x1eb8, mdev, "GRID T4-2B", Some(true), 8, ""),
        (0x1eb8, mdev, "GRID T4-2Q", None, 1, "several_per_vm = true allows it"),
        (0x1eb8, mdev, "GRID T4-2Q", Some(true), 8, ""),
        (0x26b9, vf, "NVIDIA L40S-4Q", None, 8, ""),
        (0x26b9, vf, "NVIDIA L40S-4Q", Some(false), 1, "several_per_vm = false"),
    ] {
        let mut card = parent("0000:3b:00.0", None, vec![mdev_type("nvidia-231", 8, 2048, 8)]);
        (card.device_id, card.framework) = (Some(device), Some(framework));
        card.types[0].name = Some(name.into());
        let scan = HostScan { parents: vec![card], ..HostScan::default() };
        let mut rule = rule("nvidia-231");
        rule.several_per_vm = operator;
        let config = config(vec![rule]);
        let caps = capacity(&mapping(&config, &scan), &scan, Booked::default());
        assert_eq!(caps[0].max_unit, unit, "{name} {operator:?}");
        assert_eq!(caps[0].one_per_vm(), unit == 1);
        assert!(caps[0].one_per_vm_reason.as_deref().unwrap_or_default().contains(why), "{:?}", caps[0]);
    }
}
