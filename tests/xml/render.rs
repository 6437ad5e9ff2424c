//! Templates of an operator: what may change, what may not, and which file is named.

use std::path::Path;

use mdevirt::model::{DeviceApi, Fault, FaultKind, Hostdev};
use mdevirt::xml::XmlError;
use mdevirt::xml::render::Templates;

use crate::golden::{OURS, uuid};

fn shipped(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("xml-templates").join(name);
    std::fs::read_to_string(path).unwrap()
}

fn console(templates: &Templates) -> String {
    let hostdev = Hostdev { uuid: uuid(OURS), model: DeviceApi::VfioPci, display: true, ramfb: true };
    templates.hostdev(&hostdev).unwrap()
}

#[test]
fn the_operators_directory_comes_first() {
    let (etc, share) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dirs = [etc.path(), share.path(), Path::new("/nonexistent")];
    let built_in = console(&Templates::load(&[]).unwrap());
    assert_eq!(console(&Templates::load(&dirs).unwrap()), built_in);
    let with =
        |extra: &str| shipped("hostdev-mdev.xml").replace("</hostdev>", &format!("  {extra}\n</hostdev>"));
    std::fs::write(share.path().join("hostdev-mdev.xml"), with("<rom bar='on'/>")).unwrap();
    assert!(console(&Templates::load(&dirs).unwrap()).contains("<rom bar='on'/>"));
    std::fs::write(etc.path().join("hostdev-mdev.xml"), with("<rom bar='off'/>")).unwrap();
    assert!(console(&Templates::load(&dirs).unwrap()).contains("<rom bar='off'/>"));
}

/// A template may add to a device, never change it; the file is named.
#[test]
fn broken_templates_are_refused_by_name() {
    let hostdev = shipped("hostdev-mdev.xml");
    let (vf, nodedev) = (shipped("hostdev-vf.xml"), shipped("nodedev-mdev.xml"));
    for (name, text, word) in [
        ("hostdev-mdev.xml", hostdev.replace("managed='no'", "managed='yes'"), "not the device"),
        ("hostdev-mdev.xml", hostdev.replace("managed='no'", ""), "not the device"),
        ("hostdev-mdev.xml", hostdev.replace("type='mdev'", "type='pci'"), "without a source address"),
        (
            "hostdev-mdev.xml",
            hostdev.replace("display='{{display}}'", "display='on'"),
            "{{display}} is missing",
        ),
        (
            "hostdev-mdev.xml",
            hostdev.replace("ramfb='{{ramfb}}'", "ramfb='x{{ramfb}}'"),
            "expected on or off",
        ),
        (
            "hostdev-mdev.xml",
            hostdev.replace("display='{{display}}'", "display='{{display}} '"),
            "expected on or off",
        ),
        (
            "hostdev-mdev.xml",
            hostdev.replace("model='{{model}}'", "model='vfio-pci' x='{{model}}'"),
            "not the device",
        ),
        ("hostdev-mdev.xml", hostdev.replace("{{uuid}}", "{{name}}"), "{{name}} is unknown"),
        ("hostdev-mdev.xml", hostdev.replace("</hostdev>", ""), "ends inside"),
        ("hostdev-mdev.xml", hostdev.replace("<!--", "<!DOCTYPE x><!--"), "DOCTYPE"),
        ("hostdev-mdev.xml", hostdev.clone() + &hostdev, "second root"),
        ("hostdev-mdev.xml", String::new(), "no element"),
        (
            "hostdev-vf.xml",
            vf.replace("slot='{{slot}}' function", "slot='{{function}}' x='{{slot}}' function"),
            "not the device",
        ),
        ("hostdev-vf.xml", vf.replace("managed='no'", "managed=''"), "not the device"),
        (
            "nodedev-mdev.xml",
            nodedev.replace("{{type}}", "{{parent}}").replace("<parent>{{parent}}", "<parent>{{type}}"),
            "not the device",
        ),
        ("nodedev-mdev.xml", nodedev.replace("type='mdev'", "type='pci'"), "no mdev capability"),
    ] {
        let etc = tempfile::tempdir().unwrap();
        let path = etc.path().join(name);
        std::fs::write(&path, text).unwrap();
        let err = Templates::load(&[etc.path()]).unwrap_err();
        assert!(matches!(err, XmlError::Template { .. }));
        assert!(err.to_string().contains(&path.display().to_string()), "{err}");
        assert!(err.to_string().contains(word), "{word}: {err}");
        assert_eq!(Fault::from(err).kind, FaultKind::InvalidMdevConfig);
    }
}

/// Only a file that is not there lets the next one count.
#[test]
fn an_unreadable_template_is_an_error() {
    let etc = tempfile::tempdir().unwrap();
    std::fs::create_dir(etc.path().join("nodedev-mdev.xml")).unwrap();
    let err = Templates::load(&[etc.path()]).unwrap_err();
    assert!(err.to_string().contains("nodedev-mdev.xml"), "{err}");
}
