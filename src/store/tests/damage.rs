//! Files and words that cannot be.

use super::fixture::*;
use crate::model::{ClaimRole, ClaimState, Fault, FaultKind, SagaState, StepEvent};
use crate::store::{Books, Store, StoreError};

fn begun() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.begin(spawn(1)).unwrap();
    (dir, store)
}

#[test]
fn a_file_that_is_no_database() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("state.db"), "[traits]\n".repeat(1000)).unwrap();
    let err = try_open(dir.path()).unwrap_err();
    assert!(matches!(err, StoreError::Corrupt(_)), "{err}");
    assert!(!err.is_temporary());
    assert_eq!(Fault::from(err).kind, FaultKind::StoreUnavailable);
}

#[test]
fn a_torn_file_is_found_at_the_start() {
    let (dir, store) = begun();
    sql(&store, "PRAGMA wal_checkpoint(TRUNCATE)");
    drop(store);
    let path = dir.path().join("state.db");
    let mut bytes = std::fs::read(&path).unwrap();
    // A page in the middle is lost.
    bytes[3 * 4096..4 * 4096].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let err = try_open(dir.path()).unwrap_err();
    assert!(matches!(err, StoreError::Corrupt(_)), "{err}");
}

#[test]
fn a_row_that_belongs_to_nothing_is_found_at_the_start() {
    for (table, statement) in [
        ("claim", "DELETE FROM own_device"),
        ("claim", "DELETE FROM instance"),
        ("saga_event", "DELETE FROM saga"),
    ] {
        let (dir, store) = begun();
        sql(&store, &format!("PRAGMA foreign_keys = OFF; {statement}"));
        drop(store);
        let err = try_open(dir.path()).unwrap_err();
        assert!(matches!(&err, StoreError::Corrupt(why) if why.contains(table)), "{statement}: {err}");
    }
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let (dir, store) = begun();
    sql(&store, "PRAGMA user_version = 7");
    drop(store);
    let err = try_open(dir.path()).unwrap_err();
    assert!(matches!(err, StoreError::SchemaTooNew { found: 7, known: 5 }), "{err}");
    assert!(err.to_string().contains("install the newer version"));
    assert!(matches!(try_open(dir.path()), Err(StoreError::SchemaTooNew { .. })), "the number is as it was");
}

#[test]
fn an_unknown_word_is_never_a_default() {
    for (statement, column) in [
        ("UPDATE claim SET state = 'gone'", "state"),
        ("UPDATE claim SET role = 'guest'", "role"),
        ("UPDATE claim SET device_api = 'vfio-usb'", "device_api"),
        ("UPDATE claim SET traits = '[\"custom lower\"]'", "traits"),
        ("UPDATE claim SET parent = '0000:86:00'", "parent"),
        ("UPDATE instance SET owner = 'nobody'", "owner"),
        ("UPDATE own_device SET type_id = '../x'", "type_id"),
    ] {
        let (dir, store) = begun();
        sql(&store, &format!("PRAGMA foreign_keys = OFF; {statement}"));
        let err = store.read(Books::read).unwrap_err().to_string();
        assert!(err.contains("damaged") && err.contains(column), "{statement}: {err}");
        drop(store);
        let err = try_open(dir.path()).unwrap_err();
        assert!(matches!(err, StoreError::Corrupt(_)), "{statement}: {err}");
    }
    for (statement, column) in [
        ("UPDATE saga SET state = 'asleep'", "state"),
        ("UPDATE saga SET op = 'teleport'", "op"),
        ("UPDATE saga SET params = 'x'", "params"),
        ("UPDATE saga SET version = -1", "-1"),
    ] {
        let (_dir, store) = begun();
        sql(&store, statement);
        let err = store.saga(job_id(1)).unwrap_err();
        assert!(matches!(err, StoreError::Corrupt(_)), "{err}");
        assert!(err.to_string().contains(column), "{statement}: {err}");
    }
    let (_dir, store) = begun();
    sql(&store, "UPDATE saga_event SET event = 'paused'");
    assert!(matches!(store.events(job_id(1)), Err(StoreError::Corrupt(_))));
}

/// The CHECK lists of the newest schema are the words of the model, no more and no less.
#[test]
fn the_schema_knows_the_words() {
    fn words<T: Copy>(all: &[T], word: fn(T) -> &'static str) -> Vec<&'static str> {
        all.iter().map(|value| word(*value)).collect()
    }
    let (_dir, store) = begun();
    let conn = store.writer.connection();
    for (table, column, words) in [
        ("claim", "state", words(ClaimState::ALL, ClaimState::as_str)),
        ("claim", "role", words(ClaimRole::ALL, ClaimRole::as_str)),
        ("saga", "state", words(SagaState::ALL, SagaState::as_str)),
        ("saga_event", "event", words(StepEvent::ALL, StepEvent::as_str)),
    ] {
        let sql: String = conn
            .query_row("SELECT sql FROM sqlite_schema WHERE name = ?1", [table], |row| row.get(0))
            .unwrap();
        let list: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
        let check = format!("CHECK ({column} IN ({}))", list.join(", "));
        assert!(sql.contains(&check), "{table} lacks {check}");
    }
    assert!(conn.execute("UPDATE claim SET state = 'gone'", []).is_err());
}
