//! Domains of the cases: what is read, what is refused and what is only remarked.

use mdevirt::model::{DeviceApi, DisplayWish, Fault, FaultKind, FindingKind, Hostdev, MdevUuid};
use mdevirt::xml::XmlError;
use mdevirt::xml::domain::{
    DeviceFacts, DomainDoc, HostdevSource, Managed, Remark, Severity, check, hostdev_plan, refuse,
};

use crate::{case, case_text};

const FIRST: &str = "6ed6d2cd-e746-4a7b-8f5f-f5472be271cc";
const SECOND: &str = "af2266d5-e04c-48c3-b10f-a5c955666a77";
const ATTRIBUTED: &str = "65e07e12-480e-42cd-b5df-9edc68b1675c";
const GRAPHICS: &str = "<domain><name>d</name><devices><graphics type='vnc'/></devices></domain>";
const HEADLESS: &str = "<domain><name>d</name><devices/></domain>";

fn mdev(text: &str) -> MdevUuid {
    text.parse().unwrap()
}

fn doc(name: &str) -> DomainDoc {
    DomainDoc::parse(case(name)).unwrap_or_else(|err| panic!("{name}: {err}"))
}

/// The facts of case 19: the mdev's parent has vfio-pci, the VF carries a vGPU.
fn facts() -> DeviceFacts {
    DeviceFacts {
        device_api: [(mdev(ATTRIBUTED), DeviceApi::VfioPci)].into(),
        vendor_vfio: ["0000:26:00.4".parse().unwrap()].into(),
    }
}

fn remarks(name: &str) -> Vec<Remark> {
    check(&doc(name), &facts())
}

fn one(name: &str, severity: Severity, words: &[&str]) -> Remark {
    let all = remarks(name);
    let [remark] = &all[..] else { panic!("{name}: {all:?}") };
    assert_eq!(remark.severity, severity, "{name}");
    let said = format!("{}: {}", remark.about, remark.text);
    for word in words {
        assert!(said.contains(word), "{name}: {said}");
    }
    remark.clone()
}

/// Case 18, the four domains as they are.
#[test]
fn console_of_a_users_own_domain() {
    let two =
        one("18-display-and-ramfb/domains/two-ramfb.xml", Severity::Refusal, &[FIRST, SECOND, "ramfb='on'"]);
    let err = refuse(&[two]).unwrap_err();
    assert!(matches!(err, XmlError::Refused { .. }));
    assert_eq!(Fault::from(err).kind, FaultKind::InvalidDomainXml);
    one("18-display-and-ramfb/domains/display-no-graphics.xml", Severity::Refusal, &[FIRST, "<graphics>"]);
    let alone = one(
        "18-display-and-ramfb/domains/ramfb-without-display.xml",
        Severity::Warning,
        &[FIRST, "shows nothing", "unplugged"],
    );
    assert_eq!(alone.finding("desk-03").kind, FindingKind::ConfigWarning);
    assert_eq!(refuse(&[alone]), Ok(()));
    assert_eq!(remarks("18-display-and-ramfb/domains/plain.xml"), []);
}

/// Case 18, R1 to R4 of `requests.tsv`: the outcome for the whole domain.
#[test]
fn console_of_devices_we_write() {
    let devices = [(mdev(FIRST), DeviceApi::VfioPci), (mdev(SECOND), DeviceApi::VfioPci)];
    let mut seen = Vec::new();
    for line in case_text("18-display-and-ramfb/requests.tsv").lines().skip(1) {
        let [request, graphics, count, wanted] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let wish = if wanted == "yes" { DisplayWish::On } else { DisplayWish::default() };
        let domain = DomainDoc::parse(if graphics == "yes" { GRAPHICS } else { HEADLESS }).unwrap();
        let plan = hostdev_plan(&devices[..count.parse::<usize>().unwrap()], wish, &domain);
        let shape = plan.map(|all| all.iter().map(|h| (h.display, h.ramfb)).collect::<Vec<_>>());
        seen.push((request.to_owned(), shape.map_err(|err| err.to_string())));
    }
    let refused = format!(
        "mdev {FIRST}: display='on' needs a <graphics> element in <devices>: add one or ask for display off"
    );
    let wanted = [
        ("R1", Ok(vec![(true, true), (false, false)])),
        ("R2", Err(refused)),
        ("R3", Ok(vec![(false, false), (false, false)])),
        ("R4", Ok(vec![(false, false)])),
    ];
    assert_eq!(seen, wanted.map(|(name, shape)| (name.to_owned(), shape)));
}

