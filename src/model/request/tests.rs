//! The language as people and orchestrators write it, what is refused, and that no text breaks it.

use proptest::prelude::*;

use super::*;

fn good(flavor: &str) -> Request {
    Request::parse(flavor).unwrap_or_else(|err| panic!("{flavor}: {err}"))
}

fn names(set: &BTreeSet<TraitName>) -> Vec<&str> {
    set.iter().map(TraitName::as_str).collect()
}

fn specs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_usual_flavor() {
    let request = good("resources:VGPU=1,trait:CUSTOM_X=required");
    assert_eq!(request.groups.len(), 1);
    assert_eq!(request.groups[0].count, 1);
    assert_eq!(names(&request.groups[0].required), ["CUSTOM_X"]);
    assert_eq!((request.isolate, request.numa), (false, NumaPolicy::Preferred));
}

#[test]
fn groups_have_numbers_and_words_and_several_classes() {
    let request = good(
        "resources10:VGPU=1, resources2:CUSTOM_T4=2, trait2:CUSTOM_A=forbidden, resources_gpu:VGPU=1\n\
         resources:VGPU=1, resources:CUSTOM_B=3, trait:HW_GPU_API_VULKAN=required, group_policy=isolate,",
    );
    let groups: Vec<(&str, &str, u32)> =
        request.groups.iter().map(|g| (g.suffix.as_str(), g.class.as_str(), g.count)).collect();
    assert_eq!(
        groups,
        [("", "CUSTOM_B", 3), ("", "VGPU", 1), ("2", "CUSTOM_T4", 2), ("10", "VGPU", 1), ("_gpu", "VGPU", 1)]
    );
    assert_eq!(names(&request.groups[0].required), ["HW_GPU_API_VULKAN"]);
    assert_eq!(request.groups[0].required, request.groups[1].required);
    assert_eq!(names(&request.groups[2].forbidden), ["CUSTOM_A"]);
    assert!(request.isolate);
    assert_eq!(request.device_count(), 8);
    assert!(!good("resources:VGPU=1,group_policy=none").isolate);
}

#[test]
fn lists_of_traits_are_placements() {
    let request = good(
        "resources1:VGPU=1,required1=in:CUSTOM_B, CUSTOM_A,CUSTOM_B,trait1:CUSTOM_T=required,\
         required1=CUSTOM_C,!CUSTOM_D,required1=in:CUSTOM_E,in:CUSTOM_F,CUSTOM_G,resources:VGPU=1",
    );
    let [plain, one] = &request.groups[..] else { panic!("{request:?}") };
    assert!(plain.any_of.is_empty() && plain.required.is_empty());
    assert_eq!(
        one.any_of.iter().map(names).collect::<Vec<_>>(),
        [vec!["CUSTOM_A", "CUSTOM_B"], vec!["CUSTOM_F", "CUSTOM_G"]]
    );
    assert_eq!(names(&one.required), ["CUSTOM_C", "CUSTOM_E", "CUSTOM_T"]);
    assert_eq!(names(&one.forbidden), ["CUSTOM_D"]);
    let map = specs(&[("resources1:VGPU", "1"), ("required1", "!CUSTOM_D,in:CUSTOM_A,CUSTOM_B,in:X,Y")]);
    let one = &Request::from_specs(&map).unwrap().request.groups[0];
    assert_eq!(
        one.any_of.iter().map(names).collect::<Vec<_>>(),
        [vec!["CUSTOM_A", "CUSTOM_B"], vec!["X", "Y"]]
    );
    assert_eq!(names(&one.forbidden), ["CUSTOM_D"]);
}

#[test]
fn numa_is_asked_for_in_our_words_or_novas() {
    for (text, want) in [
        ("numa=required", NumaPolicy::Required),
        ("numa=preferred", NumaPolicy::Preferred),
        ("numa=ignore", NumaPolicy::Ignore),
        ("hw:pci_numa_affinity_policy=required", NumaPolicy::Required),
        ("hw:pci_numa_affinity_policy=socket", NumaPolicy::Required),
        ("hw:pci_numa_affinity_policy=preferred", NumaPolicy::Preferred),
        ("hw:pci_numa_affinity_policy=legacy", NumaPolicy::Preferred),
        ("hw:pci_numa_affinity_policy=required,numa=required", NumaPolicy::Required),
    ] {
        assert_eq!(good(&format!("resources:VGPU=1,{text}")).numa, want, "{text}");
    }
}

