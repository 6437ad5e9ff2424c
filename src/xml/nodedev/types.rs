//! `<capability type='mdev_types'>`: what a parent offers.

use std::borrow::Cow;

use crate::model::{DeviceApi, InvalidName, MdevType, TypeFacts};
use crate::xml::error::{XmlError, shown};
use crate::xml::intake::REPLACEMENT;
use crate::xml::reader::Reader;
use crate::xml::tag::Tag;

use super::parse::some_text;

/// The capability's type.
pub(super) const CAPABILITY: &str = "mdev_types";

/// More types than any parent has; the greatest seen is under 100.
const MAX_TYPES: usize = 1024;

/// Types while they are read.
#[derive(Default)]
pub(super) struct Types {
    good: Vec<MdevType>,
    left_out: Vec<String>,
}

/// Reads all types at any depth of the capability: for virtual parents libvirt nests the capability in itself.
pub(super) fn read(reader: &mut Reader<'_>, types: &mut Types) -> Result<(), XmlError> {
    let top = reader.depth();
    let mut depth = top;
    loop {
        match reader.child(depth)? {
            Some(tag) if tag.name() == "type" => types.take(reader, &tag)?,
            Some(tag) if tag.name() == "capability" => depth = reader.depth(),
            Some(_) => {}
            None if depth == top => return Ok(()),
            None => depth -= 1,
        }
    }
}

impl Types {
    fn take<'a>(&mut self, reader: &mut Reader<'a>, tag: &Tag<'a>) -> Result<(), XmlError> {
        if self.good.len() + self.left_out.len() == MAX_TYPES {
            return Err(XmlError::LimitExceeded { what: "mdev types of one parent", limit: MAX_TYPES });
        }
        let id = tag.attr("id").unwrap_or_default();
        match Draft::read(reader)?.finish(&id) {
            Ok(one) => self.good.push(one),
            Err(why) => self.left_out.push(format!("mdev type '{}' is left out: {why}", shown(&id))),
        }
        Ok(())
    }

    /// The types in the order of their ids. One that is told twice counts once.
    pub(super) fn finish(mut self, left_out: &mut Vec<String>) -> Vec<MdevType> {
        self.good.sort_by(|a, b| a.id.cmp(&b.id));
        self.good.dedup_by(|later, first| {
            if later.id == first.id && later != first {
                self.left_out
                    .push(format!("mdev type '{}' is told twice, differently: the first counts", first.id));
            }
            later.id == first.id
        });
        left_out.append(&mut self.left_out);
        self.good
    }
}

/// One type while it is read.
#[derive(Default)]
struct Draft<'a> {
    name: Cow<'a, str>,
    device_api: Cow<'a, str>,
    available: Cow<'a, str>,
}

impl<'a> Draft<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, XmlError> {
        let depth = reader.depth();
        let mut draft = Self::default();
        while let Some(tag) = reader.child(depth)? {
            match tag.name() {
                "name" => draft.name = reader.text()?,
                "deviceAPI" => draft.device_api = reader.text()?,
                "availableInstances" => draft.available = reader.text()?,
                _ => {}
            }
        }
        Ok(draft)
    }

    fn finish(self, id: &str) -> Result<MdevType, String> {
        let id = id.parse().map_err(|err: InvalidName| err.to_string())?;
        // A trait is bound to a type by its name: half a name is worse than none.
        if self.name.contains(REPLACEMENT) {
            return Err("its name is not text in UTF-8".to_owned());
        }
        let device_api: DeviceApi = self.device_api.parse().map_err(|err: InvalidName| err.to_string())?;
        let available = self.available.trim();
        let digits = !available.is_empty() && available.bytes().all(|b| b.is_ascii_digit());
        let available_instances = if digits { available.parse().ok() } else { None };
        let no_number = || format!("availableInstances '{}' is no number", shown(available));
        Ok(MdevType {
            id,
            name: some_text(&self.name),
            device_api,
            available_instances: available_instances.ok_or_else(no_number)?,
            facts: TypeFacts::default(),
        })
    }
}
