//! Discovery: parents and mediated devices, as libvirt lists them.
//!
//! 1. One list call, then one XMLDesc for each device, several in flight; whether a device is active and defined is asked of
//!    mediated devices only, for their XML does not say it.
//! 2. Only capability flags are passed: libvirt's test driver refuses the others in 9.0.0.
//! 3. A device that vanished in between is gone. A device whose XML cannot be understood is left out and named. Any other
//!    failure is a failure of the whole pass.

use std::collections::BTreeSet;

use virt::error::Error;
use virt::nodedev::NodeDevice as VirtNode;
use virt_sys as sys;

use super::error::{is_gone, is_unsupported};
use super::ffi;
use super::link::Session;
use super::parallel::each;
use crate::host::sysfs::Sysfs;
use crate::model::{Finding, FindingKind, HostScan, Mdev, MdevUuid, Parent, ParentAddr, PciAddress};
use crate::xml::nodedev::{self, NodeKind};

/// What libvirt lists.
#[derive(Default)]
pub(super) struct Listing {
    pub(super) scan: HostScan,
    /// Devices that are there and could not be understood.
    pub(super) broken: Vec<Finding>,
    /// Definitions whose parent is gone and whose XML does not say which it was, with what to tell of them.
    pub(super) orphans: Vec<(MdevUuid, Finding)>,
}

/// What one node device turned out to be.
enum Seen {
    Parent(Box<Parent>),
    Mdev(Mdev),
    Orphan(MdevUuid, Finding),
    Broken(Finding),
    Nothing,
}

/// All parents and devices. `sysfs` adds the descriptions of types.
pub(super) fn scan(session: &Session, sysfs: Option<&Sysfs>) -> Result<Listing, Error> {
    let flags =
        sys::VIR_CONNECT_LIST_NODE_DEVICES_CAP_MDEV_TYPES | sys::VIR_CONNECT_LIST_NODE_DEVICES_CAP_MDEV;
    let devices = session.conn.list_all_node_devices(flags)?;
    let mut listing = Listing::of(each(&devices, |device| look(device, sysfs))?);
    let parents = &mut listing.scan.parents;
    parents.retain(|parent| parent.framework.is_some());
    let there: BTreeSet<&ParentAddr> = parents.iter().map(|parent| &parent.addr).collect();
    let cards: BTreeSet<PciAddress> = parents.iter().filter_map(|parent| parent.physical_function).collect();
    let missing: Vec<PciAddress> =
        cards.into_iter().filter(|card| !there.contains(&ParentAddr::Pci(*card))).collect();
    // They offer nothing themselves, but hold the facts of the card that the VFs share.
    let cards = functions(session, sysfs, &missing)?;
    parents.extend(cards.scan.parents);
    listing.broken.extend(cards.broken);
    Ok(listing)
}

/// These PCI functions, whether or not they offer anything; those that are not there are left out.
pub(super) fn functions(
    session: &Session,
    sysfs: Option<&Sysfs>,
    addrs: &[PciAddress],
) -> Result<Listing, Error> {
    let names: Vec<String> = addrs.iter().map(|addr| addr.node_name()).collect();
    named(session, sysfs, &names)
}

/// Node devices by name; those that are not there are left out.
fn named(session: &Session, sysfs: Option<&Sysfs>, names: &[String]) -> Result<Listing, Error> {
    let all = each(names, |name| match session.conn.lookup_node_device_by_name(name) {
        Ok(device) => look(&device, sysfs),
        Err(err) if is_gone(&err) => Ok((Seen::Nothing, Vec::new())),
        Err(err) => Err(err),
    });
    all.map(Listing::of)
}

/// The mediated devices that have this UUID, or whose XML cannot be understood so that they might.
pub(super) fn mdevs(session: &Session, uuid: MdevUuid) -> Result<Listing, Error> {
    let names = ffi::node_device_names(&session.conn, c"mdev")?;
    let names: Vec<String> = names.into_iter().filter(|name| may_be(name, uuid)).collect();
    let mut listing = named(session, None, &names)?;
    listing.scan.mdevs.retain(|mdev| mdev.uuid == uuid);
    listing.orphans.retain(|(orphan, _)| *orphan == uuid);
    Ok(listing)
}

