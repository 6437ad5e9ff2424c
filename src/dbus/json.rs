//! The one converter between JSON values and `a{sv}`.
//!
//! An object is `a{sv}`, an array is `av` whatever it holds, an integer is `x` (`t` above its range), so that the type
//! of a key never depends on its value. A `null` is left out: D-Bus has none. What comes in may also use the narrower
//! types of D-Bus (`u`, `as`, ...), since that is what people type.

use std::collections::HashMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use zbus::{Array, Dict, OwnedVariant, Signature, Str, Variant};

/// An `a{sv}`.
pub type Record = HashMap<String, OwnedVariant>;

/// How deep and how large a record may be.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Levels of objects and arrays.
    pub depth: usize,
    /// Bytes of text, and [`OVERHEAD`] for each key and each value.
    pub bytes: usize,
}

/// What a key or a value costs beside its text: padding, length, signature.
const OVERHEAD: usize = 16;

/// Of what the daemon sends. D-Bus nests 64 containers, and one level here takes up to three.
///
/// # Source
/// dbus-daemon `config-parser.c`: a message over 32 MiB, the default `max_message_size`, ends the connection.
pub const ANSWER: Limits = Limits { depth: 16, bytes: 24 << 20 };

/// Of what a client takes from the daemon.
pub const TAKEN: Limits = Limits { depth: 32, bytes: 128 << 20 };

/// A value that the other side cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {why}")]
pub struct Misfit {
    /// The outermost key it is below, escaped; empty for the whole.
    pub key: String,
    /// Why.
    pub why: String,
}

/// A text that may go over the bus: a NUL in it would make the bus drop the connection, so it is shown as U+FFFD.
pub fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// A record of a value that is an object in JSON.
///
/// # Errors
/// It is not an object, or over [`ANSWER`].
pub fn to_record(value: &impl Serialize) -> Result<Record, Misfit> {
    match serde_json::to_value(value) {
        Ok(Value::Object(map)) => record(map, &mut Walk::new("", ANSWER)),
        Ok(_) => Err(Walk::new("", ANSWER).misfit("is not an object")),
        Err(err) => Err(Walk::new("", ANSWER).misfit(err.to_string())),
    }
}

/// Records of a list.
///
/// # Errors
/// As [`to_record`], for the whole list.
pub fn to_records<T: Serialize>(values: &[T]) -> Result<Vec<Record>, Misfit> {
    let mut walk = Walk::new("", ANSWER);
    let mut records = Vec::with_capacity(values.len());
    for value in values {
        match serde_json::to_value(value) {
            Ok(Value::Object(map)) => records.push(record(map, &mut walk)?),
            Ok(_) => return Err(walk.misfit("is not an object")),
            Err(err) => return Err(walk.misfit(err.to_string())),
        }
    }
    Ok(records)
}

/// The JSON object of a record.
///
/// # Errors
/// A type that JSON does not have, or over `limits`; names the key.
pub fn from_record(record: &Record, limits: Limits) -> Result<Map<String, Value>, Misfit> {
    let mut walk = Walk::new("", limits);
    let mut map = Map::new();
    for (key, value) in record {
        walk.key = shown(key);
        walk.spend(key.len())?;
        map.insert(key.clone(), json(value, &mut walk)?);
    }
    Ok(map)
}

/// A typed value from a record that the daemon sent.
///
/// # Errors
/// As [`from_record`], or a field is missing or of the wrong type.
pub fn read<T: DeserializeOwned>(record: &Record) -> Result<T, Misfit> {
    let map = from_record(record, TAKEN)?;
    serde_json::from_value(Value::Object(map)).map_err(|err| Walk::new("", TAKEN).misfit(err.to_string()))
}

/// A key as it may be shown.
pub fn shown(key: &str) -> String {
    key.chars().take(80).collect::<String>().escape_debug().to_string()
}

/// Where the conversion is, and how much it may still take.
struct Walk {
    key: String,
    limits: Limits,
    depth: usize,
    left: usize,
}

impl Walk {
    fn new(key: &str, limits: Limits) -> Self {
        Self { key: key.to_owned(), limits, depth: 0, left: limits.bytes }
    }

    fn misfit(&self, why: impl Into<String>) -> Misfit {
        Misfit { key: self.key.clone(), why: why.into() }
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Misfit> {
        match self.left.checked_sub(bytes.saturating_add(OVERHEAD)) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(self.misfit(format!("more than {} bytes", self.limits.bytes))),
        }
    }

