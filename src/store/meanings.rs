//! What the operator's words mean on each parent, and what became of it.

use rusqlite::{Row, params};

use super::Store;
use super::error::StoreError;
use super::rows;
use super::tables::Turn;
use crate::model::{Lesson, Meaning, NewShift, Shift, Usec, Word};

/// Lines of history that are kept of one word; older ones leave when a new one is written.
pub(super) const KEPT_SHIFTS: u32 = 100;

impl Store {
    /// All meanings, in the order of word and parent.
    ///
    /// # Errors
    /// `Unavailable`, `Corrupt`.
    pub fn meanings(&self) -> Result<Vec<Meaning>, StoreError> {
        let sql =
            "SELECT kind, word, parent, identity, type_id, seen FROM meaning ORDER BY kind, word, parent";
        self.read(|conn| rows::all(conn, sql, [], meaning))
    }

    /// The history of one word, oldest line first.
    ///
    /// # Errors
    /// `Unavailable`, `Corrupt`.
    pub fn shifts(&self, word: &Word) -> Result<Vec<Shift>, StoreError> {
        let sql = "SELECT at_usec, kind, word, parent, shift, was, now, reason FROM shift \
                   WHERE kind = ?1 AND word = ?2 ORDER BY nr";
        self.read(|conn| rows::all(conn, sql, [word.kind.as_str(), &word.text], shift))
    }

    /// Writes a lesson, all of it or nothing.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn learn(&self, lesson: Lesson) -> Result<(), StoreError> {
        let now = self.clock.now_usec();
        self.writer.write(move |turn| write(turn, &lesson, now))
    }
}

fn write(turn: &mut Turn<'_>, lesson: &Lesson, now: Usec) -> Result<(), StoreError> {
    for word in &lesson.forgotten {
        turn.conn
            .prepare_cached("DELETE FROM meaning WHERE kind = ?1 AND word = ?2")?
            .execute([word.kind.as_str(), &word.text])?;
    }
    lesson.meanings.iter().try_for_each(|meaning| put_meaning(turn, meaning))?;
    lesson.shifts.iter().try_for_each(|shift| put_shift(turn, shift, now))
}

fn put_meaning(turn: &Turn<'_>, meaning: &Meaning) -> Result<(), StoreError> {
    let sql = "INSERT INTO meaning (kind, word, parent, identity, type_id, seen) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
               ON CONFLICT (kind, word, parent) DO UPDATE \
               SET identity = excluded.identity, type_id = excluded.type_id, seen = excluded.seen";
    turn.conn.prepare_cached(sql)?.execute(params![
        meaning.word.kind.as_str(),
        meaning.word.text,
        meaning.parent.to_string(),
        rows::identity_text(&meaning.identity),
        meaning.type_id.as_str(),
        rows::identity_text(&meaning.seen),
    ])?;
    Ok(())
}

fn put_shift(turn: &Turn<'_>, new: &NewShift, now: Usec) -> Result<(), StoreError> {
    let word = &new.of.word;
    let sql = "INSERT INTO shift (at_usec, kind, word, parent, shift, was, now, reason) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    turn.conn.prepare_cached(sql)?.execute(params![
        now,
        word.kind.as_str(),
        word.text,
        new.of.parent.to_string(),
        new.kind.as_str(),
        new.was,
        new.now,
        new.reason,
    ])?;
    let old = "DELETE FROM shift WHERE kind = ?1 AND word = ?2 AND nr <= (SELECT nr FROM shift \
               WHERE kind = ?1 AND word = ?2 ORDER BY nr DESC LIMIT 1 OFFSET ?3)";
    turn.conn.prepare_cached(old)?.execute(params![word.kind.as_str(), word.text, KEPT_SHIFTS])?;
    Ok(())
}

fn word(row: &Row<'_>) -> Result<Word, StoreError> {
    Ok(Word { kind: rows::word(row, "kind")?, text: row.get("word")? })
}

fn meaning(row: &Row<'_>) -> Result<Meaning, StoreError> {
    Ok(Meaning {
        word: word(row)?,
        parent: rows::word(row, "parent")?,
        identity: rows::json(row, "identity")?,
        type_id: rows::word(row, "type_id")?,
        seen: rows::json(row, "seen")?,
    })
}

fn shift(row: &Row<'_>) -> Result<Shift, StoreError> {
    Ok(Shift {
        at_usec: row.get("at_usec")?,
        word: word(row)?,
        parent: rows::word(row, "parent")?,
        kind: rows::word(row, "shift")?,
        was: row.get("was")?,
        now: row.get("now")?,
        reason: row.get("reason")?,
    })
}