#[test]
fn nonsense_is_named() {
    for (bad, word) in [
        ("", "no virtual device"),
        ("resources:VGPU=0", "no virtual device"),
        ("VGPU=1", "flavor extra spec"),
        ("resources:VGPU", "key=value"),
        ("resources:VGPU=1,CUSTOM_A", "key=value"),
        ("resources:VGPU=-1", "device count"),
        ("resources:VGPU=65", "device count"),
        ("resources:VGPU=40,resources1:VGPU=40", "more than 64"),
        ("resources:vgpu=1", "resource class"),
        ("resources:PCPU=1", "resource class"),
        ("resources:VGPU=1,hw:cpu_policy=dedicated", "flavor extra spec"),
        ("resources:VGPU=1,trait:CUSTOM_X=maybe", "required or forbidden"),
        ("resources:VGPU=1,trait:custom_x=required", "trait"),
        ("resources:VGPU=1,trait1:CUSTOM_X=required", "asks for no resources"),
        ("resources:VGPU=1,traits:CUSTOM_X=required", "asks for no resources"),
        ("resources:VGPU=1,required1=in:CUSTOM_X,CUSTOM_Y", "asks for no resources"),
        ("resources:VGPU=1,resources:VGPU=2", "twice"),
        ("resources:VGPU=1,trait:CUSTOM_X=required,trait:CUSTOM_X=required", "twice"),
        ("resources:VGPU=1,trait:CUSTOM_X=required,required=!CUSTOM_X", "both requires and forbids"),
        ("resources:VGPU=1,required=in:A,B,required=!A,!B", "forbids every trait"),
        ("resources:VGPU=1,required=", "a name is missing"),
        ("resources:VGPU=1,required=in:", "a name is missing"),
        ("resources:VGPU=1,required=!", "a name is missing"),
        ("resources:VGPU=1,required=in:A,!B", "cannot forbid"),
        ("resources:VGPU=1,required=in:A,b", "trait"),
        ("resources:VGPU=1,group_policy=x", "group_policy"),
        ("resources:VGPU=1,numa=strict", "required, preferred or ignore"),
        ("resources:VGPU=1,hw:pci_numa_affinity_policy=ignore", "socket"),
        ("resources:VGPU=1,numa=ignore,hw:pci_numa_affinity_policy=required", "do not say the same"),
        ("resources/:VGPU=1", "group suffix"),
    ] {
        let err = Request::parse(bad).unwrap_err().to_string();
        assert!(err.contains(word), "{bad}: {err}");
    }
}

#[test]
fn size_is_bounded() {
    let long = format!("resources:VGPU=1,trait:CUSTOM_{}=required", "X".repeat(64 * 1024));
    assert!(Request::parse(&long).unwrap_err().to_string().contains("64 KiB"));
    let map = specs(&[("resources:VGPU", "1"), ("quota:x", &long)]);
    assert!(Request::from_specs(&map).unwrap_err().to_string().contains("64 KiB"));
    let many: String = (0..1001).map(|n| format!("trait:T{n}=required,")).collect();
    assert!(Request::parse(&many).unwrap_err().to_string().contains("1000 keys"));
    let lists: String = (0..33).map(|n| format!(",required=in:A{n},B")).collect();
    let err = Request::parse(&format!("resources:VGPU=1{lists}")).unwrap_err().to_string();
    assert!(err.contains("more than 32"), "{err}");
}

#[test]
fn an_orchestrator_hands_on_the_whole_flavor() {
    let map = specs(&[
        ("resources:VGPU", "1"),
        ("resources:VCPU", "0"),
        ("resources2:PCPU", "2"),
        ("trait2:CUSTOM_FAST", "required"),
        ("trait:HW_CPU_X86_AVX2", "required"),
        ("trait:CUSTOM_GOLD", "required"),
        ("hw:cpu_policy", "dedicated"),
        ("hw:pci_numa_affinity_policy", "required"),
        ("quota:disk_read_iops_sec", "10"),
        ("acme:tier", "gold"),
        ("hide_hypervisor_id", "true"),
    ]);
    let FromSpecs { request, ignored } = Request::from_specs(&map).unwrap();
    assert_eq!(request.to_string(), "resources:VGPU=1,trait:CUSTOM_GOLD=required,numa=required");
    assert_eq!(
        ignored,
        [
            "acme:tier",
            "hide_hypervisor_id",
            "hw:cpu_policy",
            "quota:disk_read_iops_sec",
            "resources2:PCPU",
            "resources:VCPU",
            "trait2:CUSTOM_FAST",
            "trait:HW_CPU_X86_AVX2",
        ]
    );
    let numbered = specs(&[("resources1:VGPU", "1"), ("trait:CUSTOM_RACK_7", "required")]);
    assert_eq!(Request::from_specs(&numbered).unwrap().ignored, ["trait:CUSTOM_RACK_7"]);
}

