//! Writing changes what it writes and nothing else: by property, and by hand for the odd documents.

use mdevirt::model::{DeviceApi, DisplayWish, Hostdev, InstanceUuid, MdevUuid};
use mdevirt::xml::XmlError;
use mdevirt::xml::domain::{
    DomainDoc, HostdevSource, Wanted, with_devices, without_hostdevs, write_hostdevs,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::case_text;
use crate::golden::{OURS, built_in, uuid};

const OTHER: &str = "b4645cc2-b09f-4e90-895d-5b773cf165cc";
const INSTANCE: &str = "3744fe1a-251d-4205-b1d2-ec9e8af06992";

fn instance() -> InstanceUuid {
    INSTANCE.parse().unwrap()
}

/// The n-th device of ours.
fn ours(n: u8) -> MdevUuid {
    uuid(&format!("{n:02x}{}", &OURS[2..]))
}

fn rendered(count: u8) -> Vec<String> {
    let one = |n: u8| {
        let hostdev = Hostdev { uuid: ours(n), model: DeviceApi::VfioPci, display: n == 0, ramfb: n == 0 };
        built_in().hostdev(&hostdev).unwrap()
    };
    (0..count).map(one).collect()
}

fn sources(xml: &str) -> Vec<String> {
    DomainDoc::parse(xml).unwrap().hostdevs.iter().map(|h| h.source.to_string()).collect()
}

/// What may stand between elements, or be an element, anywhere below `<domain>`.
const NOISE: &[&str] = &[
    "\n",
    "\n    ",
    "\r\n\t",
    "  ",
    "\t",
    "text &lt;/devices&gt; &#65;",
    "<!-- </devices> <devices> </domain> -->",
    "<!---->",
    "<?pi </devices> <uuid/> ?>",
    "<![CDATA[</devices></domain>]]>",
    "<metadata><devices><hostdev type='mdev'/></devices></metadata>",
    "<x:devices xmlns:x='urn:x'><x:hostdev/></x:devices>",
    "<video a=\"/devices>\"\n   b='>'>\n  <model type='none'/></video>",
    "<a xmlns='urn:y'><devices/><name/></a>",
    "<graphics type='vnc'/>",
    "<\u{fc}ber\u{1f600}/>",
];

/// Pieces of which whole documents and all kinds of broken ones come.
const BITS: &[&str] = &[
    "<domain>",
    "</domain>",
    "<name>n</name>",
    "<devices>",
    "</devices>",
    "<hostdev type='mdev'>",
    "<",
    "&",
    "\0",
];

/// Host devices of somebody else.
const THEIRS: &[&str] = &[
    "<hostdev mode='subsystem' type='mdev' model='vfio-pci'><source><address \
     uuid='b4645cc2-b09f-4e90-895d-5b773cf165cc'/></source></hostdev>",
    "<hostdev type='pci'>\n<source>\n<address bus='0x26'/></source></hostdev>",
    "<hostdev mode='subsystem' type='usb'/>",
];

fn noise() -> impl Strategy<Value = String> {
    vec(select(NOISE), 0..6).prop_map(|parts| parts.concat())
}

fn devices() -> impl Strategy<Value = String> {
    let inside = vec(select([NOISE, THEIRS].concat()), 0..8).prop_map(|parts| parts.concat());
    inside.prop_map(|inside| format!("<devices >{inside}</devices\n>"))
}

/// A domain with its devices in full.
fn domain() -> impl Strategy<Value = String> {
    let head = select(&["", "\u{feff}", "<?xml version='1.0' encoding='utf-8'?>\n", "<!-- x -->\n"][..]);
    let tail = select(&["", "\n", "<!-- </domain> -->", "\r\n"][..]);
    (head, noise(), noise(), devices(), noise(), proptest::option::of(devices()), tail).prop_map(
        |(head, a, b, first, c, second, tail)| {
            let second = second.unwrap_or_default();
            format!("{head}<domain type='kvm'>{a}<name>n</name>{b}{first}{c}{second}</domain>{tail}")
        },
    )
}

/// Lengths of what two texts share at both ends, together at most the shorter one's length.
fn shared(a: &str, b: &str) -> usize {
    let front = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    let rest = a.len().min(b.len()) - front;
    front + a.bytes().rev().zip(b.bytes().rev()).take(rest).take_while(|(x, y)| x == y).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// One insertion, which is taken out again without a trace; what was there is found as before.
    #[test]
    fn devices_come_and_go_without_a_trace(xml in domain(), count in 0u8..4) {
        let elements = rendered(count);
        let written = write_hostdevs(&xml, None, &elements).unwrap();
        prop_assert_eq!(shared(&xml, &written), xml.len(), "{}", written);
        let uuids: Vec<_> = (0..count).map(ours).collect();
        prop_assert_eq!(&without_hostdevs(&written, &uuids).unwrap(), &xml);
        prop_assert_eq!(&write_hostdevs(&written, None, &elements).unwrap(), &written);
        let (before, after) = (sources(&xml), sources(&written));
        let mut theirs = after.clone();
        theirs.retain(|s| !uuids.iter().any(|u| s.contains(&u.to_string())));
        prop_assert_eq!(theirs, before);
        prop_assert_eq!(after.len(), sources(&xml).len() + usize::from(count));
        let doc = DomainDoc::parse(&written).unwrap();
        prop_assert_eq!(doc.name.as_str(), "n");
        prop_assert_eq!(doc.has_graphics, DomainDoc::parse(&xml).unwrap().has_graphics);
    }

    /// The UUID is one insertion more, right behind the name.
    #[test]
    fn a_uuid_is_added_behind_the_name(xml in domain()) {
        let written = write_hostdevs(&xml, Some(instance()), &[]).unwrap();
        prop_assert_eq!(shared(&xml, &written), xml.len());
        let doc = DomainDoc::parse(&written).unwrap();
        prop_assert_eq!(doc.uuid, Some(instance()));
        prop_assert_eq!(&write_hostdevs(&written, Some(instance()), &[]).unwrap(), &written);
        let (_, behind) = written.split_once("</name>").unwrap();
        prop_assert!(behind.trim_start().starts_with("<uuid>"), "{}", behind);
    }

    /// Whatever the bytes are: an error or the same bytes, never a panic.
    #[test]
    fn arbitrary_text_is_kept_or_refused(parts in vec(select([NOISE, THEIRS, BITS].concat()), 0..12)) {
        let xml = parts.concat();
        if let Ok(same) = write_hostdevs(&xml, None, &[]) {
            prop_assert_eq!(same, xml);
        }
    }
}

#[test]
fn the_end_of_devices_is_found_among_fakes() {
    let xml = "<domain>\n  <name>n</name>\n  <devices>\n    <a>\n      <devices>\n      </devices>\n    </a>\n    \
               <!-- </devices> -->\n    <![CDATA[</devices>]]>\n  </devices>\n</domain>\n";
    let written = write_hostdevs(xml, None, &rendered(1)).unwrap();
    let (front, back) = written.split_once("\n    <hostdev ").unwrap();
    assert!(front.ends_with("<![CDATA[</devices>]]>"));
    assert!(back.ends_with("\n    </hostdev>\n  </devices>\n</domain>\n"), "{back}");
    assert!(back.contains("\n      <source>\n        <address uuid='"), "{back}");
}

#[test]
fn missing_and_empty_devices_are_made() {
    let ours = rendered(1);
    let body = ours[0].replace('\n', "\n    ");
    let missing = "<domain>\n  <name>n</name>\n</domain>\n";
    let made = format!("<domain>\n  <name>n</name>\n  <devices>\n    {body}\n  </devices>\n</domain>\n");
    assert_eq!(write_hostdevs(missing, None, &ours).unwrap(), made);
    for empty in ["<devices/>", "<devices />", "<devices\n/>"] {
        let xml = missing.replace("</name>", &format!("</name>\n  {empty}"));
        assert_eq!(write_hostdevs(&xml, None, &ours).unwrap(), made, "{empty}");
    }
    let kept = missing.replace("</name>", "</name>\n  <devices x:a='1' xmlns:x='u'/>");
    let written = write_hostdevs(&kept, None, &ours).unwrap();
    assert!(written.contains("<devices x:a='1' xmlns:x='u'>\n    <hostdev "), "{written}");
    let open = missing.replace("</name>", "</name>\n  <devices>\n  </devices>");
    assert_eq!(write_hostdevs(&open, None, &ours).unwrap(), made);
    let line = "<domain><name>n</name></domain>";
    let one = format!("<domain><name>n</name><uuid>{INSTANCE}</uuid><devices>{}</devices></domain>", ours[0]);
    assert_eq!(write_hostdevs(line, Some(instance()), &ours).unwrap(), one);
    let windows = missing.replace('\n', "\r\n");
    let both = write_hostdevs(&windows, Some(instance()), &ours).unwrap();
    assert_eq!(both.matches('\n').count(), both.matches("\r\n").count(), "{both:?}");
}

#[test]
fn devices_that_are_there_are_not_doubled() {
    let xml = case_text("18-display-and-ramfb/domains/plain.xml");
    let theirs = "6ed6d2cd-e746-4a7b-8f5f-f5472be271cc";
    let same = built_in()
        .hostdev(&Hostdev {
            uuid: uuid(&theirs.to_uppercase()),
            model: DeviceApi::VfioPci,
            display: true,
            ramfb: true,
        })
        .unwrap();
    assert_eq!(write_hostdevs(&xml, None, std::slice::from_ref(&same)).unwrap(), xml);
    let ours = [rendered(1), rendered(1), vec![same]].concat();
    assert_eq!(sources(&write_hostdevs(&xml, None, &ours).unwrap()).len(), 2);
}

#[test]
fn exactly_the_named_devices_are_taken_out() {
    let xml = case_text("18-display-and-ramfb/domains/two-ramfb.xml");
    let (first, second) =
        (uuid("6ed6d2cd-e746-4a7b-8f5f-f5472be271cc"), uuid("af2266d5-e04c-48c3-b10f-a5c955666a77"));
    assert_eq!(without_hostdevs(&xml, &[uuid(OTHER)]).unwrap(), xml);
    let left = without_hostdevs(&xml, &[first]).unwrap();
    assert_eq!(sources(&left), [format!("mdev {second}")]);
    assert_eq!(left.lines().count(), xml.lines().count() - 5);
    let none = without_hostdevs(&xml, &[first, second]).unwrap();
    assert!(none.contains("</video>\n  </devices>"), "{none}");
}

/// The rewrite of a domain on its way to libvirt: ours are written anew, the wish of today counts.
#[test]
fn our_devices_are_written_anew() {
    let xml = case_text("32-hostile-names/domains/dots.xml");
    let devices = [(uuid(OURS), DeviceApi::VfioPci)];
    let wanted = |display| Wanted { uuid: None, devices: &devices, display };
    let on = with_devices(&xml, &wanted(DisplayWish::On), &built_in()).unwrap();
    assert!(on.contains("ramfb='on'"));
    let off = with_devices(&on, &wanted(DisplayWish::Off), &built_in()).unwrap();
    assert_eq!(off, with_devices(&xml, &wanted(DisplayWish::Off), &built_in()).unwrap());
    assert!(off.contains("display='off'") && !off.contains("ramfb"));
    let none = Wanted { devices: &[], ..wanted(DisplayWish::Off) };
    assert_eq!(with_devices(&xml, &none, &built_in()).unwrap(), xml);
}

#[test]
fn what_cannot_be_written_is_refused() {
    let xml = case_text("32-hostile-names/domains/dots.xml");
    let err = write_hostdevs(&xml, Some(instance()), &[]).unwrap_err();
    assert!(matches!(&err, XmlError::Refused { .. }) && err.to_string().contains(INSTANCE), "{err}");
    for bad in ["", "<hostdev/>", "<hostdev", "<video/>", "</devices>", "a", "<hostdev type='usb'/>"] {
        assert!(write_hostdevs(&xml, None, &[bad.to_owned()]).is_err(), "{bad}");
    }
    let two = rendered(2).concat();
    assert!(write_hostdevs(&xml, None, &[two]).is_err(), "an element is one element");
}

#[test]
fn a_vf_is_written_and_not_doubled() {
    let xml = case_text("32-hostile-names/domains/dots.xml");
    let addr = "0001:a1:00.4".parse().unwrap();
    let vf = [built_in().hostdev_vf(addr).unwrap()];
    let written = write_hostdevs(&xml, None, &vf).unwrap();
    assert_eq!(DomainDoc::parse(&written).unwrap().hostdevs[0].source, HostdevSource::Pci(addr));
    assert_eq!(write_hostdevs(&written, None, &vf).unwrap(), written);
}