/// The alias that a running domain shows is libvirt's own, not a user's that it would drop.
#[test]
fn libvirts_alias_is_no_users_alias() {
    let named = |alias: &str| {
        let device = hostdev("model='vfio-pci'", ATTRIBUTED)
            .replace("<source>", &format!("<alias name='{alias}'/><source>"));
        let xml = GRAPHICS.replace("<graphics", &format!("{device}<graphics"));
        check(&DomainDoc::parse(xml).unwrap(), &facts()).len()
    };
    for (alias, remarks) in [("hostdev0", 0), ("hostdev12", 0), ("hostdev", 1), ("hostdev-1", 1), ("ua-1", 0)]
    {
        assert_eq!(named(alias), remarks, "{alias}");
    }
}

/// Product, section 7: one ramfb in a domain, whoever wrote it.
#[test]
fn a_ramfb_of_the_user_counts() {
    let domain = doc("18-display-and-ramfb/domains/ramfb-without-display.xml");
    let device = [(mdev(SECOND), DeviceApi::VfioPci)];
    let err = hostdev_plan(&device, DisplayWish::On, &domain).unwrap_err().to_string();
    assert!(err.contains(FIRST) && err.contains(SECOND) && err.contains("ramfb"), "{err}");
    assert!(hostdev_plan(&device, DisplayWish::Off, &domain).is_ok());
}

/// Case 28, 4: model from the device API, no display for s390 devices, one vfio-ap.
#[test]
fn devices_that_are_no_pci() {
    let domain = DomainDoc::parse(GRAPHICS).unwrap();
    let (ccw, ap) = ((mdev(FIRST), DeviceApi::VfioCcw), (mdev(SECOND), DeviceApi::VfioAp));
    let pci = (mdev(ATTRIBUTED), DeviceApi::VfioPci);
    let plan = hostdev_plan(&[ccw, ap, pci], DisplayWish::On, &domain).unwrap();
    let off = |uuid, model| Hostdev { uuid, model, display: false, ramfb: false };
    assert_eq!(plan[..2], [off(ccw.0, ccw.1), off(ap.0, ap.1)]);
    assert_eq!(plan[2], Hostdev { uuid: pci.0, model: pci.1, display: true, ramfb: true });
    let err = hostdev_plan(&[ccw, ap], DisplayWish::On, &domain).unwrap_err().to_string();
    assert!(err.contains("no device of this domain is a vfio-pci device"), "{err}");
    let err = hostdev_plan(&[ap, (mdev(FIRST), DeviceApi::VfioAp)], DisplayWish::Off, &domain).unwrap_err();
    assert!(err.to_string().contains(SECOND) && err.to_string().contains("vfio-ap"), "{err}");
    let theirs = GRAPHICS.replace("<graphics type='vnc'/>", &hostdev("model='vfio-ap'", FIRST));
    let theirs = DomainDoc::parse(theirs).unwrap();
    assert!(hostdev_plan(&[ap], DisplayWish::Off, &theirs).unwrap_err().to_string().contains(FIRST));
}

fn hostdev(attributes: &str, uuid: &str) -> String {
    format!(
        "<hostdev mode='subsystem' type='mdev' {attributes}><source><address uuid='{uuid}'/></source></hostdev>"
    )
}

/// Case 19, the eight domains.
#[test]
fn attributes_of_a_users_own_host_device() {
    let file = |name: &str| format!("19-hostdev-attributes/domains/{name}.xml");
    let refusal =
        one(&file("no-model"), Severity::Refusal, &[ATTRIBUTED, "model missing", "model='vfio-pci'"]);
    assert_eq!(refuse(&[refusal]).unwrap_err().to_string().matches("model").count(), 2);
    one(&file("alias-dot"), Severity::Warning, &[ATTRIBUTED, "ua-nvidia.com-grid-t4", "drops the alias"]);
    one(&file("alias-plain"), Severity::Warning, &[ATTRIBUTED, "drops the alias"]);
    one(&file("vf-managed-yes"), Severity::Refusal, &["0000:26:00.4", "managed='no'"]);
    one(&file("vf-managed-empty"), Severity::Warning, &["0000:26:00.4", "managed='no'"]);
    for quiet in ["alias-good", "mdev-managed-empty", "vf-managed-absent"] {
        assert_eq!(remarks(&file(quiet)), [], "{quiet}");
    }
    for (name, managed) in [
        ("vf-managed-yes", Managed::Yes),
        ("vf-managed-empty", Managed::Empty),
        ("vf-managed-absent", Managed::Absent),
        ("mdev-managed-empty", Managed::Empty),
    ] {
        assert_eq!(doc(&file(name)).hostdevs[0].managed, managed);
    }
    // A PCI function that is no vGPU is the user's own affair.
    assert_eq!(check(&doc(&file("vf-managed-yes")), &DeviceFacts::default()), []);
    let unknown = check(&doc(&file("no-model")), &DeviceFacts::default());
    assert!(
        unknown[0].severity == Severity::Refusal && unknown[0].text.contains("device API"),
        "{unknown:?}"
    );
    // The device is found whatever its alias is.
    assert_eq!(doc(&file("alias-dot")).mdev(mdev(ATTRIBUTED)).unwrap().model(), Some(DeviceApi::VfioPci));
}

