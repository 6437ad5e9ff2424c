//! The listings that the cases run on are what libvirt lists: its test driver reads the same files.
//!
//! It takes no virtual parent (28, x86), no device without a type (03) and no broken file (31).

use mdevirt::host::NodeDevices;
use mdevirt::host::libvirt::LibvirtHost;
use mdevirt::host::sysfs::Sysfs;
use mdevirt::model::Mdev;
use mdevirt::xml::render::Templates;

use crate::fixture::{test_host, xml_files};
use crate::listing::{Listing, nodedev_dir};

const CASES: [&str; 14] = [
    "01-type-without-name",
    "02-type-name-odd-characters",
    "04-same-uuid-two-parents",
    "05-pci-domain-spellings",
    "06-type-prefix-by-driver",
    "08-cap-below-parent-room",
    "09-zero-available-zero-total",
    "10-config-addresses",
    "11-config-default-type-and-class",
    "12-foreign-mdevs",
    "14-broken-mdevctl-json",
    "20-two-vgpus-one-pgpu",
    "21-cloned-vm-same-uuid",
    "28-non-gpu-mdevs/s390",
];

#[tokio::test(flavor = "multi_thread")]
async fn listings_are_what_libvirt_lists() {
    for case in CASES {
        let root = tempfile::tempdir().unwrap();
        let uri = test_host(root.path(), &xml_files(&nodedev_dir(case)));
        let host = LibvirtHost::new(uri, Sysfs::new(root.path()), Templates::load(&[]).unwrap());
        let libvirts = host.scan().await.unwrap();
        let mut ours = Listing::of_files(&nodedev_dir(case)).scan;
        // The test driver keeps no bound driver.
        ours.parents.iter_mut().for_each(|parent| parent.driver = None);
        assert_eq!(ours.parents, libvirts.parents, "{case}");
        let keys = |mdevs: &[Mdev]| -> Vec<_> {
            mdevs.iter().map(|m| (m.uuid, m.parent.clone(), m.type_id.clone())).collect()
        };
        assert_eq!(keys(&ours.mdevs), keys(&libvirts.mdevs), "{case}");
        assert_eq!(ours.findings, libvirts.findings, "{case}");
    }
}
