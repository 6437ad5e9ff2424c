//! A scenario file taken apart: `<node>` into devices and domains.

use std::collections::BTreeSet;
use std::path::Path;

use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::file_host::FileDomain;
use super::script::unreadable;
use crate::host::HostError;
use crate::model::{HostScan, Parent, ParentAddr};
use crate::xml::domain::DomainDoc;
use crate::xml::nodedev;

/// A bound against nonsense; 8 cards with 48 VFs each make 2 MB.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// A domain that is off: 5 is libvirt's number of that state, the prefix of the namespace is free.
const SHUT_OFF: &str = "runstate>5<";

/// What a file holds.
pub(super) struct Scenario {
    pub(super) scan: HostScan,
    pub(super) domains: Vec<FileDomain>,
}

/// Reads a scenario file and those it names.
pub(super) fn load(path: &Path) -> Result<Scenario, HostError> {
    let what = format!("scenario {}", path.display());
    let text = read_file(path)?;
    let pieces = pieces(&text).map_err(|why| unreadable(&what, &why))?;
    let mut scenario = Scenario { scan: HostScan::default(), domains: Vec::new() };
    for piece in pieces {
        let text = match &piece.file {
            Some(file) => read_file(&path.parent().unwrap_or(Path::new("")).join(file))?,
            None => piece.text.to_owned(),
        };
        let added = if piece.is_device { scenario.device(&text) } else { scenario.domain(text) };
        added.map_err(|why| unreadable(&what, &why))?;
    }
    scenario.scan.parents = only_parents(scenario.scan.parents);
    scenario.scan = scenario.scan.sorted();
    Ok(scenario)
}

fn read_file(path: &Path) -> Result<String, HostError> {
    let what = format!("scenario {}", path.display());
    let size = std::fs::metadata(path).map_err(|e| unreadable(&what, &e))?.len();
    if size > MAX_FILE_BYTES {
        return Err(unreadable(&what, &format!("{size} bytes are more than {MAX_FILE_BYTES}")));
    }
    std::fs::read_to_string(path).map_err(|e| unreadable(&what, &e))
}

impl Scenario {
    fn device(&mut self, xml: &str) -> Result<(), String> {
        let device = nodedev::parse(xml.as_bytes()).map_err(|e| e.to_string())?;
        self.scan.parents.extend(device.parent());
        // The test driver shows every device as active and persistent (libvirt 11.3; 9.0 cannot tell).
        self.scan.mdevs.extend(device.mdev(true, true).map_err(|e| e.to_string())?);
        self.scan.findings.extend(device.findings);
        Ok(())
    }

    fn domain(&mut self, xml: String) -> Result<(), String> {
        let doc = DomainDoc::parse(&xml).map_err(|e| e.to_string())?;
        let uuid = doc.uuid.ok_or_else(|| format!("domain {:?} has no uuid", doc.name))?;
        let live = (!xml.contains(SHUT_OFF)).then(|| xml.clone());
        self.domains.push(FileDomain { uuid, name: doc.name, live, defined: Some(xml) });
        Ok(())
    }
}

/// Leaves out PCI functions that neither make slices nor have VFs that do.
fn only_parents(all: Vec<Parent>) -> Vec<Parent> {
    let makes = |p: &Parent| p.framework.is_some();
    let cards: BTreeSet<ParentAddr> = all.iter().filter(|p| makes(p)).map(Parent::card).collect();
    all.into_iter().filter(|p| makes(p) || cards.contains(&p.addr)).collect()
}

/// One `<device>` or `<domain>` of the file.
struct Piece<'a> {
    is_device: bool,
    text: &'a str,
    file: Option<String>,
}

fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut reader = Reader::from_str(text);
    let mut found = Vec::new();
    let mut in_node = false;
    loop {
        let start = position(&reader);
        match reader.read_event().map_err(|e| e.to_string())? {
            Event::Start(tag) if in_node => {
                reader.read_to_end(tag.name()).map_err(|e| e.to_string())?;
                found.extend(piece(&tag, &text[start..position(&reader)])?);
            }
            Event::Empty(tag) if in_node => found.extend(piece(&tag, &text[start..position(&reader)])?),
            Event::Start(tag) if tag.name().as_ref() == "node" => in_node = true,
            Event::Start(_) | Event::Empty(_) => return Err("the document is no <node>".to_owned()),
            Event::End(_) => return Ok(found),
            Event::DocType(_) => return Err("DOCTYPE is not accepted".to_owned()),
            Event::Eof => return Err("the document ends before </node>".to_owned()),
            Event::Text(_)
            | Event::CData(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::GeneralRef(_) => {}
        }
    }
}

fn position(reader: &Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX)
}

/// `None` for an element of the file that matters to others (`cpu`, `memory`, networks and pools).
fn piece<'a>(tag: &BytesStart<'_>, text: &'a str) -> Result<Option<Piece<'a>>, String> {
    let is_device = match tag.name().as_ref() {
        "device" => true,
        "domain" => false,
        _ => return Ok(None),
    };
    let attr = tag.try_get_attribute("file").map_err(|e| e.to_string())?;
    let file = attr.map(|a| a.value.into_owned());
    Ok(Some(Piece { is_device, text, file }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Scenario, HostError> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("host.xml"), text).unwrap();
        std::fs::write(dir.path().join("vm.xml"), DOMAIN).unwrap();
        load(&dir.path().join("host.xml"))
    }

    const DOMAIN: &str =
        "<domain type='test'><name>a</name><uuid>7b9c1f6252f34d0d9a4e3f6f0f8a1c01</uuid></domain>";

    fn committed(name: &str) -> Scenario {
        load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios").join(name)).unwrap()
    }

    #[test]
    fn committed_scenarios_are_read_whole() {
        let counts =
            |s: &Scenario| (s.scan.parents.len(), s.scan.mdevs.len(), s.domains.len(), s.scan.findings.len());
        assert_eq!(counts(&committed("two-m60.xml")), (2, 0, 0, 0));
        // One physical function without types of its own above 16 VFs.
        assert_eq!(counts(&committed("a2-16vf.xml")), (17, 0, 0, 0));
        let mixed = committed("mixed.xml");
        assert_eq!(counts(&mixed), (8, 1, 2, 0));
        let running: Vec<(&str, bool)> =
            mixed.domains.iter().map(|d| (d.name.as_str(), d.live.is_some())).collect();
        assert_eq!(running, [("lab-handmade", true), ("batch-01", false)]);
    }

    #[test]
    fn other_elements_and_other_files_are_taken_as_the_test_driver_takes_them() {
        let text = "<?xml version='1.0'?><node><cpu><mhz>1</mhz></cpu><!-- --><domain file='vm.xml'/></node>";
        let scenario = of(text).unwrap();
        assert_eq!((scenario.domains.len(), scenario.domains[0].name.as_str()), (1, "a"));
        assert!(of("<node></node>").unwrap().scan.parents.is_empty());
    }

    #[test]
    fn what_is_no_scenario_is_named() {
        for (bad, word) in [
            ("", "before </node>"),
            ("<domain/>", "no <node>"),
            ("<node><device>", "device"),
            ("<!DOCTYPE x><node></node>", "DOCTYPE"),
            ("<node><device><name>x y</name></device></node>", "node device name"),
            ("<node><domain><name>a</name></domain></node>", "no uuid"),
            ("<node><domain file='none.xml'/></node>", "none.xml"),
        ] {
            let err = of(bad).err().map(|e| e.to_string()).unwrap_or_default();
            assert!(err.contains("cannot read scenario") && err.contains(word), "{bad}: {err}");
        }
    }
}
