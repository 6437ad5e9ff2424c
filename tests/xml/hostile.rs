//! Case 31: input that is broken, huge or deep. Run on a thread with the default stack of 2 MiB.

use std::fmt::Write;

use mdevirt::model::FindingKind;
use mdevirt::xml::domain::{DomainDoc, without_hostdevs, write_hostdevs};
use mdevirt::xml::nodedev::{NodeDevice, parse};
use mdevirt::xml::{MAX_BYTES, MAX_DEPTH, XmlError};

use crate::case;

/// The stack that Rust gives a spawned thread by default.
const STACK: usize = 2 * 1024 * 1024;

fn on_small_stack<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(STACK).spawn(run).unwrap().join().unwrap()
}

fn listed(file: &str) -> Result<NodeDevice, XmlError> {
    let xml = case(&format!("31-hostile-xml/nodedev/{file}.xml"));
    on_small_stack(move || parse(&xml))
}

#[test]
fn the_good_card_is_listed() {
    let parent = listed("01-good").unwrap().parent().unwrap();
    assert_eq!(parent.addr.to_string(), "0000:3b:00.0");
    assert_eq!((parent.types[0].id.as_str(), parent.types[0].available_instances), ("nvidia-231", 8));
}

/// The card stays usable: only its product text shows a replacement character.
#[test]
fn a_broken_product_text_does_not_hide_the_card() {
    for (file, addr, product) in [
        ("02-latin1", "0000:41:00.0", "TU104GL \u{fffd}   [Tesla T4]"),
        ("07-control-char", "0000:46:00.0", "TU104GL \u{fffd}[Tesla T4]"),
    ] {
        let parent = listed(file).unwrap().parent().unwrap();
        assert_eq!(parent.addr.to_string(), addr);
        assert_eq!(parent.product.as_deref(), Some(product));
        assert_eq!(parent.types[0].available_instances, 8);
    }
}

/// Broken bytes where they would change what a device is are refused.
#[test]
fn identifiers_are_exact_or_refused() {
    let good = case("31-hostile-xml/nodedev/01-good.xml");
    let with = |from: &[u8], to: &[u8]| {
        let at = good.windows(from.len()).position(|w| w == from).unwrap();
        [&good[..at], to, &good[at + from.len()..]].concat()
    };
    for (from, to) in [
        (&b"<name>pci_0000_3b_00_0"[..], &b"<name>pci_0000_3b_00_\xff"[..]),
        (b"<name>nvidia</name>", b"<name>nvidia\x01</name>"),
        (b"<bus>59", b"<bus>5\xff"),
        (b"id='0x1eb8'", b"id='0x1eb\xff'"),
        (b"bus='0x3b'", b"bus='0x\x0c'"),
    ] {
        assert!(matches!(parse(&with(from, to)), Err(XmlError::Malformed { .. })), "{}", from.escape_ascii());
    }
    let typed = parse(&with(b"GRID T4-2Q", b"GRID T4-\xe9")).unwrap();
    assert!(typed.parent().unwrap().types.is_empty() && typed.findings.len() == 1);
}

#[test]
fn broken_documents_are_malformed_and_printable() {
    for (file, word) in [
        ("03-nul", "NUL"),
        ("04-truncated", "not closed"),
        ("05-entity-bomb", "DOCTYPE"),
        ("08-empty", "no element"),
        ("09-text", "outside the root"),
        ("10-other-root", "expected the root element <device>"),
    ] {
        let err = listed(file).unwrap_err();
        assert!(matches!(err, XmlError::Malformed { .. }) && err.to_string().contains(word), "{file}: {err}");
        let finding = err.finding("pci_x\u{1b}[2J");
        assert_eq!(finding.kind, FindingKind::MalformedInput);
        assert!(!format!("{finding:?}").contains(|c: char| c.is_control()), "{finding:?}");
    }
}

/// No half device is ever listed.
#[test]
fn every_cut_is_noticed() {
    let good = String::from_utf8(case("31-hostile-xml/nodedev/01-good.xml")).unwrap();
    let good = good.trim_end();
    for end in 0..good.len() {
        let cut = good.get(..end).unwrap();
        assert!(matches!(parse(cut.as_bytes()), Err(XmlError::Malformed { .. })), "cut at {end}");
    }
}

