//! The directory, the file and the disk.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use super::fixture::*;
use crate::model::{Fault, FaultKind, SagaState};
use crate::store::{Begin, Entry, StoreError};

#[test]
fn one_store_per_directory() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let err = try_open(dir.path()).unwrap_err();
    assert!(matches!(err, StoreError::Locked { .. }), "{err}");
    assert!(err.is_temporary());
    drop(store);
    open(dir.path());
}

#[test]
fn the_file_is_ours_alone() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("lib/mdevirt");
    let store = open(&deep);
    store.begin(spawn(1)).unwrap();
    for name in ["state.db", "state.db-wal"] {
        let mode = std::fs::metadata(deep.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn every_connection_is_durable() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let pragma = |conn: &rusqlite::Connection, name: &str| -> String {
        conn.pragma_query_value(None, name, |row| Ok(format!("{:?}", row.get_ref(0)?))).unwrap()
    };
    let check = |conn: &rusqlite::Connection, query_only: &str| {
        assert!(pragma(conn, "journal_mode").contains("119, 97, 108"), "wal");
        assert_eq!(pragma(conn, "synchronous"), "Integer(2)");
        assert_eq!(pragma(conn, "foreign_keys"), "Integer(1)");
        assert_eq!(pragma(conn, "busy_timeout"), "Integer(5000)");
        assert_eq!(pragma(conn, "query_only"), query_only);
    };
    check(&store.writer.connection(), "Integer(0)");
    store
        .read(|conn| {
            check(conn, "Integer(1)");
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_directory_that_cannot_be_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let err = try_open(&file.join("state")).unwrap_err();
    let fault = Fault::from(err);
    assert_eq!(fault.kind, FaultKind::StoreUnavailable);
    assert!(fault.message.contains("file/state"), "{fault}");
}

#[test]
fn a_full_disk_changes_nothing_and_passes() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.begin(spawn(1)).unwrap();
    sql(&store, "PRAGMA max_page_count = 1");
    let large = || {
        let mut begin = spawn(2);
        begin.saga.params = serde_json::json!("x".repeat(1 << 20));
        begin
    };
    let before = store.books();
    let err = store.begin(large()).unwrap_err();
    assert!(matches!(&err, StoreError::Unavailable(_)) && err.is_temporary(), "{err}");
    let fault = Fault::from(err);
    assert_eq!(fault.kind, FaultKind::StoreUnavailable);
    assert!(fault.message.contains("full"), "{fault}");
    assert_eq!(store.books(), before);
    assert_eq!(store.saga(job_id(2)).unwrap(), None);
    sql(&store, "PRAGMA max_page_count = 1000000");
    store.begin(large()).unwrap();
}

#[test]
fn a_lock_of_others_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.begin(spawn(1)).unwrap();
    store.writer.connection().busy_timeout(std::time::Duration::ZERO).unwrap();
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
    let backup = rusqlite::Connection::open_with_flags(dir.path().join("state.db"), flags).unwrap();
    backup.execute_batch("BEGIN IMMEDIATE").unwrap();
    let entry = || Entry::new().turn(SagaState::Stuck, None);
    let err = store.advance(job_id(1), entry()).unwrap_err();
    assert!(matches!(&err, StoreError::Unavailable(_)), "{err}");
    assert!(Fault::from(err).message.contains("locked"));
    // Reading goes on meanwhile.
    assert_eq!(store.saga(job_id(1)).unwrap().unwrap().state, SagaState::Running);
    backup.execute_batch("ROLLBACK").unwrap();
    store.advance(job_id(1), entry()).unwrap();
}

#[test]
fn readers_do_not_wait_for_the_writer() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(open(dir.path()));
    store.begin(spawn(1)).unwrap();
    let reader = Arc::clone(&store);
    let recheck = move |_: &crate::store::Books| {
        // In the middle of the write: the last commit is what is seen.
        assert_eq!(reader.open_sagas().unwrap().len(), 1);
        assert_eq!(reader.books().claims().len(), 1);
        Ok(())
    };
    store.begin(Begin { recheck: Some(Box::new(recheck)), ..spawn(2) }).unwrap();
    assert_eq!(store.open_sagas().unwrap().len(), 2);
}