/// What libvirt would refuse otherwise.
#[test]
fn more_that_libvirt_refuses() {
    let with = |devices: &str| {
        let xml = GRAPHICS.replace("<graphics", &format!("{devices}<graphics"));
        check(&DomainDoc::parse(xml).unwrap(), &facts())
    };
    for (devices, word) in [
        (hostdev("model='vfio-ccw'", ATTRIBUTED), "write model='vfio-pci'"),
        (hostdev("model='vfio-ccw' display='off'", FIRST), "for model='vfio-pci' only"),
        (hostdev("model='vfio-ap' ramfb='on' display='on'", FIRST), "for model='vfio-pci' only"),
        (hostdev("model='vfio-pci'", FIRST).repeat(2), "names it twice"),
        (hostdev("model='vfio-ap'", FIRST) + &hostdev("model='vfio-ap'", SECOND), "only one vfio-ap"),
    ] {
        let all = with(&devices);
        assert!(refuse(&all).unwrap_err().to_string().contains(word), "{devices}: {all:?}");
    }
    let pci = "<hostdev type='pci' ramfb='on' display='on'><source><address bus='9'/></source></hostdev>";
    let all = with(&format!("{pci}{}", hostdev("model='vfio-pci' display='on' ramfb='on'", FIRST)));
    assert!(refuse(&all).unwrap_err().to_string().contains("PCI device 0000:09:00.0"), "{all:?}");
}

/// Both names are kept character for character, the metadata is not looked at. Cases 21 and 32.
#[test]
fn names_are_data() {
    for (file, name) in [
        ("32-hostile-names/domains/blank.xml", "a b\tc"),
        ("32-hostile-names/domains/dash.xml", "--help"),
        ("32-hostile-names/domains/dots.xml", ".."),
        ("32-hostile-names/domains/quotes.xml", "it's \"x\" `id`"),
        ("32-hostile-names/domains/shell.xml", "$(touch pwned);id #"),
    ] {
        assert_eq!(doc(file).name, name);
    }
    // The name is kept, but such a domain is not given to libvirt.
    one("32-hostile-names/domains/dots.xml", Severity::Refusal, &["name", "'..'"]);
    let shell = doc("32-hostile-names/domains/shell.xml");
    assert!(shell.mdev(mdev("256d380e-25f7-4254-b709-825b65ae10c4")).is_some());
    let (golden, clone) = (
        doc("21-cloned-vm-same-uuid/domains/golden.xml"),
        doc("21-cloned-vm-same-uuid/domains/golden-clone1.xml"),
    );
    let shared = mdev("fbb54003-af34-47ea-a026-7bfcc2994bc6");
    assert!(golden.mdev(shared).is_some() && clone.mdev(shared).is_some());
    assert_ne!(golden.uuid, clone.uuid);
    let odd =
        DomainDoc::parse("<domain><name>a<!-- x -->&amp;<![CDATA[</name>]]>&#x41;</name></domain>").unwrap();
    assert_eq!(odd.name, "a&</name>A");
}

/// Devices are those that libvirt would take: children of a `<devices>` of the domain, without a namespace.
#[test]
fn only_real_devices_count() {
    let device = hostdev("model='vfio-pci'", FIRST);
    let xml = format!(
        "<domain xmlns:x='urn:x'><name>d</name><metadata><x:y><devices>{device}<graphics/></devices></x:y></metadata>\
         <x:devices>{device}</x:devices><devices xmlns='urn:y'>{device}<graphics/></devices>\
         <devices><!-- {device} --><x:hostdev/><video>{device}<graphics/></video></devices></domain>"
    );
    let doc = DomainDoc::parse(&xml).unwrap();
    assert!(doc.hostdevs.is_empty() && !doc.has_graphics, "{doc:?}");
    let two = format!(
        "<domain><name>d</name><devices>{device}</devices><devices><graphics/>\
         <hostdev mode='subsystem' type='usb'><source><vendor id='1'/></source></hostdev>\
         <hostdev mode='capabilities' type='misc'><source><char>/dev/x</char></source></hostdev>\
         <hostdev type='pci' managed='no'><source><address domain='0x1' bus='161' slot='00' function='4'/></source>\
         <address type='pci' bus='0x05'/></hostdev></devices></domain>"
    );
    let doc = DomainDoc::parse(&two).unwrap();
    assert!(doc.has_graphics);
    let sources: Vec<String> = doc.hostdevs.iter().map(|h| h.source.to_string()).collect();
    assert_eq!(sources, [format!("mdev {FIRST}"), "PCI device 0001:a1:00.4".to_owned()]);
    assert_eq!(doc.hostdevs[1].source, HostdevSource::Pci("0001:a1:00.4".parse().unwrap()));
}

