//! What of a flavor's extra specs is for other services.
//!
//! # Source
//! nova `api/validation/extra_specs/` (known fronts: accel, aggregate_instance_extra_specs, capabilities, hw, hw_rng,
//! hw_video, os, pci_passthrough, quota, resources, trait, vmware; others are allowed since operators have filters of
//! their own). os-traits 3: names by namespace.

/// Beginnings of words that only this language has.
const OURS: [&str; 5] = ["resource", "trait", "required", "group", "numa"];

/// Namespaces of traits that compute nodes have and devices do not.
const NODE_TRAITS: [&str; 7] =
    ["COMPUTE_", "HW_ARCH_", "HW_CPU_", "HW_NIC_", "HW_NUMA_", "MISC_SHARES_", "STORAGE_"];

/// Whether a key that was not understood may be left to others: it does not even begin like one of ours.
pub(super) fn is_key(key: &str) -> bool {
    let begins = |word: &&str| key.get(..word.len()).is_some_and(|front| front.eq_ignore_ascii_case(word));
    !OURS.iter().any(begins)
}

/// Whether this is a resource class of the standard set that mdevirt has nothing to do with.
pub(super) fn is_class(class: &str) -> bool {
    let upper = !class.is_empty() && class.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    upper && class != "VGPU" && !class.starts_with("CUSTOM_")
}

/// Whether this trait describes the compute node.
pub(super) fn is_trait(name: &str) -> bool {
    NODE_TRAITS.iter().any(|front| name.starts_with(front))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_like_ours_is_ours() {
        for key in
            ["hw:cpu_policy", "quota:vif_inbound_average", "tier", ":x", "", "hw", "\u{e4}", "os:secure_boot"]
        {
            assert!(is_key(key), "{key}");
        }
        for key in [
            "Resources:VGPU",
            "resource:VGPU",
            "trait_x",
            "TRAIT:CUSTOM_X",
            "group-policy",
            "numa_policy",
            "required",
        ] {
            assert!(!is_key(key), "{key}");
        }
    }

    #[test]
    fn classes_and_traits_of_the_node() {
        assert!(is_class("PCPU") && is_class("MEMORY_MB") && is_class("PGPU"));
        assert!(!is_class("VGPU") && !is_class("CUSTOM_X") && !is_class("vgpu") && !is_class(""));
        assert!(is_trait("HW_CPU_X86_AVX2") && is_trait("COMPUTE_VOLUME_MULTI_ATTACH"));
        assert!(
            !is_trait("HW_GPU_API_VULKAN")
                && !is_trait("CUSTOM_HW_CPU_")
                && !is_trait("HW_PCI_LIVE_MIGRATABLE")
        );
    }
}
