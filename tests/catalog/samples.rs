//! Reads the listings of `tests/cases/samples` into parents and types. A line that no reader knows fails the test.

use std::path::Path;

use mdevirt::model::{DeviceApi, Framework, MdevType, Parent, TypeFacts};
use mdevirt::xml::nodedev;

/// A type as one listing shows it.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) parent: Parent,
    pub(crate) mdev_type: MdevType,
}

const NVIDIA: Option<u16> = Some(0x10de);

/// Boards of the listings that do not say a PCI id, by the first words of the type names.
const BOARDS: [(&str, u16); 19] = [
    ("GRID M10-", 0x13bd),
    ("GRID M60-", 0x13f2),
    ("GRID P40-", 0x1b38),
    ("GRID P4-", 0x1bb3),
    ("GRID P100-", 0x15f8),
    ("GRID T4-", 0x1eb8),
    ("GRID RTX6000-", 0x1e30),
    ("GRID RTX8000-", 0x1e30),
    ("GRID V100-", 0x1db4),
    ("GRID V100S-", 0x1df6),
    ("GRID A100-", 0x20f1),
    ("GRID A100D-", 0x20b5),
    ("NVIDIA A30-", 0x20b7),
    ("NVIDIA A10-", 0x2236),
    ("NVIDIA A16-", 0x25b6),
    ("NVIDIA A2-", 0x25b6),
    ("NVIDIA A40-", 0x2235),
    ("NVIDIA RTXA5000-", 0x2231),
    ("NVIDIA RTX6000-Ada-", 0x26b1),
];

pub(crate) fn text(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/samples").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()))
}