/// libvirt's object of the mediated device with this key, and what libvirt says of it.
pub(super) fn object(
    session: &Session,
    uuid: MdevUuid,
    parent: &ParentAddr,
) -> Result<Option<(VirtNode, Mdev)>, Error> {
    let names = ffi::node_device_names(&session.conn, c"mdev")?;
    for name in names.iter().filter(|name| may_be(name, uuid)) {
        let found = session.conn.lookup_node_device_by_name(name).and_then(|device| {
            let (seen, _) = look(&device, None)?;
            Ok((seen, device))
        });
        match found {
            Ok((Seen::Mdev(mdev), device)) if mdev.uuid == uuid && mdev.parent == *parent => {
                return Ok(Some((device, mdev)));
            }
            Ok(_) => {}
            Err(err) if is_gone(&err) => {}
            Err(err) => return Err(err),
        }
    }
    Ok(None)
}

/// Saves reading the XML of every other mediated device. A name in neither known form is read.
///
/// # Source
/// libvirt: `mdev_<uuid>` before 7.8, then `mdev_<uuid>_<parent>`, each `-` as `_`.
fn may_be(name: &str, uuid: MdevUuid) -> bool {
    let known = name.strip_prefix("mdev_").and_then(|rest| rest.split_at_checked(36));
    let known = known.and_then(|(front, _)| front.replace('_', "-").parse::<MdevUuid>().ok());
    known.is_none_or(|known| known == uuid)
}

impl Listing {
    fn of(all: Vec<(Seen, Vec<Finding>)>) -> Self {
        let mut listing = Self::default();
        for (seen, findings) in all {
            listing.scan.findings.extend(findings);
            match seen {
                Seen::Parent(parent) => listing.scan.parents.push(*parent),
                Seen::Mdev(mdev) => listing.scan.mdevs.push(mdev),
                Seen::Orphan(uuid, finding) => listing.orphans.push((uuid, finding)),
                Seen::Broken(finding) => listing.broken.push(finding),
                Seen::Nothing => {}
            }
        }
        listing
    }
}

fn look(device: &VirtNode, sysfs: Option<&Sysfs>) -> Result<(Seen, Vec<Finding>), Error> {
    let xml = match device.xml_desc(0) {
        Ok(xml) => xml,
        Err(err) if is_gone(&err) => return Ok((Seen::Nothing, Vec::new())),
        Err(err) => return Err(err),
    };
    let node = match nodedev::parse(xml.as_bytes()) {
        Ok(node) => node,
        Err(err) => return Ok((Seen::Broken(err.finding(&device.name()?)), Vec::new())),
    };
    if let NodeKind::Mdev(inside) = &node.kind {
        let (active, defined) = state(device)?;
        let seen = match node.mdev(active, defined) {
            Ok(mdev) => mdev.map_or(Seen::Nothing, |mdev| {
                // libvirt prints a group for inactive ones as well.
                Seen::Mdev(Mdev { iommu_group: mdev.iommu_group.filter(|_| active), ..mdev })
            }),
            Err(err) => Seen::Orphan(inside.uuid, err.finding(node.name.as_str())),
        };
        return Ok((seen, node.findings));
    }
    let Some(mut parent) = node.parent() else { return Ok((Seen::Nothing, node.findings)) };
    if let Some(Err(err)) = sysfs.map(|sysfs| sysfs.describe(&mut parent)) {
        // Without the descriptions the limit of the card is not known, and what is not known is not offered.
        let text = format!("it is left out: {err}");
        let finding = Finding::new(FindingKind::Unknown, parent.addr.to_string(), text);
        return Ok((Seen::Broken(finding), Vec::new()));
    }
    Ok((Seen::Parent(Box::new(parent)), node.findings))
}

/// Whether a mediated device is active and whether it is defined. The test driver cannot tell in 9.0.0; there all are both.
fn state(device: &VirtNode) -> Result<(bool, bool), Error> {
    let yes_if_unsupported = |answer: Result<bool, Error>| match answer {
        Err(err) if is_unsupported(&err) => Ok(true),
        Err(err) if is_gone(&err) => Ok(false),
        answer => answer,
    };
    let active = yes_if_unsupported(ffi::is_active(device))?;
    // What is not active is listed for its definition alone.
    Ok((active, !active || yes_if_unsupported(ffi::is_persistent(device))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_other_devices_are_passed_over() {
        let uuid = "1fc01460-67d7-4303-a5ea-69a57b994f50".parse().unwrap();
        for name in [
            "mdev_1fc01460_67d7_4303_a5ea_69a57b994f50",
            "mdev_1fc01460_67d7_4303_a5ea_69a57b994f50_0000_3b_00_0",
            "mdev_1FC01460_67d7_4303_a5ea_69a57b994f50",
            "mdev_in_a_later_form",
            "something",
        ] {
            assert!(may_be(name, uuid), "{name}");
        }
        assert!(!may_be("mdev_e642cfd7_55f9_4481_b9d0_b08b26f7a0f0_0000_86_00_0", uuid));
    }
}