#[test]
fn deep_documents_are_refused_at_the_limit() {
    let err = listed("06-deep").unwrap_err();
    assert_eq!(err, XmlError::LimitExceeded { what: "nested elements", limit: MAX_DEPTH });
    assert_eq!(err.finding("x").kind, FindingKind::LimitExceeded);
    for (depth, fine) in [(MAX_DEPTH, true), (MAX_DEPTH + 1, false), (100_000, false)] {
        let inner = depth - 1;
        let (open, close) = ("<x>".repeat(inner), "</x>".repeat(inner));
        let device = format!("<device><name>d</name>{open}{close}</device>");
        let domain = format!("<domain><name>d</name>{open}{close}</domain>");
        let types = "<capability type='mdev_types'>".repeat(inner);
        let nested = format!("<device><name>d</name>{types}{}</device>", "</capability>".repeat(inner));
        let (one, two, three) = on_small_stack(move || {
            (
                parse(device.as_bytes()).is_ok(),
                DomainDoc::parse(domain).is_ok(),
                parse(nested.as_bytes()).is_ok(),
            )
        });
        assert_eq!((one, two, three), (fine, fine, fine), "{depth}");
    }
}

/// About 100 MB: refused by its size, before one of the 900000 types is looked at.
#[test]
fn huge_documents_are_refused_by_size() {
    let mut xml = String::with_capacity(110_000_000);
    xml.push_str("<device>\n<name>pci_0000_47_00_0</name>\n<capability type='pci'>\n");
    xml.push_str("<domain>0</domain><bus>71</bus><slot>0</slot><function>0</function>\n<capability type='mdev_types'>\n");
    for i in 1..=900_000 {
        writeln!(
            xml,
            "<type id='nvidia-{i}'><name>GRID T4-2Q</name><deviceAPI>vfio-pci</deviceAPI>\
             <availableInstances>8</availableInstances></type>"
        )
        .unwrap();
    }
    xml.push_str("</capability>\n</capability>\n</device>\n");
    assert!(xml.len() > 100_000_000);
    let (device, domain) = on_small_stack(move || (parse(xml.as_bytes()), DomainDoc::parse(xml)));
    for err in [device.unwrap_err(), domain.unwrap_err()] {
        assert!(matches!(err, XmlError::LimitExceeded { limit: MAX_BYTES, .. }), "{err}");
    }
}

/// Within the size limit the counts are bounded too.
#[test]
fn counts_are_bounded() {
    let one = "<deviceAPI>vfio-pci</deviceAPI><availableInstances>1</availableInstances></type>";
    let types = |n: usize| {
        let all: String = (0..n).map(|i| format!("<type id='t-{i}'>{one}")).collect();
        parse(
            format!("<device><name>d</name><capability type='mdev_types'>{all}</capability></device>")
                .as_bytes(),
        )
    };
    assert_eq!(types(1024).unwrap().parent().unwrap().types.len(), 1024);
    assert!(matches!(types(1025), Err(XmlError::LimitExceeded { limit: 1024, .. })));
    let attributes = |n: usize| -> String { (0..n).map(|i| format!(" a{i}=''")).collect() };
    let wide = |n: usize| parse(format!("<device{}><name>d</name></device>", attributes(n)).as_bytes());
    assert!(wide(128).is_ok());
    // Looking for doubles among so many would take minutes.
    assert!(matches!(wide(300_000), Err(XmlError::LimitExceeded { limit: 128, .. })));
    let long = format!("<domain><name>{}</name></domain>", "n".repeat(5000));
    assert!(matches!(DomainDoc::parse(long), Err(XmlError::LimitExceeded { limit: 4096, .. })));
    let device = "<hostdev type='pci'><source><address bus='1'/></source></hostdev>".repeat(257);
    let many = format!("<domain><name>d</name><devices>{device}</devices></domain>");
    assert!(matches!(DomainDoc::parse(many), Err(XmlError::LimitExceeded { limit: 256, .. })));
}

