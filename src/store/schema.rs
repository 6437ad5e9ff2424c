//! The schema files, oldest first. A released file is never edited: what moves, moves in a new one, and a database of
//! each released schema is kept under `tests/upgrade/`.

use rusqlite::Connection;
use rusqlite_migration::{M, Migrations};

use super::error::StoreError;

const FILES: &[M<'static>] = &[
    M::up(include_str!("schema/0001_books.sql")),
    M::up(include_str!("schema/0002_meanings.sql")),
    M::up(include_str!("schema/0003_moves.sql")),
    M::up(include_str!("schema/0004_plain.sql")),
    M::up(include_str!("schema/0005_live.sql")),
];

/// Applies what is missing, each file in one transaction.
///
/// # Errors
/// `SchemaTooNew` and `Corrupt` before anything is changed; `Unavailable`.
pub(super) fn bring_up_to_date(conn: &mut Connection) -> Result<(), StoreError> {
    let found: i64 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let known = i64::try_from(FILES.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(StoreError::SchemaTooNew { found, known });
    }
    check(conn)?;
    Migrations::from_slice(FILES).to_latest(conn).map_err(|err| {
        if let rusqlite_migration::Error::RusqliteError { err, .. } = err {
            return err.into();
        }
        StoreError::Corrupt(err.to_string())
    })
}

/// Damage is found at the start, not by a strange action later.
fn check(conn: &Connection) -> Result<(), StoreError> {
    let verdict: String = conn.pragma_query_value(None, "quick_check", |row| row.get(0))?;
    if verdict != "ok" {
        return Err(StoreError::Corrupt(verdict));
    }
    let orphan: Option<String> = conn
        .prepare("SELECT \"table\" FROM pragma_foreign_key_check LIMIT 1")?
        .query_map([], |row| row.get(0))?
        .next()
        .transpose()?;
    match orphan {
        None => Ok(()),
        Some(table) => Err(StoreError::Corrupt(format!("a row of {table} belongs to nothing"))),
    }
}