fn lines(file: &str) -> Vec<String> {
    text(file).lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

fn listed(
    ids: (Option<u16>, Option<u16>),
    framework: Framework,
    id: &str,
    name: Option<&str>,
    description: &str,
) -> Listed {
    let parent = Parent {
        addr: "0000:3b:00.0".parse().unwrap(),
        framework: Some(framework),
        physical_function: None,
        vendor_id: ids.0,
        device_id: ids.1,
        product: None,
        numa_node: None,
        iommu_group: None,
        driver: None,
        types: Vec::new(),
    };
    let mdev_type = MdevType {
        id: id.trim().parse().unwrap(),
        name: name.map(|name| name.trim().to_owned()),
        device_api: DeviceApi::VfioPci,
        available_instances: 1,
        facts: TypeFacts::parse(description),
    };
    Listed { parent, mdev_type }
}

fn on_board(id: &str, name: &str, description: &str) -> Listed {
    let board = BOARDS.iter().find(|(begin, _)| name.trim().starts_with(begin));
    let (_, device) = board.unwrap_or_else(|| panic!("no board for {name}"));
    listed((NVIDIA, Some(*device)), Framework::Mdev, id, Some(name), description)
}

/// 01: files of a sysfs directory, `path = content`.
pub(crate) fn a2() -> Vec<Listed> {
    let all = lines("01-nvidia-A2-VF-mdev-sysfs.txt");
    let value = |path: &str| {
        let line = all.iter().find_map(|line| line.strip_prefix(path)?.strip_prefix(" = "));
        line.unwrap_or_else(|| panic!("no {path}")).trim_end_matches('|').to_owned()
    };
    let hex = |path: &str| u16::from_str_radix(value(path).trim_start_matches("0x"), 16).unwrap();
    let ids = all.iter().filter_map(|line| line.strip_prefix("mdev_supported_types/")?.split_once("/name "));
    ids.map(|(id, _)| {
        let of = |file: &str| value(&format!("mdev_supported_types/{id}/{file}"));
        let ids = (Some(hex("vendor")), Some(hex("device")));
        listed(ids, Framework::Mdev, id, Some(&of("name")), &of("description"))
    })
    .collect()
}

/// Rows `ID : NAME` of a vendor-vfio listing below `heading`.
fn creatable(file: &str, heading: &str, device: u16) -> Vec<Listed> {
    let all = text(file);
    let section = all.split_once(heading).unwrap_or_else(|| panic!("no {heading}")).1;
    let rows = section.lines().skip(1).take_while(|line| !line.starts_with("==") && !line.is_empty());
    rows.filter(|row| !row.starts_with("ID "))
        .map(|row| {
            let (id, name) = row.split_once(':').unwrap_or_else(|| panic!("{row}"));
            listed((NVIDIA, Some(device)), Framework::VendorVfio, id, Some(name), "")
        })
        .collect()
}

/// 02, 19 and 20.
pub(crate) fn vendor_vfio() -> Vec<Listed> {
    let mut all = creatable("02-nvidia-L40S-VF-vendor-vfio.txt", "creatable_vgpu_types", 0x26b9);
    let pro = "19-rtx-pro-6000-blackwell-vendor-vfio.txt";
    all.extend(creatable(pro, "== BUILT creatable_vgpu_types, nothing created", 0x2bb5));
    all.extend(mig_backed(pro));
    let others = "20-other-vendor-vfio-creatable.txt";
    all.extend(creatable(others, "== H200 SXM", 0x2335));
    all.extend(creatable(others, "== RTX 6000 Ada", 0x26b1));
    // Its description is NVML's, with words of its own that no driver's file has.
    let nvml = text(others).split_once("== Proxmox API").unwrap().1.to_owned();
    assert!(nvml.starts_with(" mdev entry for NVIDIA H200-4C (type nvidia-1436)"), "{nvml}");
    let description = nvml.split_once('\n').unwrap().1;
    all.push(listed(
        (NVIDIA, Some(0x233b)),
        Framework::VendorVfio,
        "1436",
        Some("NVIDIA H200-4C"),
        description,
    ));
    all
}

/// The names in braces of 19; their ids are not told.
fn mig_backed(file: &str) -> Vec<Listed> {
    let all = text(file);
    let line = all.lines().find(|line| line.starts_with("== REAL MIG-backed names: ")).unwrap();
    let (begin, rest) = line.trim_start_matches("== REAL MIG-backed names: ").split_once('{').unwrap();
    let ends = rest.split_once('}').unwrap().0.split(',').filter(|end| *end != "...");
    ends.map(|end| {
        let name = format!("{begin}{end}");
        listed((NVIDIA, Some(0x2bb5)), Framework::VendorVfio, "0", Some(&name), "")
    })
    .collect()
}

/// 04: `ID, PARENT, NAME, DESCRIPTION`.
pub(crate) fn v100() -> Vec<Listed> {
    let rows = lines("04-tesla-V100-types.txt");
    rows.iter()
        .map(|row| {
            let fields: Vec<&str> = row.splitn(4, ", ").collect();
            on_board(fields[0], fields[2], fields[3])
        })
        .collect()
}

/// 12: `ID TAB NAME TAB DESCRIPTION`.
pub(crate) fn m60() -> Vec<Listed> {
    let rows = lines("12-tesla-M60-types-descriptions.txt");
    rows.iter()
        .map(|row| {
            let fields: Vec<&str> = row.split('\t').collect();
            on_board(fields[0], fields[1], fields[2])
        })
        .collect()
}

/// 13: what `mdevctl types` prints.
pub(crate) fn p40() -> Vec<Listed> {
    let all = lines("13-tesla-P40-mdevctl-types.txt");
    assert_eq!(all[0], "0000:02:00.0");
    all[1..]
        .chunks(5)
        .map(|of| {
            let field =
                |n: usize, key: &str| of[n].trim().strip_prefix(key).unwrap_or_else(|| panic!("{of:?}"));
            on_board(&of[0], field(3, "Name: "), field(4, "Description: "))
        })
        .collect()
}

/// 17: names without descriptions.
pub(crate) fn a40() -> Vec<Listed> {
    let rows = lines("17-nvidia-A40-VF-before-after.txt");
    let types = rows.iter().filter(|row| row.starts_with("nvidia-"));
    types
        .map(|row| {
            let fields: Vec<&str> = row.split('\t').collect();
            on_board(fields[0], fields[1], "")
        })
        .collect()
}

/// 21: all types of 18 boards in vgpuConfig.xml.
pub(crate) fn type_table() -> Vec<Listed> {
    let rows = lines("21-nvidia-type-id-table.txt");
    rows.iter()
        .map(|row| {
            let f: Vec<&str> = row.split('\t').collect();
            let description = format!(
                "num_heads={}, frl_config={}, framebuffer={}, max_resolution={}",
                f[4], f[5], f[3], f[6]
            );
            on_board(f[1], f[2], &description)
        })
        .collect()
}

/// 15 and 16: libvirt's documents. The first names only a type, as its head line does; the second has no PCI ids.
pub(crate) fn documents() -> Vec<Listed> {
    let document = |file: &str| nodedev::parse(text(file).as_bytes()).unwrap();
    let mdev = document("15-rtx6000-turing-mdev-nodedev.xml").mdev(true, false).unwrap().unwrap();
    let mut all = vec![on_board(mdev.type_id.unwrap().as_str(), "GRID RTX6000-8A", "")];
    let mtty = document("16-mtty-nodedev.xml").parent().unwrap();
    assert_eq!(mtty.types.len(), 2);
    for mdev_type in mtty.types.clone() {
        all.push(Listed { parent: mtty.clone(), mdev_type });
    }
    all
}

/// 22: descriptions of i915, which names no type.
pub(crate) fn gvt() -> Vec<Listed> {
    let all = text("22-gvtg-raw-sysfs.txt");
    let sections = all.split("== ").skip(1);
    sections
        .map(|section| {
            let (head, body) = section.split_once('\n').unwrap();
            let (id, _) = head.split_once("/description").unwrap();
            let body: Vec<&str> = body.lines().filter(|line| !line.starts_with('#')).collect();
            listed((Some(0x8086), Some(0x3ea0)), Framework::Mdev, id, None, &body.join("\n"))
        })
        .collect()
}
