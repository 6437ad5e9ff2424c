//! What becomes of a trait when the host under it changes; each line of the drift table, in the order of the table.

use super::*;
use crate::model::{DeviceApi, Framework, Meaning, ShiftKind, TypeFacts};

const CARD: &str = "0000:3b:00.0";
const OTHER_CARD: &str = "0000:86:00.0";

fn mdev_type(id: &str, name: &str, mib: u32) -> MdevType {
    MdevType {
        id: id.parse().unwrap(),
        name: (!name.is_empty()).then(|| name.to_owned()),
        device_api: DeviceApi::VfioPci,
        available_instances: 8,
        facts: TypeFacts { framebuffer_mib: Some(mib), ..TypeFacts::default() },
    }
}

fn parent(addr: &str, types: &[(&str, &str, u32)]) -> Parent {
    Parent {
        addr: addr.parse().unwrap(),
        framework: Some(Framework::Mdev),
        physical_function: None,
        vendor_id: Some(0x10de),
        device_id: Some(0x1eb8),
        product: None,
        numa_node: None,
        iommu_group: None,
        driver: None,
        types: types.iter().map(|(id, name, mib)| mdev_type(id, name, *mib)).collect(),
    }
}

fn host(parents: &[Parent]) -> HostScan {
    HostScan { parents: parents.to_vec(), ..HostScan::default() }
}

fn bound(type_key: &str) -> Binding {
    Binding {
        type_key: type_key.to_owned(),
        vendor_id: None,
        device_id: None,
        framework: None,
        framebuffer_mib: None,
    }
}

fn gold() -> TraitName {
    "CUSTOM_GOLD".parse().unwrap()
}

/// One trait, `CUSTOM_GOLD`, through the life of a host.
struct Life {
    catalog: Catalog,
    locked: BTreeMap<TraitName, TypeIdentity>,
    memory: Memory,
    shifts: Vec<(ShiftKind, String, String)>,
}

impl Life {
    fn of(binding: Binding) -> Self {
        let catalog = Catalog { bindings: [(gold(), binding)].into() };
        Self { catalog, locked: BTreeMap::new(), memory: Memory::default(), shifts: Vec::new() }
    }

    /// Looks at the host, and remembers what it taught.
    fn look(&mut self, scan: &HostScan) -> Resolved {
        let mut lesson = Lesson::default();
        let mut all = resolve(&self.catalog, &self.locked, &self.memory, scan, &mut lesson);
        self.memory = self.memory.after(&lesson);
        self.shifts.extend(lesson.shifts.into_iter().map(|s| (s.kind, s.was, s.now)));
        all.remove(&gold()).unwrap()
    }

    fn lesson_of(&self, scan: &HostScan) -> Lesson {
        let mut lesson = Lesson::default();
        resolve(&self.catalog, &self.locked, &self.memory, scan, &mut lesson);
        lesson
    }
}

/// Whether the trait, or what stands in its place, is on this parent.
fn is_at(resolved: &Resolved, parent: &ParentAddr) -> bool {
    resolved.local.contains_key(parent) || resolved.instead.contains_key(parent)
}

fn ids(resolved: &Resolved) -> Vec<String> {
    resolved.local.iter().map(|(parent, id)| format!("{parent} {id}")).collect()
}

#[test]
fn the_same_name_under_another_id_is_followed_and_told_once() {
    let mut life = Life::of(bound("GRID T4-2Q"));
    let before =
        host(&[parent(CARD, &[("nvidia-231", "GRID T4-2Q", 2048), ("nvidia-232", "GRID T4-4Q", 4096)])]);
    assert_eq!(ids(&life.look(&before)), [format!("{CARD} nvidia-231")]);
    let after =
        host(&[parent(CARD, &[("nvidia-1231", "GRID T4-2Q", 2048), ("nvidia-231", "GRID T4-4Q", 4096)])]);
    for _ in 0..2 {
        let resolved = life.look(&after);
        assert_eq!((resolved.state, ids(&resolved)), (TraitState::Ok, vec![format!("{CARD} nvidia-1231")]));
    }
    assert_eq!(life.shifts, [(ShiftKind::Renumbered, "nvidia-231".to_owned(), "nvidia-1231".to_owned())]);
}

