//! Values of a TOML file: each read in its form, or named as wrong with its line.

use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::model::InvalidName;

use super::error::{ConfigError, Problems};
use super::place::{At, Spot};
use super::word::unknown;

/// A value and where it stands in the text.
pub(crate) type Value<'t> = Spanned<DeValue<'t>>;

/// Knows the file, its lines, and where errors go.
pub(crate) struct Reader<'p> {
    file: Arc<str>,
    /// Byte offsets at which lines begin.
    lines: Vec<usize>,
    broken: BTreeSet<u32>,
    problems: &'p mut Problems,
}

impl<'p> Reader<'p> {
    /// A file of at most `limit` bytes, with what of it is TOML.
    pub(crate) fn open<'t>(
        text: &'t str,
        origin: &str,
        limit: usize,
        problems: &'p mut Problems,
    ) -> (Self, DeTable<'t>) {
        if text.len() > limit {
            problems.push(ConfigError::too_large(origin, limit));
            return (Self::new("", origin, problems), DeTable::new());
        }
        let mut reader = Self::new(text, origin, problems);
        let (table, mut syntax) = DeTable::parse_recoverable(text);
        syntax.sort_by_key(|err| err.span().map(|span| span.start));
        for err in syntax {
            reader.syntax(&err);
        }
        (reader, table.into_inner())
    }

    fn new(text: &str, origin: &str, problems: &'p mut Problems) -> Self {
        let begins = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(begins).collect();
        Self { file: Arc::from(origin), lines, broken: BTreeSet::new(), problems }
    }

    pub(crate) fn line(&self, span: &Range<usize>) -> u32 {
        u32::try_from(self.lines.partition_point(|begin| *begin <= span.start)).unwrap_or(u32::MAX)
    }

    pub(crate) fn spot(&self, table: &Arc<str>, key: &'static str, span: &Range<usize>) -> Spot {
        Spot { file: Arc::clone(&self.file), line: self.line(span), table: Arc::clone(table), key }
    }

    /// A syntax error. The parser goes on behind it; what it makes of that line is guesswork, so the line's first
    /// error stands for all.
    fn syntax(&mut self, err: &toml::de::Error) {
        let line = self.line(&err.span().unwrap_or(0..0));
        if !self.broken.insert(line) {
            return;
        }
        let message: Vec<&str> = err.message().lines().collect();
        let text = format!("not TOML: {}", message.join("; ").escape_debug());
        self.problems.push(ConfigError { line: Some(line), ..ConfigError::file(&self.file, text) });
    }

    pub(crate) fn say(&mut self, error: ConfigError) {
        if !error.line.is_some_and(|line| self.broken.contains(&line)) {
            self.problems.push(error);
        }
    }

    fn wrong_form(&mut self, spot: &Spot, wanted: &str, value: &DeValue<'_>) {
        self.say(ConfigError::at(spot, format!("expected {wanted}, found {}", value.type_str())));
    }

    pub(crate) fn table<'v>(&mut self, spot: &Spot, value: &'v Value<'_>) -> Option<&'v DeTable<'v>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.wrong_form(spot, "a table", value.get_ref());
        }
        table
    }

    pub(crate) fn text<'v>(&mut self, spot: &Spot, value: &'v Value<'_>) -> Option<&'v str> {
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.wrong_form(spot, "a string", value.get_ref());
        }
        text
    }

    pub(crate) fn flag(&mut self, spot: &Spot, value: &Value<'_>) -> Option<bool> {
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            self.wrong_form(spot, "true or false", value.get_ref());
        }
        flag
    }

    pub(crate) fn number(&mut self, spot: &Spot, value: &Value<'_>, least: u32) -> Option<u32> {
        let number = self.whole(spot, value, u64::from(least)..=u64::from(u32::MAX))?;
        u32::try_from(number).ok()
    }

    /// A whole number within a range.
    pub(crate) fn whole(
        &mut self,
        spot: &Spot,
        value: &Value<'_>,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        let Some(written) = value.get_ref().as_integer() else {
            self.wrong_form(spot, "a number", value.get_ref());
            return None;
        };
        let number =
            u64::from_str_radix(written.as_str(), written.radix()).ok().filter(|n| range.contains(n));
        if number.is_none() {
            let shown: String = written.as_str().chars().take(20).collect();
            let text = format!("expected a number from {} to {}, found {shown}", range.start(), range.end());
            self.say(ConfigError::at(spot, text));
        }
        number
    }

    /// A list of tables, each with its place.
    pub(crate) fn tables<'v>(&mut self, spot: &Spot, value: &'v Value<'_>) -> Vec<(Spot, &'v DeTable<'v>)> {
        let Some(items) = value.get_ref().as_array() else {
            self.wrong_form(spot, "a list of tables", value.get_ref());
            return Vec::new();
        };
        let mut tables = Vec::new();
        for item in items.iter() {
            let spot = Spot { line: self.line(&item.span()), ..spot.clone() };
            tables.extend(self.table(&spot, item).map(|table| (spot, table)));
        }
        tables
    }

    /// A list of strings; each bad item is named and left out.
    pub(crate) fn list<T>(
        &mut self,
        spot: &Spot,
        value: &Value<'_>,
        read: impl Fn(&str) -> Result<T, InvalidName>,
    ) -> Option<Vec<At<T>>> {
        let Some(items) = value.get_ref().as_array() else {
            self.wrong_form(spot, "a list of strings", value.get_ref());
            return None;
        };
        let mut good = Vec::new();
        for item in items.iter() {
            let spot = Spot { line: self.line(&item.span()), ..spot.clone() };
            let Some(text) = self.text(&spot, item) else { continue };
            match read(text) {
                Ok(value) => good.push(At { value, spot }),
                Err(err) => self.say(ConfigError::at(&spot, err.to_string())),
            }
        }
        Some(good)
    }

    pub(crate) fn word<T: Copy>(
        &mut self,
        spot: &Spot,
        value: &Value<'_>,
        all: &[T],
        shown: fn(T) -> &'static str,
    ) -> Option<T> {
        let text = self.text(spot, value)?;
        let found = all.iter().copied().find(|word| shown(*word) == text);
        if found.is_none() {
            let known: Vec<&str> = all.iter().map(|word| shown(*word)).collect();
            self.say(ConfigError::at(spot, unknown("word", text, &known)));
        }
        found
    }

    /// A string that `read` understands.
    pub(crate) fn read<T>(
        &mut self,
        spot: &Spot,
        value: &Value<'_>,
        read: impl Fn(&str) -> Result<T, InvalidName>,
    ) -> Option<T> {
        let text = self.text(spot, value)?;
        read(text).map_err(|err| self.say(ConfigError::at(spot, err.to_string()))).ok()
    }

    /// Calls `take` for every key of a table that is one of `known`.
    pub(crate) fn keys(
        &mut self,
        name: &Arc<str>,
        table: &DeTable<'_>,
        known: &[&'static str],
        mut take: impl FnMut(&mut Self, Spot, &Value<'_>),
    ) {
        for (key, value) in table {
            match known.iter().find(|k| **k == key.get_ref()) {
                Some(word) => {
                    let spot = self.spot(name, word, &key.span());
                    take(self, spot, value);
                }
                None => {
                    let spot = self.spot(name, "", &key.span());
                    self.say(ConfigError::at(&spot, unknown("key", key.get_ref(), known)));
                }
            }
        }
    }
}
