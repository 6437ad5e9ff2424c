//! The rules of the room head, each on a type that shows it, and the table's own form.

use std::collections::BTreeSet;

use super::table::Table;
use super::*;
use crate::model::{DeviceApi, Framework};

const TABLE: &str = include_str!("../capabilities.toml");

fn parent(vendor: u16, device: u16) -> Parent {
    Parent {
        addr: "0000:3b:00.0".parse().unwrap(),
        framework: Some(Framework::Mdev),
        physical_function: None,
        vendor_id: Some(vendor),
        device_id: Some(device),
        product: None,
        numa_node: None,
        iommu_group: None,
        driver: None,
        types: Vec::new(),
    }
}

fn named(name: Option<&str>, description: &str) -> MdevType {
    MdevType {
        id: "nvidia-1".parse().unwrap(),
        name: name.map(str::to_owned),
        device_api: DeviceApi::VfioPci,
        available_instances: 1,
        facts: TypeFacts::parse(description),
    }
}

fn traits(device: u16, name: &str, description: &str) -> BTreeSet<String> {
    let all = standard_traits(&parent(0x10de, device), &named(Some(name), description));
    all.iter().map(|t| t.as_str().to_owned()).collect()
}

fn with(all: &BTreeSet<String>, word: &str) -> Vec<String> {
    all.iter().filter(|t| t.contains(word)).cloned().collect()
}

#[test]
fn every_row_is_good() {
    let table = Table::parse(TABLE).unwrap();
    assert!(table.cards.len() > 60, "{}", table.cards.len());
    assert_eq!(table.apis.len(), 2);
}

#[test]
fn bad_rows_are_found() {
    for (from, to, why) in [
        ("source = [\"os-traits\"]", "source = []", "has no source"),
        ("source = [\"os-traits\"]", "source = [\"hearsay\"]", "no source hearsay"),
        ("\"320x240\"", "\"320\"", "resolution 320"),
        ("\"13bd\"", "\"13BD\"", "PCI id 13BD"),
        ("\"13bd\"", "\"13f2\"", "13f2 is there twice"),
        ("\"OPENGL_V4_6\"", "\"OpenGL 4.6\"", "CUSTOM_HW_GPU_API_OpenGL 4.6"),
        ("cuda_only = ", "cuda_just = ", "unknown field"),
        ("\"Ada Lovelace\"", "\"Ada\"", "unknown variant"),
    ] {
        let err = Table::parse(&TABLE.replacen(from, to, 1)).unwrap_err();
        assert!(err.to_string().contains(why), "{why}: {err}");
    }
}

#[test]
fn a_type_drives_all_that_is_not_greater() {
    let eight_k = traits(0x25b6, "NVIDIA A2-4Q", "num_heads=4, framebuffer=4096M, max_resolution=7680x4320");
    assert_eq!(with(&eight_k, "RESOLUTION").len(), 25);
    let heads = ["HW_GPU_MAX_DISPLAY_HEADS_1", "HW_GPU_MAX_DISPLAY_HEADS_2", "HW_GPU_MAX_DISPLAY_HEADS_4"];
    assert_eq!(with(&eight_k, "HEADS"), heads);
    let five_k = traits(0x25b6, "NVIDIA A2-1Q", "num_heads=4, framebuffer=1024M, max_resolution=5120x2880");
    assert!(!five_k.contains("HW_GPU_RESOLUTION_W7680H4320"));
    for name in ["HW_GPU_RESOLUTION_W3840H2160", "CUSTOM_HW_GPU_RESOLUTION_W5120H2880"] {
        assert!(five_k.contains(name), "{name}");
    }
    // 1366 and 1360 wide, and 1280 wide but not 1024 high: both sides count.
    let small = traits(0x25b6, "NVIDIA A2-1A", "num_heads=1, framebuffer=1024M, max_resolution=1280x1024");
    assert!(small.contains("HW_GPU_RESOLUTION_W1280H1024") && !small.contains("HW_GPU_RESOLUTION_W1360H768"));
    let flat = traits(0x25b6, "NVIDIA A2-1A", "num_heads=0, max_resolution=1280x800");
    assert!(flat.contains("HW_GPU_RESOLUTION_W1280H800") && !flat.contains("HW_GPU_RESOLUTION_W1280H1024"));
    assert_eq!(with(&flat, "HEADS"), [""; 0]);
}

