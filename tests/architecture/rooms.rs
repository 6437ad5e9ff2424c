//! Rooms and ranks, and which room may import which.

use std::collections::{BTreeMap, BTreeSet};

use crate::imports::{Import, of_this_crate};
use crate::source::Source;

/// Every room with its rank: a file imports from lower ranks or from its own room.
const ROOMS: [(&str, u8); 22] = [
    ("model", 0),
    ("text", 0),
    ("plan", 1),
    ("catalog", 1),
    ("config", 1),
    ("xml", 1),
    ("store", 1),
    ("host", 1),
    ("host/libvirt", 2),
    ("host/sysfs", 2),
    ("host/mdevctl_d", 2),
    ("host/sim", 2),
    ("host/vendor", 2),
    ("saga", 2),
    ("report", 2),
    ("ops", 3),
    ("service", 4),
    ("dbus", 5),
    ("cli", 6),
    ("hook", 6),
    ("daemon", 7),
    ("bin", 8),
];

/// Imports between rooms of one rank. The parts of `host` may use each other as well; no circle comes of either.
const BESIDE: [(&str, &str); 4] = [
    ("text", "model"),   // errors become faults, words become names
    ("plan", "config"),  // decisions follow the operator's wishes
    ("plan", "catalog"), // and the identities that traits are bound to
    ("cli", "hook"),     // `mdevirtctl hook` is how libvirt reaches it
];

/// Imports that no rank forbids and the design does: the journal's laws know nothing of the host.
const NEVER: [(&str, &str); 1] = [("saga", "host")];

/// Rooms behind the traits of `host`: others get them from `daemon`, which wires them. Tests may build what they need.
const WIRED: [&str; 5] = ["host/libvirt", "host/sysfs", "host/mdevctl_d", "host/sim", "host/vendor"];

/// One sentence for each import that the table above does not allow.
pub(crate) fn climbs(files: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        match room_of_file(&file.path) {
            Some(from) => found.extend(imports_of(file).filter_map(|import| complaint(file, from, &import))),
            None if file.path == "src/lib.rs" => {}
            None => found.push(format!("{} is in no room of tests/architecture/rooms.rs", file.path)),
        }
    }
    found
}

/// Rooms that import each other in a circle, each circle as `a > b > a`.
pub(crate) fn cycles(files: &[Source]) -> Vec<String> {
    let mut graph: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in files {
        let Some(from) = room_of_file(&file.path) else { continue };
        let rooms =
            imports_of(file).filter(|import| !import.in_test).filter_map(|import| room_of_import(&import));
        graph.entry(from).or_default().extend(rooms.filter(|to| *to != from));
    }
    let mut found = BTreeSet::new();
    for start in graph.keys() {
        trace(&graph, start, &mut vec![start], &mut found);
    }
    found.into_iter().collect()
}

fn trace<'a>(
    graph: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    room: &'a str,
    path: &mut Vec<&'a str>,
    found: &mut BTreeSet<String>,
) {
    for next in graph.get(room).into_iter().flatten() {
        if *next == path[0] {
            found.insert(format!("{} > {next}", path.join(" > ")));
        } else if *next > path[0] && !path.contains(next) {
            // Each circle is told once, from its first room on.
            path.push(next);
            trace(graph, next, path, found);
            path.pop();
        }
    }
}

fn imports_of(file: &Source) -> impl Iterator<Item = Import> {
    of_this_crate(file).into_iter()
}

fn complaint(file: &Source, from: &str, import: &Import) -> Option<String> {
    let place = format!("{}:{}", file.path, import.line);
    let path = import.path.join("::");
    let Some(to) = room_of_import(import) else {
        return Some(format!("{place}: crate::{path} is in no room"));
    };
    let why = refusal(from, to, import.in_test)?;
    Some(format!("{place}: {from} imports crate::{path}: {why}"))
}

fn refusal(from: &str, to: &str, in_test: bool) -> Option<String> {
    if from == to || is_part(from, to) {
        return None;
    }
    if NEVER.iter().any(|(a, b)| *a == from && (*b == to || is_part(to, b))) {
        return Some(format!("{from} must not know {to}"));
    }
    if WIRED.contains(&to) && !(in_test || from == "daemon" || is_part(from, "host")) {
        return Some("only daemon names what stands behind the traits of host".to_owned());
    }
    let parts_of_host = is_part(from, "host") && is_part(to, "host");
    let (mine, other) = (rank(from), rank(to));
    let fine = other < mine || (other == mine && (parts_of_host || BESIDE.contains(&(from, to))));
    (!fine).then(|| format!("rank {mine} takes from lower ranks only, {to} has {other}"))
}

