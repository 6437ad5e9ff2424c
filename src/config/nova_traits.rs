//! A draft of traits.toml for the types that a nova.conf enables. nova knows no traits, so the names are proposals.
//!
//! A type's vendor name binds a trait on every host; an id means another type elsewhere or after a driver update, so what
//! stands on one is left as a comment for the operator to fill in.

use std::collections::BTreeSet;

use crate::model::{TraitName, TypeId};

use crate::text::quoted;

const HEAD: &str = "\
# A trait binds what a flavor asks for to a type by the vendor's name of it, the same on every host. The names of traits
# are proposals: call them as your flavors do (trait:CUSTOM_GOLD=required). Where one name is not enough, narrow it with
# vendor_id = \"0x10de\", device_id, framework (\"mdev\" or \"vendor-vfio\") or framebuffer_mib = 4096.
#
# Of a type that nova.conf has by its id only the trait is a comment: take the vendor's name from `mdevirtctl type list`,
# put it in both places and take the # away. Only if the driver gives no names may the id stand for one.
";

/// The file, with one trait for each type in the order of the list.
pub(super) fn draft<'k>(keys: impl Iterator<Item = &'k str>, origin: &str) -> String {
    let mut out =
        format!("# Draft by mdevirtctl config import-nova, from {}.\n{HEAD}", origin.escape_debug());
    let mut taken = BTreeSet::new();
    for (key, nth) in keys.zip(1u32..) {
        out += "\n";
        out += &match TraitName::for_type_name(key).filter(|_| !is_id(key)) {
            Some(name) if taken.insert(name.clone()) => table(&format!("[trait.{name}]"), key, ""),
            Some(name) => {
                let why =
                    format!("# {name} is taken above, and a trait means one type: take another name.\n");
                why + &table(&format!("[trait.CUSTOM_FILL_IN_{nth}]"), key, "#")
            }
            None => by_id(key, nth),
        };
    }
    out
}

/// Whether this may be the id of a type; vendors' names have blanks in them.
fn is_id(key: &str) -> bool {
    key.parse::<TypeId>().is_ok()
}

fn by_id(key: &str, nth: u32) -> String {
    let why = format!("# On this host its id is {}.\n", key.escape_debug());
    why + &table(&format!("[trait.CUSTOM_FILL_IN_{nth}]"), &format!("vendor's name of {key}"), "#")
}

fn table(head: &str, type_name: &str, comment: &str) -> String {
    format!("{comment}{head}\n{comment}type = {}\n", quoted(type_name))
}