#[test]
fn a_type_has_one_compute_capability_where_its_series_has_cuda() {
    for (device, name, want) in [
        (0x1db4, "GRID V100-4Q", Some("HW_GPU_CUDA_COMPUTE_CAPABILITY_V7_0")),
        (0x1eb8, "GRID T4-4C", Some("CUSTOM_HW_GPU_CUDA_COMPUTE_CAPABILITY_V7_5")),
        (
            0x2bb5,
            "NVIDIA RTX Pro 6000 Blackwell DC-1-3Q",
            Some("CUSTOM_HW_GPU_CUDA_COMPUTE_CAPABILITY_V12_0"),
        ),
        (0x1eb8, "GRID T4-4A", None),
        (0x1eb8, "GRID T4-2B4", None),
        (0x13bd, "GRID M10-8Q", Some("HW_GPU_CUDA_COMPUTE_CAPABILITY_V5_0")),
        (0x13bd, "GRID M10-4Q", None),
        (0x13bd, "GRID M10-8A", None),
        (0xffff, "NVIDIA X1-4Q", None),
    ] {
        let got = traits(device, name, "");
        assert_eq!(with(&got, "CUDA"), want.into_iter().collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn interfaces_follow_the_series() {
    let api = |device, name| with(&traits(device, name, ""), "API");
    assert!(api(0x1eb8, "GRID T4-2B").contains(&"HW_GPU_API_OPENGL_V4_5".to_owned()));
    assert!(!api(0x1eb8, "GRID T4-2B").contains(&"HW_GPU_API_OPENCL_V1_2".to_owned()));
    assert!(api(0x1eb8, "GRID T4-2Q").contains(&"HW_GPU_API_OPENCL_V1_2".to_owned()));
    assert!(!api(0x13bd, "GRID M10-4Q").contains(&"HW_GPU_API_OPENCL_V1_2".to_owned()));
    assert_eq!(api(0x20f1, "GRID A100-4C"), [""; 0]);
}

#[test]
fn what_is_unknown_gives_nothing() {
    let description = "num_heads=4, framebuffer=4096M, max_resolution=7680x4320";
    let nameless = standard_traits(&parent(0x10de, 0x1eb8), &named(None, description));
    assert!(nameless.iter().all(|t| t.as_str().contains("RESOLUTION") || t.as_str().contains("HEADS")));
    let mut virtual_parent = parent(0x10de, 0x1eb8);
    (virtual_parent.vendor_id, virtual_parent.device_id) = (None, None);
    assert!(standard_traits(&virtual_parent, &named(Some("Single port serial"), "")).is_empty());
    for odd in ["max_resolution=x", "max_resolution=99999999999x1", "max_resolution=-1x-1", "num_heads=-1"] {
        assert!(standard_traits(&parent(0x10de, 0x1eb8), &named(None, odd)).is_empty(), "{odd}");
    }
    let gvt = named(None, "low_gm_size: 128MB\nfence: 4\nresolution: 1920x1200\nweight: 4\n");
    let got = standard_traits(&parent(0x8086, 0x3ea0), &gvt);
    assert!(got.iter().any(|t| t.as_str() == "HW_GPU_RESOLUTION_W1920H1200"));
    assert!(got.iter().all(|t| t.as_str().starts_with("HW_GPU_RESOLUTION_")));
}

#[test]
fn own_names_do_not_stand_for_standard_ones() {
    // Every made name is either in the standard set's words or begins with CUSTOM_; tests/os_traits.rs asks the package.
    for name in known_traits() {
        assert!(
            name.as_str().starts_with("HW_GPU_") || name.as_str().starts_with("CUSTOM_HW_GPU_"),
            "{name}"
        );
    }
}