/// What libxml2 would refuse or read otherwise is refused here, for reading and for writing.
#[test]
fn domains_that_are_not_well_formed() {
    let body = "<name>d</name><devices/>";
    for (xml, word) in [
        (format!("<domain>{body}</domain>trailing"), "outside the root"),
        (format!("<domain>{body}</domain><domain>{body}</domain>"), "second root"),
        (format!("<domain>{body}</domain"), "malformed"),
        (format!("<domain>{body}</other>"), "malformed"),
        (format!("<domain>{body}<a b='1' b='2'/></domain>"), "malformed"),
        (format!("<domain>{body}<a b='<'/></domain>"), "attribute"),
        (format!("<domain>{body}<a b='&nope;'/></domain>"), "malformed"),
        (format!("<domain>{body}<a>&nope;</a></domain>"), "&nope; is not known"),
        (format!("<domain>{body}<a>&#1;</a></domain>"), "U+0001"),
        (format!("<domain>{body}<a b='&#0;'/></domain>"), "malformed"),
        (format!("<domain>{body}<a>& b</a></domain>"), "malformed"),
        (format!("<domain>{body}< a/></domain>"), "no valid name"),
        (format!("<domain>{body}<!-- a -- b --></domain>"), "malformed"),
        (format!("<!DOCTYPE domain><domain>{body}</domain>"), "DOCTYPE"),
        (format!("<domain>{body}<!DOCTYPE domain></domain>"), "DOCTYPE"),
        (format!("<?xml version='1.0' encoding='UTF-7'?><domain>{body}</domain>"), "encoding"),
        (format!(" <?xml version='1.0'?><domain>{body}</domain>"), "not at the beginning"),
        (format!("<domain xmlns='urn:x'>{body}</domain>"), "root element <domain>"),
        (format!("<x:domain xmlns:x='urn:x'>{body}</x:domain>"), "root element <domain>"),
        ("<domain><devices/></domain>".to_owned(), "no <name>"),
        ("<domain><name></name></domain>".to_owned(), "no <name>"),
        (format!("<domain>{body}<uuid>x</uuid></domain>"), "instance UUID"),
        (format!("<domain>{body}<uuid/></domain>"), "instance UUID"),
    ] {
        let err = DomainDoc::parse(&xml).unwrap_err();
        assert!(err.to_string().contains(word), "{xml}: {err}");
        assert!(!err.to_string().contains(|c: char| c.is_control()), "{xml}: {err:?}");
        assert_eq!(write_hostdevs(&xml, None, &[]).unwrap_err(), err);
        assert_eq!(without_hostdevs(&xml, &[]).unwrap_err(), err);
    }
    assert!(DomainDoc::parse(b"<domain><name>\xff</name></domain>").is_err());
    assert!(DomainDoc::parse(b"<domain><name>a\0b</name></domain>").is_err());
    assert!(DomainDoc::parse(b"<domain><name>a\x1bb</name></domain>").is_err());
}

/// A message says where: line and path, and no more of the path than a line holds.
#[test]
fn errors_say_where() {
    let err =
        DomainDoc::parse("<domain>\n<name>d</name>\n<devices>\n<a><b c='1' c='2'/></a></devices></domain>");
    let err = err.unwrap_err().to_string();
    assert!(err.starts_with("malformed XML in line 4, /domain/devices/a: "), "{err}");
    let deep = format!("<domain><name>d</name>{}", "<\u{e9}lan>".repeat(100));
    let err = DomainDoc::parse(deep).unwrap_err().to_string();
    assert!(err.contains("/..."), "{err}");
    assert!(err.len() < 300, "{err}");
}

/// A long list of node sets ends in an error, not in work without end.
#[test]
fn node_sets_are_bounded() {
    let memnode = format!("<memnode nodeset='{}'/>", "0-16383,".repeat(500));
    let xml = format!("<domain><name>d</name><numatune>{}</numatune></domain>", memnode.repeat(100));
    let err = DomainDoc::parse(xml).unwrap_err();
    assert!(matches!(err, XmlError::LimitExceeded { limit: 65536, .. }), "{err}");
}
