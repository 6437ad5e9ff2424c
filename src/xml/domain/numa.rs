//! `<numatune>`: the host's NUMA nodes that a domain's memory is pinned to.

use std::collections::BTreeSet;

use crate::xml::error::{XmlError, shown};
use crate::xml::reader::Reader;
use crate::xml::tag::Tag;

/// Nodes that can be named.
///
/// # Source
/// libvirt `src/conf/domain_conf.h`, `VIR_DOMAIN_CPUMASK_LEN`, the length of every nodeset.
const MAX_NODES: usize = 16384;
/// Bytes of all node sets of one domain; a real one has some tens per guest cell.
const MAX_BYTES: usize = 64 * 1024;

/// What the `<numatune>` elements of a domain say so far.
#[derive(Default)]
pub(super) struct Numatune {
    nodes: BTreeSet<u32>,
    memory_seen: bool,
    /// numad chooses the nodes when the domain starts.
    auto: bool,
    bytes: usize,
}

impl Numatune {
    /// Reads the element just entered.
    ///
    /// # Errors
    /// A node set that libvirt would not take.
    ///
    /// # Source
    /// libvirt `src/conf/numa_conf.c`, `virDomainNumatuneParseXML`: the first `memory` counts; `placement='auto'` drops
    /// its set. A `memnode` pins one cell of the guest.
    pub(super) fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), XmlError> {
        let depth = reader.depth();
        while let Some(tag) = reader.child(depth)? {
            match tag.name() {
                "memory" if !self.memory_seen => {
                    self.memory_seen = true;
                    self.auto = tag.attr("placement").is_some_and(|word| word == "auto");
                    self.nodeset(reader, &tag)?;
                }
                "memnode" => self.nodeset(reader, &tag)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn nodeset(&mut self, reader: &Reader<'_>, tag: &Tag<'_>) -> Result<(), XmlError> {
        let Some(text) = tag.attr("nodeset") else { return Ok(()) };
        self.bytes += text.len();
        if self.bytes > MAX_BYTES {
            return Err(XmlError::LimitExceeded { what: "bytes of a domain's node sets", limit: MAX_BYTES });
        }
        let wrong = || reader.malformed(format!("nodeset='{}' names no NUMA nodes", shown(&text)));
        self.nodes.extend(parse(&text).ok_or_else(wrong)?);
        Ok(())
    }

    /// The nodes; `None` if the memory is not pinned, or nobody knows yet where.
    pub(super) fn finish(self) -> Option<BTreeSet<u32>> {
        Some(self.nodes).filter(|nodes| !self.auto && !nodes.is_empty())
    }
}

/// `0-3,^2`, read from left to right; `None` if it is malformed or empty.
///
/// # Source
/// libvirt `src/util/virbitmap.c`, `virBitmapParse`: one comma may end it, blanks stand around numbers only.
fn parse(text: &str) -> Option<BTreeSet<u32>> {
    let mut is_set = vec![false; MAX_NODES];
    let text = trim(text);
    for item in text.strip_suffix(',').unwrap_or(text).split(',').map(trim) {
        if let Some(node) = item.strip_prefix('^') {
            *is_set.get_mut(number(node)?)? = false;
        } else if let Some((first, last)) = item.split_once('-') {
            let (first, last) = (number(trim(first))?, number(trim(last))?);
            is_set.get_mut(first..last + 1).filter(|_| first <= last)?.fill(true);
        } else {
            *is_set.get_mut(number(item)?)? = true;
        }
    }
    let nodes = is_set.iter().zip(0..).filter(|(set, _)| **set).map(|(_, node)| node);
    Some(nodes.collect()).filter(|nodes: &BTreeSet<u32>| !nodes.is_empty())
}

fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_ascii_whitespace())
}

fn number(text: &str) -> Option<usize> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|n| plain && *n < MAX_NODES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn node_sets_are_read_as_libvirt_reads_them() {
        for (text, want) in [
            ("0", &[0][..]),
            ("0-3,^2", &[0, 1, 3]),
            ("1,^1,1", &[1]),
            (" 0 - 1 , 3,", &[0, 1, 3]),
            ("16383", &[16383]),
            ("007", &[7]),
        ] {
            assert_eq!(parse(text), Some(want.iter().copied().collect()), "{text}");
        }
        for text in [
            "",
            ",",
            "0,,1",
            "^0",
            "0,^0",
            "a",
            "-1",
            "1-",
            "3-2",
            "3-1",
            "0-1-2",
            "^0-1",
            "^ 1",
            "+1",
            "0x1",
            "16384",
            "0-16384",
            "99999999999999999999",
            "0 1",
            "\u{a0}1",
            "1;2",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9,^ -]{0,30}", more in "\\PC*") {
            let _ = (parse(&text), parse(&more));
        }
    }
}
