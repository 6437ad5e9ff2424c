//! libvirt's real QEMU driver, in this process: it takes every domain that we write and refuses what we refuse.
//!
//! `qemu:///embed` needs root, libvirt's QEMU driver and QEMU; no daemon, no KVM and no hardware. Domains are only
//! defined, never started. One root directory per process is all that libvirt allows.
#![cfg(feature = "libvirt")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on shall stop")]

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock};

use mdevirt::xml::domain::{DeviceFacts, DomainDoc, HostdevSource, Vgpu, check, refuse, with_vgpu};
use tempfile::TempDir;
use virt::connect::Connect;
use virt::sys::VIR_DOMAIN_UNDEFINE_NVRAM;

const INSTALL: &str = "install qemu-system-x86 and libvirt-daemon-driver-qemu (Debian, Ubuntu: qemu-system-x86 \
                       libvirt-daemon libvirt-daemon-driver-qemu; Fedora: qemu-kvm libvirt-daemon-driver-qemu)";

struct Driver {
    connection: Connect,
    _root: TempDir,
}

/// The one driver of this process, for one test at a time: two must not define the same domain.
fn driver() -> MutexGuard<'static, Driver> {
    static DRIVER: OnceLock<Mutex<Driver>> = OnceLock::new();
    DRIVER.get_or_init(|| Mutex::new(open())).lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn open() -> Driver {
    let qemu = Path::new("/usr/bin/qemu-system-x86_64");
    assert!(qemu.exists(), "{} is missing: {INSTALL}", qemu.display());
    virt::error::clear_error_callback();
    // The loop has to be there before the first connection, and to run as long as the driver does.
    virt::event::event_register_default_impl().unwrap();
    std::thread::spawn(|| while virt::event::event_run_default_impl().is_ok() {});
    let root = tempfile::tempdir().unwrap();
    // One user probes QEMU and is asked about /dev/kvm. Where root alone may open it, libvirt otherwise takes each answer of
    // QEMU for outdated and asks again, for seconds, at every definition.
    std::fs::create_dir(root.path().join("etc")).unwrap();
    std::fs::write(root.path().join("etc/qemu.conf"), "user = \"root\"\ngroup = \"root\"\n").unwrap();
    let uri = format!("qemu:///embed?root={}", root.path().display());
    let connection =
        Connect::open(Some(&uri)).unwrap_or_else(|err| panic!("{uri}: {err}\nrun as root; {INSTALL}"));
    Driver { connection, _root: root }
}

impl Driver {
    /// Defines the domain and takes it away again; what libvirt made of it.
    fn define(&self, xml: &str) -> Result<String, virt::error::Error> {
        let domain = self.connection.define_domain_xml(&as_emulated(xml))?;
        let xml = domain.xml_desc(0)?;
        domain.undefine_flags(VIR_DOMAIN_UNDEFINE_NVRAM)?;
        Ok(xml)
    }
}

/// The driver knows no domain type kvm where there is no KVM; for host devices the type makes no difference.
fn as_emulated(xml: &str) -> String {
    xml.replace("<domain type='kvm'>", "<domain type='qemu'>")
}

fn below_tests(dir: &str) -> Vec<(PathBuf, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(dir);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), std::fs::read_to_string(&path).unwrap())).collect()
}

/// libvirt keeps what our metadata says, whoever wrote it.
#[test]
fn our_metadata_is_kept() {
    let driver = driver();
    let (_, xml) = below_tests("golden/xml")
        .into_iter()
        .find(|(path, _)| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("domain-")))
        .unwrap();
    let wish = Vgpu {
        flavor: Some("resources:VGPU=1,trait:CUSTOM_X=required".into()),
        held: Some(r#"{"a":"<&'>"}"#.into()),
    };
    let taken = driver.define(&with_vgpu(&xml, Some(&wish)).unwrap()).unwrap();
    assert_eq!(DomainDoc::parse(&taken).unwrap().vgpu, Some(wish), "{taken}");
}

/// Every golden domain; and libvirt has then exactly the devices that we wrote.
#[test]
fn what_we_write_is_accepted() {
    let driver = driver();
    let domains = below_tests("golden/xml").into_iter().filter(|(path, _)| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("domain-"))
    });
    let mut count = 0;
    for (path, xml) in domains {
        let taken = driver.define(&xml).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
        let (ours, theirs) = (DomainDoc::parse(&xml).unwrap(), DomainDoc::parse(&taken).unwrap());
        assert_eq!((ours.uuid, &ours.name), (theirs.uuid, &theirs.name), "{}", path.display());
        assert_eq!(ours.hostdevs.len(), theirs.hostdevs.len(), "{}", path.display());
        for (ours, theirs) in ours.hostdevs.iter().zip(&theirs.hostdevs) {
            assert_eq!(ours.source, theirs.source);
            assert_eq!(ours.display.unwrap_or(false), theirs.display.unwrap_or(false), "{}", path.display());
            assert_eq!(ours.ramfb.unwrap_or(false), theirs.ramfb.unwrap_or(false), "{}", path.display());
        }
        count += 1;
    }
    assert!(count >= 10, "only {count} golden domains");
}

