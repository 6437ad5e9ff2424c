//! The interfaces as they are introspected, against the files in `tests/golden/introspection`.
//!
//! A change there is a change of the wire: members are added, never renamed. `MDEVIRT_REGEN=1` rewrites the files.

use std::path::Path;

use mdevirt::dbus::path;
use mdevirt::model::OpKind;
use zbus::fdo::IntrospectableProxy;

use crate::bus::{Fake, Pace, PrivateBus};

async fn interface(bus: &PrivateBus, at: &str, name: &str) -> String {
    let connection = bus.connect().await;
    let object = IntrospectableProxy::builder(&connection)
        .destination("org.mdevirt1")
        .path(at.to_owned())
        .build()
        .await
        .unwrap();
    let xml = object.introspect().await.unwrap();
    let start = xml.find(&format!("  <interface name=\"{name}\">")).expect("the interface is there");
    let end = start + xml[start..].find("</interface>").unwrap() + "</interface>\n".len();
    xml[start..end].to_owned()
}

#[tokio::test]
async fn the_interfaces_are_as_written_down() {
    let (bus, service) = (PrivateBus::start(), Fake::new(Pace::Held));
    let job = service.begin(OpKind::Spawn, "11111111-2222-4333-8444-555555555555".parse().unwrap());
    let _server = bus.serve(&service).await;
    let job = path::of_job(job).to_string();
    for (name, at) in [
        ("org.mdevirt1.Manager", "/org/mdevirt1"),
        ("org.mdevirt1.Job", job.as_str()),
        ("org.mdevirt1.Instance", "/org/mdevirt1/instance/11111111_2222_4333_8444_555555555555"),
        ("org.mdevirt1.Parent", "/org/mdevirt1/parent/mtty_5fmtty"),
        ("org.freedesktop.DBus.ObjectManager", "/org/mdevirt1"),
    ] {
        let seen = interface(&bus, at, name).await;
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/introspection/{name}.xml"));
        if std::env::var_os("MDEVIRT_REGEN").is_some() {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, &seen).unwrap();
        }
        let want = std::fs::read_to_string(&file).unwrap_or_else(|err| panic!("{}: {err}", file.display()));
        assert_eq!(seen, want, "{name}");
    }
}