fn rank(room: &str) -> u8 {
    ROOMS.iter().find(|(name, _)| *name == room).map(|(_, rank)| *rank).unwrap()
}

/// `host/sim` is a part of `host`.
fn is_part(room: &str, of: &str) -> bool {
    room.strip_prefix(of).is_some_and(|rest| rest.starts_with('/'))
}

fn room_of_file(path: &str) -> Option<&'static str> {
    let inner = path.strip_prefix("src/")?;
    let inner = inner.strip_suffix(".rs")?;
    innermost(&inner.split('/').collect::<Vec<_>>())
}

fn room_of_import(import: &Import) -> Option<&'static str> {
    innermost(&import.path.iter().map(String::as_str).collect::<Vec<_>>())
}

fn innermost(parts: &[&str]) -> Option<&'static str> {
    let name_of = |length: usize| parts.get(..length).map(|parts| parts.join("/"));
    [2, 1]
        .into_iter()
        .filter_map(name_of)
        .find_map(|name| ROOMS.iter().find(|(room, _)| *room == name).map(|(room, _)| *room))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn climb(path: &str, text: &str) -> Vec<String> {
        climbs(&[Source::new(path, text)])
    }

    #[test]
    fn planted_climbs_are_found() {
        for (path, text, word) in [
            ("src/model/claim.rs", "use crate::store::Books;", "rank 0"),
            ("src/plan/pick.rs", "fn f() { crate::host::scan(); }", "rank 1"),
            ("src/store/mod.rs", "use crate::{model::Claim, service::api};", "service::api"),
            ("src/config/mod.rs", "use crate::plan::mapping;", "rank 1"),
            ("src/model/vocab.rs", "use crate::text::Reader;", "rank 0"),
            ("src/catalog/lock.rs", "use crate::config::Config;", "rank 1"),
            ("src/saga/run.rs", "use crate::host::HostError;", "saga must not know host"),
            ("src/saga/run.rs", "use crate::host::sim::Sim;", "saga must not know host/sim"),
            ("src/ops/spawn.rs", "use crate::host::libvirt::Link;", "only daemon"),
            ("src/host/mod.rs", "use crate::host::sim::Sim;", "only daemon"),
            ("src/host/sim/mod.rs", "use crate::ops::spawn;", "rank 2"),
            ("src/xml/mod.rs", "use super::store::X;", "rank 1"),
            ("src/hook/mod.rs", "use crate::cli::args;", "rank 6"),
            ("src/xml/mod.rs", "#[cfg(test)] mod tests { use crate::cli::X; }", "rank 1"),
            ("src/attic/mod.rs", "", "in no room"),
            ("src/ops/mod.rs", "use crate::attic::X;", "in no room"),
        ] {
            let found = climb(path, text);
            assert!(found.len() == 1 && found[0].contains(word), "{path} {text}: {found:?}");
        }
    }

    #[test]
    fn what_is_drawn_is_allowed() {
        for (path, text) in [
            ("src/lib.rs", "pub mod attic;"),
            ("src/plan/mapping.rs", "use crate::config::Config; use crate::model::X; use crate::plan::pick;"),
            (
                "src/host/sim/mod.rs",
                "use crate::host::libvirt::X; use crate::host::HostError; use crate::xml::nodedev;",
            ),
            ("src/host/sysfs.rs", "use super::HostError;"),
            ("src/service/mod.rs", "#[cfg(test)] mod tests { use crate::host::sim::Sim; }"),
            ("src/service/tests.rs", "use crate::host::sim::Sim;"),
            ("src/daemon/mod.rs", "use crate::host::libvirt::Link;"),
            ("src/bin/mdevirtd.rs", "fn main() { mdevirt::daemon::main() }"),
        ] {
            assert_eq!(climb(path, text), Vec::<String>::new(), "{path}");
        }
    }

    #[test]
    fn planted_circles_are_found() {
        let files = [
            Source::new("src/host/libvirt/a.rs", "use crate::host::sim::B; use crate::model::M;"),
            Source::new("src/host/sim/b.rs", "use crate::host::sysfs::C;"),
            Source::new("src/host/sysfs.rs", "use crate::host::libvirt::A;"),
            Source::new("src/ops/mod.rs", "#[cfg(test)] mod tests { use crate::service::X; }"),
            Source::new("src/service/mod.rs", "use crate::ops::X;"),
        ];
        assert_eq!(cycles(&files), ["host/libvirt > host/sim > host/sysfs > host/libvirt"]);
    }
}