/// The domains of the cases: our word on each is libvirt's.
#[test]
fn users_domains_are_judged_as_libvirt_judges() {
    let driver = driver();
    let mut refused = Vec::new();
    for dir in ["18-display-and-ramfb", "19-hostdev-attributes", "21-cloned-vm-same-uuid", "32-hostile-names"]
    {
        for (path, xml) in below_tests(&format!("cases/{dir}/domains")) {
            // Without facts about the host, as libvirt judges a definition.
            let doc = DomainDoc::parse(&xml).unwrap();
            let ours = refuse(&check(&doc, &DeviceFacts::default()));
            if doc.name == ".." {
                // Not shown to libvirt: it fails, but removes directories of its own on the way.
                assert!(ours.is_err());
                continue;
            }
            let theirs = driver.define(&xml);
            assert_eq!(ours.is_err(), theirs.is_err(), "{}: {ours:?}, {theirs:?}", path.display());
            if theirs.is_err() {
                refused.push(path.file_stem().unwrap().to_string_lossy().into_owned());
            }
        }
    }
    assert_eq!(refused, ["display-no-graphics", "two-ramfb", "no-model"]);
}

const DEVICE: &str = "<hostdev mode='subsystem' type='mdev' model='vfio-pci'><source><address \
                      uuid='6ed6d2cd-e746-4a7b-8f5f-f5472be271cc'/></source></hostdev>";

/// Host devices in all kinds of spelling: where libvirt sees a device, we see the same one or refuse the domain.
#[test]
fn libvirt_sees_no_device_that_we_do_not() {
    let driver = driver();
    let rows = [
        DEVICE.to_owned(),
        DEVICE.repeat(2),
        DEVICE.replace("mode='subsystem' ", ""),
        DEVICE.replace("type='mdev'", "x:type='mdev'"),
        DEVICE.replace("<source>", "<x:source>").replace("</source>", "</x:source>"),
        DEVICE.replace("<address", "<x:address"),
        DEVICE.replace("<hostdev", "<x:hostdev").replace("</hostdev", "</x:hostdev"),
        DEVICE.replace("<hostdev", "<hostdev xmlns='urn:y'"),
        DEVICE.replace("<source>", "<source/><source>"),
        DEVICE.replace("<source>", "<source><address uuid='b4645cc2-b09f-4e90-895d-5b773cf165cc'/>"),
        DEVICE.replace("6ed6d2cd-e746", "6ED6D2CDE746"),
        DEVICE.replace("6ed6d2cd-e746-", " 6ed6d2cd e746 "),
        DEVICE.replace("6ed6", "&#x36;ed6"),
        DEVICE.replace("vfio-pci'", "vfio-pci' display='on'"),
        DEVICE.replace("vfio-pci'", "vfio-pci' display='off' ramfb='on'"),
        DEVICE.replace("vfio-pci'", "vfio-pci' managed=''"),
        DEVICE.replace("vfio-pci'", "vfio-pci' managed='maybe'"),
        DEVICE.replace("vfio-pci'", "vfio-pci' display='maybe'"),
        DEVICE.replace("vfio-pci", "vfio-ccw"),
        DEVICE.replace("vfio-pci'", "vfio-ccw' display='off'"),
        DEVICE.replace("vfio-pci", "vfio-x"),
        format!("<video><model type='none'/>{DEVICE}</video>"),
        format!("<!-- {DEVICE} -->"),
        format!("<![CDATA[{DEVICE}]]>"),
        format!("</devices><devices>{DEVICE}"),
        format!("</devices><x:devices>{DEVICE}</x:devices><devices>"),
        format!("</devices><devices xmlns='urn:y'>{DEVICE}</devices><devices>"),
        format!("</devices><metadata><x:y><devices>{DEVICE}</devices></x:y></metadata><devices>"),
        DEVICE.replace("mode='subsystem'", "mode='capabilities'"),
        DEVICE.replace("type='mdev' model='vfio-pci'", "type='pci'").replace("uuid='6ed6", "bus='031' x='"),
    ];
    let mut agreed = 0;
    for row in rows {
        let xml = format!(
            "<domain type='qemu' xmlns:x='urn:x'><name>d</name><uuid>3744fe1a-251d-4205-b1d2-ec9e8af06992</uuid>\
             <memory>65536</memory><os><type arch='x86_64' machine='q35'>hvm</type></os><devices>{row}</devices></domain>"
        );
        // What libvirt refuses harms nobody; what it takes, we must have seen just as it does.
        let Ok(taken) = driver.define(&xml) else { continue };
        if let Ok(ours) = DomainDoc::parse(&xml) {
            assert_eq!(sources(&ours), sources(&DomainDoc::parse(taken).unwrap()), "{row}");
            agreed += 1;
        }
    }
    assert!(agreed >= 15, "only {agreed} rows were taken by both");
}

fn sources(doc: &DomainDoc) -> Vec<&HostdevSource> {
    doc.hostdevs.iter().map(|hostdev| &hostdev.source).collect()
}
