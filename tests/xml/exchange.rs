//! Other devices in the place of these: nothing of the document moves but the UUID of the device.

use mdevirt::model::MdevUuid;
use mdevirt::xml::domain::{DomainDoc, with_other_uuids};
use proptest::prelude::*;

use crate::golden::{OURS, uuid};

/// The n-th device.
fn device(n: u8) -> MdevUuid {
    uuid(&format!("{n:02x}{}", &OURS[2..]))
}

/// A domain as libvirt writes it, and as nobody should: every attribute, guest address and comment has to stay.
fn domain(address: &str) -> String {
    format!(
        "<domain type='kvm' id='3'>\n<name>a</name><!-- {a} -->\n<metadata><x:y xmlns:x='urn:x'>{a}</x:y></metadata>\n\
         <devices>\n\t<hostdev mode='subsystem' type='mdev'\n managed='no' model='vfio-pci' display='on' ramfb='on'>\r\n  \
         <source>\n   {address}<!-- in the source -->\n  </source>\n  <alias name='ua-gpu'/>\n  \
         <address type='pci' domain='0x0000' bus='0x06' slot='0x00' function='0x0' multifunction='on'/>\n\t</hostdev>\n\
         <hostdev mode='subsystem' type='pci' managed='yes'><source><address domain='0' bus='4' slot='0' function='0'/></source></hostdev>\n\
         <hostdev mode='subsystem' type='mdev' model='vfio-ap'><source><address uuid='{b}'/></source></hostdev>\n\
         <disk><address type='drive' uuid='{a}'/></disk>\n</devices>\n</domain>\n<!-- end -->",
        a = device(1),
        b = device(2),
    )
}

#[test]
fn one_device_takes_the_place_of_another() {
    let (old, new) = (device(1), device(9));
    for (there, here) in [
        (format!("<address uuid='{old}'/>"), format!("<address uuid='{new}'/>")),
        (
            format!("<address   uuid=\"{}\" ></address>", old.to_string().to_uppercase()),
            format!("<address uuid='{new}'></address>"),
        ),
        (format!("<address uuid='{old}'\n/>"), format!("<address uuid='{new}'/>")),
    ] {
        assert_eq!(with_other_uuids(&domain(&there), &[(old, new)]).unwrap(), domain(&here));
    }
}

#[test]
fn two_devices_may_change_places() {
    let xml = domain(&format!("<address uuid='{}'/>", device(1)));
    let pairs = [(device(1), device(2)), (device(2), device(1))];
    let turned = with_other_uuids(&xml, &pairs).unwrap();
    let order = |xml: &str| {
        let doc = DomainDoc::parse(xml).unwrap();
        doc.hostdevs.iter().filter_map(|h| h.mdev_uuid()).collect::<Vec<_>>()
    };
    assert_eq!((order(&xml), order(&turned)), (vec![device(1), device(2)], vec![device(2), device(1)]));
    assert_eq!(with_other_uuids(&turned, &pairs).unwrap(), xml);
}

#[test]
fn what_is_not_there_is_passed_by() {
    let xml = domain(&format!("<address uuid='{}'/>", device(1)));
    assert_eq!(with_other_uuids(&xml, &[(device(7), device(8))]).unwrap(), xml);
    assert_eq!(with_other_uuids(&xml, &[]).unwrap(), xml);
    with_other_uuids("<domain><name>a</name>", &[]).unwrap_err();
}

fn hostdev(n: u8, odd: &str) -> String {
    format!(
        "<hostdev mode='subsystem' type='mdev' model='vfio-pci'>{odd}<source><address uuid='{}'/></source>\
         <address type='pci' slot='0x{n:02x}'/>{odd}</hostdev>",
        device(n)
    )
}

proptest! {
    /// Any set of pairs does what replacing the texts would do, wherever the devices stand.
    #[test]
    fn only_the_named_uuids_change(order in Just((0u8..6).collect::<Vec<_>>()).prop_shuffle(), take in 0usize..6,
                                   odd in prop::sample::select(&["", "\n\t", "<!-- x -->", "<alias name='a'/>"][..])) {
        let elements = |by: u8| -> String {
            order.iter().enumerate().map(|(at, n)| hostdev(if at < take { n + by } else { *n }, odd).replace(
                // The place in the guest is the old one's.
                &format!("slot='0x{:02x}'", if at < take { n + by } else { *n }), &format!("slot='0x{n:02x}'"))).collect()
        };
        let whole = |by| format!("<domain>{odd}<name>a</name><devices>{}{odd}</devices></domain>", elements(by));
        let pairs: Vec<_> = order[..take].iter().map(|n| (device(*n), device(n + 100))).collect();
        prop_assert_eq!(with_other_uuids(&whole(0), &pairs).unwrap(), whole(100));
    }
}