/// A host device that libvirt might read otherwise than we do is refused, not guessed at.
#[test]
fn ambiguous_host_devices_are_refused() {
    let source = format!("<source><address uuid='{FIRST}'/></source>");
    for (hostdev, word) in [
        (format!("<hostdev type='mdev' x:model='vfio-pci'>{source}</hostdev>"), "namespace"),
        (format!("<hostdev x:type='mdev' model='vfio-pci'>{source}</hostdev>"), "namespace"),
        (format!("<hostdev type='mdev'><x:source/>{source}</hostdev>"), "namespace"),
        (
            format!("<hostdev type='mdev'><source><x:address uuid='{SECOND}'/></source></hostdev>"),
            "namespace",
        ),
        (
            format!(
                "<hostdev type='mdev'><source xmlns='urn:y'><address uuid='{SECOND}'/></source></hostdev>"
            ),
            "namespace",
        ),
        (format!("<hostdev type='mdev'>{source}{source}</hostdev>"), "two sources"),
        (
            format!("<hostdev type='mdev'>{}</hostdev>", source.replace("<source>", "<source><address/>")),
            "two addresses",
        ),
        ("<hostdev type='mdev'><source/></hostdev>".to_owned(), "without a source address"),
        ("<hostdev type='mdev'><source><address uuid='*'/></source></hostdev>".to_owned(), "mdev UUID"),
        (format!("<hostdev type='pci'>{source}</hostdev>"), "without a source address"),
        (
            "<hostdev type='pci'><source><address slot='0xd6'/></source></hostdev>".to_owned(),
            "slot is above 0x1f",
        ),
        (format!("<hostdev type='mdev' model='vfio-x'>{source}</hostdev>"), "device API"),
        (format!("<hostdev type='mdev' managed='maybe'>{source}</hostdev>"), "managed='maybe'"),
        (format!("<hostdev type='mdev' display='1'>{source}</hostdev>"), "display='1'"),
    ] {
        let xml = format!("<domain xmlns:x='urn:x'><name>d</name><devices>{hostdev}</devices></domain>");
        let err = DomainDoc::parse(xml).unwrap_err().to_string();
        assert!(err.contains(word), "{hostdev}: {err}");
    }
}

/// `<numatune>` as libvirt and nova write it; where the memory is, not how strictly.
#[test]
fn pinned_memory_has_its_nodes() {
    let nodes = |numatune: &str| {
        let xml = format!("<domain><name>d</name>{numatune}</domain>");
        DomainDoc::parse(xml).map(|doc| doc.memory_nodes.map(|nodes| nodes.into_iter().collect::<Vec<u32>>()))
    };
    for (numatune, want) in [
        ("", None),
        ("<numatune/>", None),
        ("<numatune><memory mode='strict' nodeset='0-3,^2'/></numatune>", Some(vec![0, 1, 3])),
        ("<numatune><memory mode='preferred' nodeset='1'/><memory nodeset='2'/></numatune>", Some(vec![1])),
        ("<numatune><memory mode='strict' placement='auto' nodeset='1'/></numatune>", None),
        ("<numatune><memory mode='strict'/></numatune>", None),
        (
            "<numatune><memnode cellid='0' mode='strict' nodeset='2'/><memnode cellid='1' nodeset='4'/></numatune>",
            Some(vec![2, 4]),
        ),
        ("<metadata><x:y xmlns:x='u:x'><numatune><memory nodeset='1'/></numatune></x:y></metadata>", None),
        ("<numatune xmlns='u:x'><memory nodeset='1'/></numatune>", None),
    ] {
        assert_eq!(nodes(numatune), Ok(want), "{numatune}");
    }
    for bad in ["", "^0", "3-1", "0;1", "16384"] {
        let err = nodes(&format!("<numatune><memory nodeset='{bad}'/></numatune>")).unwrap_err();
        assert!(err.to_string().contains(&format!("nodeset='{bad}'")), "{err}");
        assert_eq!(Fault::from(err).kind, FaultKind::InvalidDomainXml);
    }
}