#[test]
fn another_brand_word_is_the_same_identity_and_one_notice() {
    let mut life = Life::of(bound("GRID T4-2Q"));
    let first = life.look(&host(&[parent(CARD, &[("nvidia-231", "GRID T4-2Q", 2048)])])).identity;
    for _ in 0..2 {
        let now = life.look(&host(&[parent(CARD, &[("nvidia-231", "NVIDIA T4-2Q", 2048)])]));
        assert_eq!((now.state, &now.identity), (TraitState::Ok, &first));
    }
    assert_eq!(life.shifts, [(ShiftKind::Renamed, "GRID T4-2Q".to_owned(), "NVIDIA T4-2Q".to_owned())]);
}

#[test]
fn another_name_or_size_under_the_id_is_drift_until_it_is_back() {
    for now in [("nvidia-231", "GRID T4-2B", 2048), ("nvidia-231", "GRID T4-2Q", 1024)] {
        let mut life = Life::of(bound("GRID T4-2Q"));
        let good = host(&[parent(CARD, &[("nvidia-231", "GRID T4-2Q", 2048)])]);
        life.look(&good);
        let drifted = life.look(&host(&[parent(CARD, &[now])]));
        assert_eq!(drifted.state, TraitState::Drift, "{now:?}");
        assert!(is_at(&drifted, &CARD.parse().unwrap()));
        assert!(drifted.reason.contains("2048 MiB") && drifted.reason.contains("trait accept CUSTOM_GOLD"));
        assert!(drifted.reason.contains(now.1), "{}", drifted.reason);
        life.look(&host(&[parent(CARD, &[now])]));
        assert_eq!(life.shifts.len(), 1, "{:?}", life.shifts);
        assert_eq!(life.look(&good).state, TraitState::Ok);
    }
}

#[test]
fn one_drifted_card_holds_the_trait_back_on_all() {
    let mut life = Life::of(bound("GRID T4-2Q"));
    let good = |addr| parent(addr, &[("nvidia-231", "GRID T4-2Q", 2048)]);
    life.look(&host(&[good(CARD), good(OTHER_CARD)]));
    let bad = parent(OTHER_CARD, &[("nvidia-231", "GRID T4-2B", 2048)]);
    let now = life.look(&host(&[good(CARD), bad]));
    assert_eq!(now.state, TraitState::Drift);
    assert!(is_at(&now, &CARD.parse().unwrap()) && is_at(&now, &OTHER_CARD.parse().unwrap()));
}

#[test]
fn an_identity_that_is_not_offered_any_more_is_unavailable() {
    let mut life = Life::of(bound("GRID T4-2Q"));
    life.look(&host(&[parent(CARD, &[("nvidia-231", "GRID T4-2Q", 2048)])]));
    let gone = life.look(&host(&[parent(CARD, &[("nvidia-9", "GRID T4-16Q", 16384)])]));
    assert_eq!(gone.state, TraitState::Unavailable);
    assert!(gone.reason.contains("GRID T4-2Q"), "{}", gone.reason);
    // A card that is away takes nothing with it.
    life.look(&host(&[]));
    assert_eq!(
        life.look(&host(&[parent(CARD, &[("nvidia-231", "GRID T4-2Q", 2048)])])).state,
        TraitState::Ok
    );
    assert_eq!(life.shifts, []);
}

#[test]
fn two_identities_are_ambiguous_and_both_are_named() {
    let two = host(&[
        parent(CARD, &[("nvidia-231", "GRID T4-2Q", 2048)]),
        parent(OTHER_CARD, &[("nvidia-5", "GRID T4-2Q", 4096)]),
    ]);
    let mut life = Life::of(bound("GRID T4-2Q"));
    let first = life.look(&two);
    assert_eq!(first.state, TraitState::Ambiguous);
    assert!(first.reason.contains("2048 MiB") && first.reason.contains("4096 MiB"), "{}", first.reason);
    // The same when the second one comes later.
    let mut later = Life::of(bound("GRID T4-2Q"));
    later.look(&host(&two.parents[..1]));
    assert_eq!(later.look(&two).state, TraitState::Ambiguous);
    // Narrowed, each is one.
    let narrow = Binding { framebuffer_mib: Some(4096), ..bound("GRID T4-2Q") };
    assert_eq!(ids(&Life::of(narrow).look(&two)), [format!("{OTHER_CARD} nvidia-5")]);
}

