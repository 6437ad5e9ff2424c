//! What is written, as files: `MDEVIRT_REGEN=1` rewrites them. `tests/embed.rs` shows the domains to libvirt.

use std::path::Path;

use mdevirt::model::{DeviceApi, DisplayWish, Hostdev, MdevUuid, NewMdev};
use mdevirt::xml::domain::{DeviceFacts, DomainDoc, Wanted, check, with_devices};
use mdevirt::xml::render::Templates;

use crate::case_text;

pub(crate) const OURS: &str = "1f0c2b7e-5a11-4c57-9d2e-7c3a4d5e6f01";
const OURS_TOO: &str = "2e9d3c8f-6b22-4d68-8e3f-8d4b5e6f7a02";

pub(crate) fn uuid(text: &str) -> MdevUuid {
    text.parse().unwrap()
}

pub(crate) fn built_in() -> Templates {
    Templates::load(&[]).unwrap()
}

fn assert_golden(name: &str, got: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/xml").join(name);
    if std::env::var_os("MDEVIRT_REGEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, got).unwrap();
    }
    let want = std::fs::read_to_string(&path)
        .unwrap_or_else(|err| panic!("{}: {err}; MDEVIRT_REGEN=1 writes it", path.display()));
    assert_eq!(got, want, "{name} differs; MDEVIRT_REGEN=1 rewrites it");
}

/// A minimal domain as a person types it, without what we add.
const TYPED: &str = "<domain type='kvm'>
  <name>typed</name>
  <memory unit='MiB'>256</memory>
  <os><type arch='x86_64' machine='q35'>hvm</type></os>
</domain>
";

#[test]
fn domains_with_our_devices() {
    let (one, two) = ((uuid(OURS), DeviceApi::VfioPci), (uuid(OURS_TOO), DeviceApi::VfioPci));
    let (on, off) = (DisplayWish::On, DisplayWish::Off);
    let hostile = |name: &str| case_text(&format!("32-hostile-names/domains/{name}.xml"));
    for (golden, xml, devices, display) in [
        ("domain-quotes-plain", hostile("quotes"), &[one][..], off),
        ("domain-dash-console", hostile("dash"), &[one], on),
        ("domain-blank-two-devices", hostile("blank"), &[one, two], on),
        ("domain-dash-two-devices-off", hostile("dash"), &[one, two], off),
        ("domain-shell-metadata", hostile("shell"), &[one], on),
        (
            "domain-existing-ramfb",
            case_text("18-display-and-ramfb/domains/ramfb-without-display.xml"),
            &[one],
            off,
        ),
        ("domain-existing-hostdev", case_text("18-display-and-ramfb/domains/plain.xml"), &[two, one], on),
        ("domain-existing-alias", case_text("19-hostdev-attributes/domains/alias-good.xml"), &[one], off),
        ("domain-typed", TYPED.to_owned(), &[one], off),
        ("domain-typed-empty-devices", TYPED.replace("</os>\n", "</os>\n  <devices />\n"), &[one], off),
        (
            "domain-one-line",
            TYPED.replace("\n  ", "").replace("</os>\n", "</os><devices></devices>"),
            &[one],
            off,
        ),
    ] {
        let instance = DomainDoc::parse(&xml).unwrap().uuid;
        let added = "3744fe1a-251d-4205-b1d2-ec9e8af06992".parse().unwrap();
        let wanted = Wanted { uuid: instance.or(Some(added)), devices, display };
        let written = with_devices(&xml, &wanted, &built_in()).unwrap();
        assert_golden(&format!("{golden}.xml"), &written);
        let doc = DomainDoc::parse(&written).unwrap();
        assert_eq!(doc.uuid, wanted.uuid);
        assert_eq!(doc.name, DomainDoc::parse(&xml).unwrap().name);
        let api = devices.iter().copied().collect();
        let refused = check(&doc, &DeviceFacts { device_api: api, ..DeviceFacts::default() });
        mdevirt::xml::domain::refuse(&refused).unwrap();
        assert_eq!(with_devices(&written, &wanted, &built_in()).unwrap(), written, "{golden}: again");
    }
}

#[test]
fn single_elements() {
    let hostdev = |model, display, ramfb| {
        built_in().hostdev(&Hostdev { uuid: uuid(OURS), model, display, ramfb }).unwrap()
    };
    for (golden, got) in [
        ("hostdev-console", hostdev(DeviceApi::VfioPci, true, true)),
        ("hostdev-pci", hostdev(DeviceApi::VfioPci, false, false)),
        ("hostdev-ccw", hostdev(DeviceApi::VfioCcw, false, false)),
        ("hostdev-ap", hostdev(DeviceApi::VfioAp, false, false)),
        // Case 05, 2: the bus never lands in slot, and there is no guest address.
        ("hostdev-vf", built_in().hostdev_vf("0001:a1:00.4".parse().unwrap()).unwrap()),
        (
            "nodedev-mdev",
            built_in()
                .nodedev(&NewMdev {
                    uuid: uuid(OURS),
                    parent: "0000:3b:00.0".parse().unwrap(),
                    type_id: "nvidia-231".parse().unwrap(),
                    device_api: DeviceApi::VfioPci,
                })
                .unwrap(),
        ),
    ] {
        assert_golden(&format!("{golden}.xml"), &format!("{got}\n"));
    }
}
