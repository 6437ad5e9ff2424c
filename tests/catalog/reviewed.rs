//! The traits of every type of the samples against a table that a person reviewed: `MDEVIRT_REGEN=1` rewrites
//! `tests/golden/catalog/`, and whoever commits the change has compared it with the rows' sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use mdevirt::catalog::capability::standard_traits;
use mdevirt::catalog::series::several_per_vm;
use mdevirt::catalog::type_name::{licence_trait, shared_name_traits};
use mdevirt::model::TraitName;

use crate::samples::{self, Listed};

fn assert_golden(name: &str, got: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/catalog").join(name);
    if std::env::var_os("MDEVIRT_REGEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, got).unwrap();
    }
    let want = std::fs::read_to_string(&path)
        .unwrap_or_else(|err| panic!("{}: {err}; MDEVIRT_REGEN=1 writes it", path.display()));
    assert_eq!(got, want, "{name} differs; MDEVIRT_REGEN=1 rewrites it, review it against the sources");
}

/// Trait sets of the three kinds, each under a short word: its greatest trait and how many there are.
#[derive(Default)]
struct Legend(BTreeMap<String, BTreeSet<String>>);

impl Legend {
    fn word(
        &mut self,
        kind: &str,
        traits: &BTreeSet<TraitName>,
        has: &str,
        greatest: fn(&str) -> u64,
    ) -> String {
        let of_kind: BTreeSet<String> =
            traits.iter().map(|t| t.as_str().to_owned()).filter(|t| t.contains(has)).collect();
        let Some(top) = of_kind.iter().max_by_key(|t| greatest(t)) else { return "-".to_owned() };
        let short = top.rsplit(has).next().unwrap().trim_start_matches('_');
        let word = format!("{kind} {short} ({})", of_kind.len());
        let before = self.0.entry(word.clone()).or_insert_with(|| of_kind.clone());
        assert_eq!(*before, of_kind, "two sets are called {word}");
        word
    }
}

/// Heads, or the pixels of a resolution.
fn number(name: &str) -> u64 {
    let numbers = name.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse::<u64>().ok());
    numbers.product()
}

fn line(legend: &mut Legend, listed: &Listed) -> String {
    let Listed { parent, mdev_type } = listed;
    let traits = standard_traits(parent, mdev_type);
    let cuda = traits.iter().map(TraitName::as_str).find(|t| t.contains("_CUDA_"));
    let cells = [
        mdev_type.label().to_owned(),
        mdev_type.name.as_deref().and_then(licence_trait).map_or("-".to_owned(), |t| t.to_string()),
        legend.word("heads", &traits, "HEADS", number),
        legend.word("resolution", &traits, "RESOLUTION", number),
        cuda.unwrap_or("-").to_owned(),
        legend.word("api", &traits, "_API", |t| if t.contains("OPENCL") { 1 } else { 0 }),
        match several_per_vm(parent, mdev_type).allowed {
            Some(true) => "several",
            Some(false) => "one",
            None => "unknown",
        }
        .to_owned(),
    ];
    cells.join(" | ")
}

fn table(sections: &[(&str, Vec<Listed>)]) -> String {
    let mut legend = Legend::default();
    let mut out = String::from(
        "type | series | heads | resolution | cuda | interfaces | slices of one GPU in one VM\n",
    );
    for (head, types) in sections {
        writeln!(out, "\n== {head}: {} types", types.len()).unwrap();
        for listed in types {
            writeln!(out, "{}", line(&mut legend, listed)).unwrap();
        }
    }
    for (word, traits) in &legend.0 {
        write!(out, "\n== {word}\n").unwrap();
        traits.iter().for_each(|t| writeln!(out, "{t}").unwrap());
    }
    out
}

#[test]
fn the_type_table_of_18_boards() {
    let types = samples::type_table();
    assert_eq!(types.len(), 327);
    let boards: BTreeSet<&str> =
        types.iter().map(|t| t.mdev_type.label().split_once('-').unwrap().0).collect();
    assert_eq!(boards.len(), 18);
    assert_golden("type-table.txt", &table(&[("21", types)]));
}

#[test]
fn the_other_listings() {
    let sections = [
        ("01 A2 VF, mdev", samples::a2()),
        ("02, 19, 20 vendor-vfio", samples::vendor_vfio()),
        ("04 V100", samples::v100()),
        ("12 M60", samples::m60()),
        ("13 P40", samples::p40()),
        ("15, 16 documents", samples::documents()),
        ("17 A40 VF, mdev, no descriptions", samples::a40()),
        ("22 GVT-g", samples::gvt()),
    ];
    let counts: Vec<usize> = sections.iter().map(|(_, types)| types.len()).collect();
    assert_eq!(counts, [15, 68, 17, 14, 7, 3, 22, 2]);
    assert_golden("listings.txt", &table(&sections));
}

/// Descriptions of the same type by two drivers differ in what a newer one prints, not in series or CUDA.
#[test]
fn listings_of_one_board_agree_with_the_type_table() {
    let table = samples::type_table();
    let known: BTreeMap<&str, &Listed> = table.iter().map(|t| (t.mdev_type.label(), t)).collect();
    let mut seen = 0;
    for listed in [samples::a2(), samples::v100(), samples::m60(), samples::p40()].into_iter().flatten() {
        let Some(same) = known.get(listed.mdev_type.label()) else { continue };
        let (old, new) = (
            standard_traits(&same.parent, &same.mdev_type),
            standard_traits(&listed.parent, &listed.mdev_type),
        );
        let differing: Vec<&TraitName> = old.symmetric_difference(&new).collect();
        assert!(
            differing.iter().all(|t| t.as_str() == "CUSTOM_HW_GPU_RESOLUTION_W4096H2400"),
            "{}: {differing:?}",
            listed.mdev_type.label()
        );
        seen += 1;
    }
    assert_eq!(seen, 53);
}

#[test]
fn every_name_has_a_trait_of_its_own() {
    let types = samples::type_table();
    let names: Vec<&str> = types.iter().filter_map(|t| t.mdev_type.name.as_deref()).collect();
    assert!(names.iter().all(|name| TraitName::for_type_name(name).is_some()));
    assert_eq!(shared_name_traits(names.iter().copied()), BTreeMap::new());
}