    fn below<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, Misfit>) -> Result<T, Misfit> {
        if self.depth == self.limits.depth {
            return Err(self.misfit(format!("nested deeper than {} levels", self.limits.depth)));
        }
        self.depth += 1;
        let out = inner(self);
        self.depth -= 1;
        out
    }
}

fn record(map: Map<String, Value>, walk: &mut Walk) -> Result<Record, Misfit> {
    let mut record = Record::with_capacity(map.len());
    for (key, value) in map {
        walk.key = shown(&key);
        walk.spend(key.len())?;
        if let Some(value) = variant(value, walk)? {
            let value = OwnedVariant::try_from(value).map_err(|err| walk.misfit(err.to_string()))?;
            record.insert(clean(&key), value);
        }
    }
    Ok(record)
}

fn variant(value: Value, walk: &mut Walk) -> Result<Option<Variant<'static>>, Misfit> {
    walk.spend(value.as_str().map_or(0, str::len))?;
    Ok(Some(match value {
        Value::Null => return Ok(None),
        Value::Bool(yes) => Variant::Bool(yes),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(n), _) => Variant::I64(n),
            (None, Some(n)) => Variant::U64(n),
            (None, None) => Variant::F64(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Variant::Str(Str::from(clean(&text))),
        Value::Array(items) => Variant::Array(walk.below(|walk| array(items, walk))?),
        Value::Object(map) => Variant::Dict(walk.below(|walk| dict(map, walk))?),
    }))
}

fn array(items: Vec<Value>, walk: &mut Walk) -> Result<Array<'static>, Misfit> {
    let mut array = Array::new(&Signature::Variant);
    for item in items {
        if let Some(item) = variant(item, walk)? {
            let item = Variant::Variant(Box::new(item));
            array.append(item).map_err(|err| walk.misfit(err.to_string()))?;
        }
    }
    Ok(array)
}

fn dict(map: Map<String, Value>, walk: &mut Walk) -> Result<Dict<'static, 'static>, Misfit> {
    let mut dict = Dict::new(&Signature::Str, &Signature::Variant);
    for (key, value) in map {
        walk.spend(key.len())?;
        if let Some(value) = variant(value, walk)? {
            let key = Variant::Str(Str::from(clean(&key)));
            dict.append(key, Variant::Variant(Box::new(value)))
                .map_err(|err| walk.misfit(err.to_string()))?;
        }
    }
    Ok(dict)
}

fn json(value: &Variant<'_>, walk: &mut Walk) -> Result<Value, Misfit> {
    walk.spend(if let Variant::Str(text) = value { text.len() } else { 0 })?;
    Ok(match value {
        Variant::Bool(yes) => Value::from(*yes),
        Variant::U8(n) => Value::from(*n),
        Variant::I16(n) => Value::from(*n),
        Variant::U16(n) => Value::from(*n),
        Variant::I32(n) => Value::from(*n),
        Variant::U32(n) => Value::from(*n),
        Variant::I64(n) => Value::from(*n),
        Variant::U64(n) => Value::from(*n),
        Variant::F64(n) if n.is_finite() => Value::from(*n),
        Variant::F64(_) => return Err(walk.misfit("is not a finite number")),
        Variant::Str(text) => Value::from(text.as_str()),
        Variant::Variant(inner) => walk.below(|walk| json(inner, walk))?,
        Variant::Array(items) => walk.below(|walk| {
            items.inner().iter().map(|item| json(item, walk)).collect::<Result<Vec<_>, _>>().map(Value::from)
        })?,
        Variant::Dict(entries) => walk.below(|walk| object(entries, walk))?,
        Variant::Signature(_) | Variant::ObjectPath(_) | Variant::Structure(_) | Variant::Fd(_) => {
            return Err(walk.misfit(format!("D-Bus type {} is not accepted", value.value_signature())));
        }
    })
}

fn object(entries: &Dict<'_, '_>, walk: &mut Walk) -> Result<Value, Misfit> {
    let mut map = Map::new();
    for (key, value) in entries.iter() {
        let Variant::Str(key) = key else { return Err(walk.misfit("a key is not a string")) };
        walk.spend(key.len())?;
        map.insert(key.to_string(), json(value, walk)?);
    }
    Ok(Value::Object(map))
}

#[cfg(test)]
mod tests;