#[test]
fn an_orchestrators_slip_is_named() {
    for (pairs, word) in [
        (&[("resources:VGPU", "1"), ("Trait:CUSTOM_X", "required")][..], "flavor extra spec"),
        (&[("resource:VGPU", "1")], "flavor extra spec"),
        (&[("resources:VGPU", "1"), ("group-policy", "isolate")], "flavor extra spec"),
        (&[("resources:VGPU", "1"), ("trait1:CUSTOM_X", "required")], "asks for no resources"),
        (&[("resources:VGPU", "1"), ("required", "in:A,,B")], "a name is missing"),
        (&[("resources:VCPU", "1"), ("hw:x", "y")], "no virtual device"),
    ] {
        let err = Request::from_specs(&specs(pairs)).unwrap_err().to_string();
        assert!(err.contains(word), "{pairs:?}: {err}");
    }
}

/// A request as a journal of the first release holds it.
#[test]
fn an_old_row_is_read() {
    let old = r#"{"groups":[{"suffix":"","class":"VGPU","count":1,"required":["CUSTOM_X"],"forbidden":[]}],"isolate":false}"#;
    let request: Request = serde_json::from_str(old).unwrap();
    assert_eq!(request, good("resources:VGPU=1,trait:CUSTOM_X=required"));
}

/// Parts of which flavors are made, good ones and others.
fn part() -> impl Strategy<Value = String> {
    let suffix = prop::sample::select(&["", "1", "2", "10", "01", "_gpu", "-", "b"][..]);
    let name =
        || prop::sample::select(&["CUSTOM_A", "CUSTOM_B", "HW_GPU_API_VULKAN", "COMPUTE_NODE", "C9_"][..]);
    let names = || prop::collection::vec(name(), 1..4).prop_map(|names| names.join(","));
    prop_oneof![
        3 => (suffix.clone(), prop::sample::select(&["VGPU", "CUSTOM_T4"][..]), 0u32..9)
            .prop_map(|(s, class, n)| format!("resources{s}:{class}={n}")),
        2 => (suffix.clone(), name(), prop::bool::ANY)
            .prop_map(|(s, t, yes)| format!("trait{s}:{t}={}", if yes { "required" } else { "forbidden" })),
        2 => (suffix.clone(), names()).prop_map(|(s, list)| format!("required{s}=in:{list}")),
        1 => (suffix, names()).prop_map(|(s, list)| format!("required{s}=!{list}")),
        1 => prop::sample::select(&["group_policy=isolate", "group_policy=none", "numa=ignore", "numa=required"][..])
            .prop_map(str::to_owned),
    ]
}

/// Flavors that are good, in any order of their parts.
fn flavor() -> impl Strategy<Value = String> {
    prop::collection::vec(part(), 1..9)
        .prop_map(|mut parts| {
            // Traits go to groups that exist.
            for suffix in ["", "1", "2", "10", "01", "_gpu", "-", "b"] {
                let wanted = [format!("trait{suffix}:"), format!("required{suffix}=")];
                let there = format!("resources{suffix}:CUSTOM_FILL=1");
                if parts.iter().any(|p| wanted.iter().any(|w| p.starts_with(w))) {
                    parts.push(there);
                }
            }
            parts
        })
        .prop_shuffle()
        .prop_map(|parts| parts.join(","))
}

proptest! {
    #[test]
    fn a_request_is_read_back_from_what_it_shows(flavor in flavor()) {
        let parsed = Request::parse(&flavor);
        // More than one in five has to be good, or the property says nothing: proptest counts the others.
        prop_assume!(parsed.is_ok());
        let request = parsed.unwrap();
        let shown = request.to_string();
        prop_assert_eq!(Request::parse(&shown).unwrap(), request.clone(), "{}", shown);
        let stored = serde_json::to_string(&request).unwrap();
        prop_assert_eq!(serde_json::from_str::<Request>(&stored).unwrap(), request);
    }

    /// The map gives what the text gives where the map can say it.
    #[test]
    fn order_and_form_do_not_matter(flavor in flavor()) {
        let Ok(request) = Request::parse(&flavor) else { return Ok(()) };
        let pairs = super::text::pairs(&flavor).unwrap();
        let map: BTreeMap<String, String> = pairs.iter().map(|(k, v)| ((*k).to_owned(), v.to_string())).collect();
        prop_assume!(map.len() == pairs.len() && !flavor.contains("COMPUTE_NODE"));
        prop_assert_eq!(Request::from_specs(&map).unwrap().request, request);
    }

    #[test]
    fn no_text_panics(
        parts in prop::collection::vec(prop_oneof![part(), "\\PC{0,30}", "[a-z:=!,]{0,20}"], 0..12),
        more in "\\PC*",
    ) {
        let text = parts.join(",");
        let _ = Request::parse(&text);
        let _ = Request::parse(&more);
        let map = parts.iter().filter_map(|p| p.split_once('=')).map(|(k, v)| (k.to_owned(), v.to_owned()));
        let _ = Request::from_specs(&map.collect());
    }
}
