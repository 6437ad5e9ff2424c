//! Restarts, the lock, and edits that cannot be written.

use super::*;

fn device(n: u128) -> Mdev {
    Mdev {
        uuid: MdevUuid(uuid::Uuid::from_u128(n)),
        parent: "0000:84:00.0".parse().unwrap(),
        type_id: Some("nvidia-18".parse().unwrap()),
        active: true,
        defined: true,
        parent_missing: false,
        iommu_group: Some(500),
    }
}

fn domain(n: u128, live: bool) -> SimDomain {
    SimDomain {
        saved: None,
        autostart: false,
        uuid: InstanceUuid(uuid::Uuid::from_u128(n)),
        name: format!("vm-{n}"),
        live: live.then(|| "<domain/>".to_owned()),
        defined: Some("<domain/>".to_owned()),
        holds: BTreeSet::from([MdevUuid(uuid::Uuid::from_u128(n))]),
    }
}

#[test]
fn a_new_daemon_finds_what_the_old_one_left() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.json");
    let mut state = State::open(Some(&path)).unwrap();
    state.seed(vec![device(1)], vec![domain(1, true)]).unwrap();
    let map = BTreeMap::from([("nvidia-18".parse().unwrap(), "nvidia-20".parse().unwrap())]);
    let gone = Edit::Absent { parent: "0000:85:00.0".parse().unwrap(), to: true };
    state.apply(vec![Edit::device(device(2)), Edit::Numbering(map), gone]).unwrap();
    let before = state.table().clone();
    drop(state);
    assert_eq!(State::open(Some(&path)).unwrap().table(), &before);
}

#[test]
fn what_was_removed_is_not_seeded_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.json");
    let mut state = State::open(Some(&path)).unwrap();
    state.seed(vec![device(1)], vec![domain(1, true), domain(2, false)]).unwrap();
    let off = SimDomain { live: None, defined: None, ..domain(1, true) };
    let no_device = Edit::Device { uuid: device(1).uuid, parent: device(1).parent, to: None };
    state.apply(vec![no_device, Edit::domain(off)]).unwrap();
    drop(state);
    let mut state = State::open(Some(&path)).unwrap();
    state.seed(vec![device(1), device(3)], vec![domain(1, true), domain(2, false)]).unwrap();
    assert_eq!(state.table().devices, [device(3)]);
    assert_eq!(state.table().domains, [domain(2, false)]);
}

#[test]
fn a_second_daemon_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.json");
    let first = State::open(Some(&path)).unwrap();
    let err = State::open(Some(&path)).unwrap_err().to_string();
    assert!(err.contains("another daemon") && err.contains("host.json"), "{err}");
    drop(first);
    State::open(Some(&path)).unwrap();
}

#[test]
fn an_edit_that_cannot_be_written_is_taken_back() {
    let dir = tempfile::tempdir().unwrap();
    let sub = dir.path().join("sub");
    fs::create_dir(&sub).unwrap();
    let mut state = State::open(Some(&sub.join("host.json"))).unwrap();
    state.seed(vec![device(1)], vec![domain(1, true)]).unwrap();
    let before = state.table().clone();
    fs::remove_dir_all(&sub).unwrap();
    let changed = Mdev { active: false, ..device(1) };
    let err = state
        .apply(vec![
            Edit::device(changed),
            Edit::device(device(2)),
            Edit::Domain { uuid: domain(1, true).uuid, to: None },
            Edit::Absent { parent: "mtty_mtty".parse().unwrap(), to: true },
            Edit::Absent { parent: "ap_matrix".parse().unwrap(), to: false },
        ])
        .unwrap_err();
    assert!(err.to_string().contains("cannot write"), "{err}");
    assert_eq!(state.table(), &before);
}

#[test]
fn a_damaged_file_is_an_error_and_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.json");
    fs::write(&path, "{\"devices\": [").unwrap();
    let err = State::open(Some(&path)).unwrap_err().to_string();
    assert!(err.contains("host.json") && err.contains("remove the file"), "{err}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"devices\": [");
}

#[test]
fn only_a_running_domain_holds_its_devices() {
    let mut state = State::open(None).unwrap();
    state.seed(vec![], vec![domain(1, true), domain(2, false)]).unwrap();
    assert_eq!(state.table().holder(device(1).uuid).unwrap().name, "vm-1");
    assert!(state.table().holder(device(2).uuid).is_none());
}