#[test]
fn the_lock_wins_over_the_words_of_the_file() {
    let here = parent(CARD, &[("nvidia-231", "GRID T4-2Q", 2048)]);
    let locked = |p: &Parent| [(gold(), TypeIdentity::of(p, &p.types[0]))].into();
    let mut life = Life::of(bound("GRID T4-2Q"));
    life.locked = locked(&here);
    assert_eq!(life.look(&host(std::slice::from_ref(&here))).state, TraitState::Ok);
    // A host that never knew anything else, where the words fit a type of another size.
    let mut fresh = Life::of(bound("GRID T4-2Q"));
    fresh.locked = locked(&parent(CARD, &[("nvidia-231", "GRID T4-2Q", 4096)]));
    let drift = fresh.look(&host(std::slice::from_ref(&here)));
    assert_eq!((drift.state, is_at(&drift, &here.addr)), (TraitState::Drift, true));
    assert!(drift.reason.contains("4096 MiB") && drift.reason.contains("2048 MiB"), "{}", drift.reason);
}

#[test]
fn a_type_without_a_name_is_its_id_on_that_kind_of_card() {
    let gvt =
        |device| Parent { device_id: Some(device), ..parent("0000:00:02.0", &[("i915-GVTg_V5_4", "", 128)]) };
    let mut life = Life::of(bound("i915-GVTg_V5_4"));
    let found = life.look(&host(&[gvt(0x1912)]));
    assert!(found.reason.contains("less safe"), "{}", found.reason);
    assert_eq!((found.state, found.identity.unwrap().device_id), (TraitState::Ok, Some(0x1912)));
    assert_eq!(life.look(&host(&[gvt(0x5912)])).state, TraitState::Drift);
}

#[test]
fn what_is_remembered_is_one_row_per_parent_and_nothing_is_learned_twice() {
    let mut life = Life::of(bound("GRID T4-2Q"));
    let scan = host(&[CARD, OTHER_CARD].map(|addr| parent(addr, &[("nvidia-231", "GRID T4-2Q", 2048)])));
    let lesson = life.lesson_of(&scan);
    let parents: Vec<String> = lesson.meanings.iter().map(|m: &Meaning| m.parent.to_string()).collect();
    assert_eq!(parents, [CARD, OTHER_CARD]);
    life.look(&scan);
    assert!(life.lesson_of(&scan).is_empty());
}

mod travels {
    //! What one host makes of its traits is what any host with the same hardware makes of its export.

    use proptest::prelude::*;

    use super::*;
    use crate::catalog::{Export, digest};

    fn types() -> impl Strategy<Value = Vec<(u32, u8, u32)>> {
        prop::collection::btree_map(1u32..40, (0u8..6, 1u32..4), 0..6)
            .prop_map(|all| all.into_iter().map(|(id, (name, size))| (id, name, size * 1024)).collect())
    }

    fn card(number: usize, offered: &[(u32, u8, u32)], offset: u32) -> Parent {
        let names: Vec<(String, String)> = offered
            .iter()
            .map(|(id, name, _)| (format!("nvidia-{}", id + offset), format!("GRID X{name}-Q")))
            .collect();
        let types: Vec<(&str, &str, u32)> = names
            .iter()
            .zip(offered)
            .map(|((id, name), (_, _, mib))| (id.as_str(), name.as_str(), *mib))
            .collect();
        parent(&format!("0000:{number:02x}:00.0"), &types)
    }

    fn meant(resolution: &Resolution) -> BTreeMap<TraitName, (TraitState, Option<TypeIdentity>)> {
        let one = |(name, r): (&TraitName, &Resolved)| (name.clone(), (r.state, r.identity.clone()));
        resolution.iter().map(one).collect()
    }

    fn resolved(
        catalog: &Catalog,
        locked: &BTreeMap<TraitName, TypeIdentity>,
        scan: &HostScan,
    ) -> Resolution {
        resolve(catalog, locked, &Memory::default(), scan, &mut Lesson::default())
    }

