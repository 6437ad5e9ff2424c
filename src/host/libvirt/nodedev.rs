//! Discovery: parents and mediated devices, as libvirt lists them.
//!
//! 1. One list call, then one XMLDesc for each device, several in flight. Whether a mediated device is active and defined is
//!    not in its XML; libvirt is asked only where the kernel and mdevctl's files cannot be.
//! 2. Only capability flags are passed: libvirt's test driver refuses the others in 9.0.0.
//! 3. A device that vanished in between is gone. A device whose XML cannot be understood is left out and named. Any other
//!    failure is a failure of the whole pass.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use virt::error::Error;
use virt::nodedev::NodeDevice as VirtNode;
use virt_sys as sys;

use super::error::{is_gone, is_unsupported};
use super::ffi;
use super::lanes::each;
use super::link::Session;
use crate::host::sysfs::Sysfs;
use crate::model::{Finding, FindingKind, HostScan, Mdev, MdevUuid, Parent, ParentAddr, PciAddress};
use crate::xml::nodedev::{self, NodeKind};

/// How to look.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    pub(super) session: &'a Session,
    /// Adds the descriptions of types.
    pub(super) sysfs: Option<&'a Sysfs>,
    /// Whether libvirt is asked for the state of mediated devices.
    pub(super) states: bool,
}

/// What libvirt lists.
#[derive(Default)]
pub(super) struct Listing {
    /// Where states were not asked for, no mediated device is active or defined yet.
    pub(super) scan: HostScan,
    /// Whether they were.
    pub(super) states: bool,
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

impl Look<'_> {
    /// All parents and devices.
    pub(super) fn scan(self) -> Result<Listing, Error> {
        let flags =
            sys::VIR_CONNECT_LIST_NODE_DEVICES_CAP_MDEV_TYPES | sys::VIR_CONNECT_LIST_NODE_DEVICES_CAP_MDEV;
        let devices = self.session.conn.list_all_node_devices(flags)?;
        let mut listing = self.listing(each(&self.session.lanes, &devices, |device| self.look(device))?);
        let parents = &mut listing.scan.parents;
        parents.retain(|parent| parent.framework.is_some());
        let there: BTreeSet<&ParentAddr> = parents.iter().map(|parent| &parent.addr).collect();
        let cards: BTreeSet<PciAddress> =
            parents.iter().filter_map(|parent| parent.physical_function).collect();
        let missing: Vec<PciAddress> =
            cards.into_iter().filter(|card| !there.contains(&ParentAddr::Pci(*card))).collect();
        // They offer nothing themselves, but hold the facts of the card that the VFs share.
        let cards = self.functions(&missing)?;
        parents.extend(cards.scan.parents);
        listing.broken.extend(cards.broken);
        Ok(listing)
    }

    /// These PCI functions, whether or not they offer anything; those that are not there are left out.
    pub(super) fn functions(self, addrs: &[PciAddress]) -> Result<Listing, Error> {
        let names: Vec<String> = addrs.iter().map(|addr| addr.node_name()).collect();
        self.named(&names)
    }

    /// The node devices with these names; those that are not there are left out.
    pub(super) fn named(self, names: &[String]) -> Result<Listing, Error> {
        let all = each(&self.session.lanes, names, |name| {
            match self.session.conn.lookup_node_device_by_name(name) {
                Ok(device) => self.look(&device),
                Err(err) if is_gone(&err) => Ok((Seen::Nothing, Vec::new())),
                Err(err) => Err(err),
            }
        });
        all.map(|all| self.listing(all))
    }

    fn listing(self, all: Vec<(Seen, Vec<Finding>)>) -> Listing {
        let mut listing = Listing { states: self.states, ..Listing::default() };
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

    fn look(self, device: &VirtNode) -> Result<(Seen, Vec<Finding>), Error> {
        let xml = match device.xml_desc(0) {
            Ok(xml) => xml,
            Err(err) if is_gone(&err) => return Ok((Seen::Nothing, Vec::new())),
            Err(err) => return Err(err),
        };
        let node = match nodedev::parse(xml.as_bytes()) {
            Ok(node) => node,
            Err(err) => return Ok((Seen::Broken(err.finding(&device.name()?)), Vec::new())),
        };
        let seen = if let NodeKind::Mdev(inside) = &node.kind {
            match self.state(device)? {
                Some((active, defined)) => match node.mdev(active, defined) {
                    Ok(mdev) => mdev.map_or(Seen::Nothing, Seen::Mdev),
                    Err(err) => Seen::Orphan(inside.uuid, err.finding(node.name.as_str())),
                },
                None => Seen::Nothing,
            }
        } else {
            node.parent().map_or(Seen::Nothing, |parent| self.described(parent))
        };
        Ok((seen, node.findings))
    }

    fn described(self, mut parent: Parent) -> Seen {
        match self.sysfs.map_or(Ok(()), |sysfs| sysfs.describe(&mut parent)) {
            Ok(()) => Seen::Parent(Box::new(parent)),
            // Without the descriptions the limit of the card is not known, and what is not known is not offered.
            Err(err) => {
                let text = format!("it is left out: {err}");
                Seen::Broken(Finding::new(FindingKind::Unknown, parent.addr.to_string(), text))
            }
        }
    }

    /// Whether a mediated device is active and whether it is defined, `None` if it is gone. A driver that cannot tell (the test
    /// driver of 9.0.0) is asked once; there all are both.
    fn state(self, device: &VirtNode) -> Result<Option<(bool, bool)>, Error> {
        if !self.states {
            return Ok(Some((false, false)));
        }
        if self.session.stateless.load(Ordering::Relaxed) {
            return Ok(Some((true, true)));
        }
        // What is not active is listed for its definition alone.
        let answer = ffi::is_active(device).and_then(|active| {
            if active { ffi::is_persistent(device).map(|defined| (true, defined)) } else { Ok((false, true)) }
        });
        match answer {
            Ok(state) => Ok(Some(state)),
            Err(err) if is_gone(&err) => Ok(None),
            Err(err) if is_unsupported(&err) => {
                self.session.stateless.store(true, Ordering::Relaxed);
                Ok(Some((true, true)))
            }
            Err(err) => Err(err),
        }
    }
}

/// The mediated devices that have this UUID, or whose XML cannot be understood so that they might.
pub(super) fn mdevs(session: &Session, uuid: MdevUuid) -> Result<Listing, Error> {
    let names = ffi::node_device_names(&session.conn, c"mdev")?;
    let names: Vec<String> = names.into_iter().filter(|name| may_be(name, uuid)).collect();
    let mut listing = Look { session, sysfs: None, states: true }.named(&names)?;
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
            let (seen, _) = Look { session, sysfs: None, states: true }.look(&device)?;
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