    proptest! {
        #[test]
        fn with_its_export(cards in prop::collection::vec(types(), 0..4), traits in prop::collection::btree_map("CUSTOM_[A-C]", 0u8..6, 0..4), offset in 0u32..1000) {
            let catalog = Catalog {
                bindings: traits.iter().map(|(t, n)| (t.parse().unwrap(), bound(&format!("GRID X{n}-Q")))).collect(),
            };
            let at = |offset| host(&cards.iter().enumerate().map(|(n, offered)| card(n, offered, offset)).collect::<Vec<_>>());
            let here = resolved(&catalog, &BTreeMap::new(), &at(0));
            let export = Export::of("here", None, &meant(&here));
            let read = Export::parse(&serde_json::to_vec(&export).unwrap(), "here").unwrap();
            // Another driver: other ids, the same types. Its lock is what the first host exported.
            let there = resolved(&catalog, &read.identities(), &at(offset));
            for (name, (state, identity)) in meant(&here) {
                if identity.is_some() {
                    prop_assert_eq!((&there[&name].state, &there[&name].identity), (&state, &identity));
                }
            }
            let known = |r: &Resolution| digest(meant(r).iter().filter_map(|(n, (_, i))| Some((n, i.as_ref()?))));
            prop_assert_eq!(known(&here), read.digest());
        }
    }
}

#[test]
fn an_operator_who_names_another_type_is_obeyed_and_it_is_told() {
    let scan = host(&[parent(CARD, &[("nvidia-1", "GRID T4-2Q", 2048), ("nvidia-2", "GRID T4-4Q", 4096)])]);
    let mut life = Life::of(bound("GRID T4-2Q"));
    life.look(&scan);
    life.catalog.bindings.insert(gold(), bound("GRID T4-4Q"));
    for _ in 0..2 {
        let now = life.look(&scan);
        assert_eq!((now.state, ids(&now)), (TraitState::Ok, vec![format!("{CARD} nvidia-2")]));
    }
    let told: Vec<ShiftKind> = life.shifts.iter().map(|(kind, ..)| *kind).collect();
    assert_eq!(told, [ShiftKind::Accepted]);
    // So it is when only the narrowing moves.
    life.catalog.bindings.insert(gold(), Binding { framebuffer_mib: Some(2048), ..bound("GRID T4-4Q") });
    assert_eq!(
        ids(&life.look(&scan)),
        [format!("{CARD} nvidia-2")],
        "words that name nothing here change nothing"
    );
}

#[test]
fn words_against_the_lock_are_drift_with_both_named() {
    let here = parent(CARD, &[("nvidia-1", "GRID T4-2Q", 2048), ("nvidia-2", "GRID T4-4Q", 4096)]);
    let mut life = Life::of(bound("GRID T4-4Q"));
    life.locked = [(gold(), TypeIdentity::of(&here, &here.types[0]))].into();
    let now = life.look(&host(std::slice::from_ref(&here)));
    assert_eq!(now.state, TraitState::Drift);
    assert!(now.reason.contains("GRID T4-2Q") && now.reason.contains("GRID T4-4Q"), "{}", now.reason);
    assert_eq!(now.instead[&here.addr], TypeIdentity::of(&here, &here.types[1]));
}

#[test]
fn an_accepted_name_outlives_the_words_of_the_file() {
    let mut life = Life::of(bound("GRID T4-2Q"));
    life.look(&host(&[parent(CARD, &[("nvidia-1", "GRID T4-2Q", 2048)])]));
    let renamed = host(&[parent(CARD, &[("nvidia-1", "GRID NG T4-2Q", 2048)])]);
    let drifted = life.look(&renamed);
    let wish = crate::catalog::accept::Wish { parent: None, reason: "so it is called" };
    let binding = life.catalog.bindings[&gold()].clone();
    let around = (&life.memory, &renamed);
    let (_, lesson) =
        crate::catalog::accept::accept_trait(&gold(), &binding, &drifted, wish, around).unwrap();
    life.memory = life.memory.after(&lesson);
    for _ in 0..2 {
        assert_eq!(life.look(&renamed).state, TraitState::Ok);
    }
}
