//! The host behind libvirt: the only user of the virt crates (rank 2).
//!
//! 1. Parents, types, availability, devices and domains are read and changed through libvirt; sysfs adds what it does not give
//!    ([`Sysfs`]) and, on a local connection, bears witness where libvirt's list can lag or leave something out.
//! 2. A call's failure is told by kind (`error`), and a lost answer to a change is `OutcomeUnknown`, never a failure.
//! 3. Identity comes from a node device's XML, never from its name.
//! 4. libvirtd may go and come back at any time; nothing here has to be made again for that (`link`).
//!
//! | file | owns |
//! |---|---|
//! | `link` | the connection, and running a call on it |
//! | `events` | the event thread, and what becomes of events |
//! | `ffi` | raw calls |
//! | `error` | libvirt's codes and texts |
//! | `lanes` | calls in flight |
//! | `nodedev` | discovery, as libvirt lists it |
//! | `witness` | what the kernel and mdevctl's files say of the same |
//! | `device`, `next` | making and removing a mediated device |
//! | `direct` | both without libvirt, while it waits for its hook |
//! | `domain` | domains |
//! | `guest` | saving a guest, and devices that come and go while it runs |
//! | `migration` | a running guest on its way to another host |

mod device;
mod direct;
mod domain;
mod error;
mod events;
mod ffi;
mod guest;
mod lanes;
mod link;
mod migration;
mod next;
mod nodedev;
mod witness;

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::broadcast;
use tokio::task::spawn_blocking;

use super::sysfs::Sysfs;
use super::{HostError, HostEvent, NodeDevices};
use crate::model::{Finding, HostScan, Mdev, MdevUuid, NewMdev, Parent, ParentAddr, PciAddress};
use crate::xml::render::Templates;
use error::Doing;
use link::{Link, Session};
use nodedev::{Listing, Look};
use witness::Witness;

/// A host behind libvirt.
#[derive(Debug)]
pub struct LibvirtHost {
    uri: String,
    link: Link,
    templates: Templates,
    /// `None` for a libvirt on another host, of which this machine's files say nothing.
    witness: Option<Witness>,
}

impl LibvirtHost {
    /// Begins to connect to `uri`; must be called on a tokio runtime. libvirtd need not be there yet. `sysfs` is looked at
    /// only if the URI names no other host; what mdevctl stores is read below the same root.
    pub fn new(uri: impl Into<String>, sysfs: Sysfs, templates: Templates) -> Arc<Self> {
        let uri = uri.into();
        let witness = is_local(&uri).then(|| Witness::new(sysfs));
        Arc::new(Self { link: Link::new(uri.clone()), uri, templates, witness })
    }

    /// Whether the connection to libvirt stands.
    pub fn is_connected(&self) -> bool {
        self.link.is_up()
    }

    fn sysfs(&self) -> Option<Sysfs> {
        self.witness.as_ref().map(|witness| witness.sysfs.clone())
    }

    /// What the kernel has at this moment, as far as it can be asked.
    async fn active(&self) -> Result<Vec<MdevUuid>, HostError> {
        let Some(sysfs) = self.sysfs().filter(Sysfs::has_mdev_bus) else { return Ok(Vec::new()) };
        blocking(move || sysfs.active_mdevs()).await
    }

    /// A device that came while libvirt was read is listed, and the room it took may still be told as open: what its card
    /// offers is read once more, so that availability is never older than the list of devices.
    async fn read_again(&self, before: &[MdevUuid], scan: &mut HostScan) -> Result<(), HostError> {
        let cards = cards_with_new(before, scan);
        if cards.is_empty() || self.witness.is_none() {
            return Ok(());
        }
        let on_cards = scan.parents.iter().filter(|parent| cards.contains(&parent.card()));
        let names: Vec<String> = on_cards.map(|parent| parent.addr.node_name()).collect();
        let sysfs = self.sysfs();
        let look =
            move |session: &Session| Look { session, sysfs: sysfs.as_ref(), states: false }.named(&names);
        let Listing { scan: fresh, broken, .. } = self.link.call(Doing::read("node devices"), look).await?;
        scan.parents.retain(|parent| !cards.contains(&parent.card()));
        scan.parents.extend(fresh.parents);
        scan.findings.extend(broken);
        Ok(())
    }

    /// The VFs of a card, `None` if sysfs cannot tell. libvirt tells them too, but its list of a function's VFs is refreshed
    /// from the same links.
    async fn functions_of(&self, card: &ParentAddr) -> Result<Option<Vec<PciAddress>>, HostError> {
        let (Some(sysfs), Some(addr)) = (self.sysfs(), card.pci()) else { return Ok(None) };
        let functions = move || {
            if !sysfs.has_function(addr)? {
                return Ok(None);
            }
            let virtual_ones = sysfs.virtual_functions(addr)?;
            Ok(Some(std::iter::once(addr).chain(virtual_ones.into_iter().map(|(_, vf)| vf)).collect()))
        };
        blocking(functions).await
    }
}

#[async_trait]
impl NodeDevices for LibvirtHost {
    async fn scan(&self) -> Result<HostScan, HostError> {
        let before = self.active().await?;
        let witness = self.witness.clone();
        let list = move |session: &Session| {
            let sysfs = witness.as_ref().map(|witness| &witness.sysfs);
            let states = !witness.as_ref().is_some_and(Witness::knows_states);
            Look { session, sysfs, states }.scan()
        };
        let mut listing = self.link.call(Doing::read("node devices"), list).await?;
        if let Some(witness) = self.witness.clone() {
            listing = blocking(move || witness.complete(&mut listing).map(|()| listing)).await?;
        }
        let Listing { mut scan, broken, orphans, .. } = listing;
        scan.findings.extend(broken.into_iter().chain(orphans.into_iter().map(|(_, finding)| finding)));
        self.read_again(&before, &mut scan).await?;
        Ok(scan.sorted())
    }

    async fn scan_card(&self, card: &ParentAddr) -> Result<Vec<Parent>, HostError> {
        let Some(functions) = self.functions_of(card).await? else {
            let all = self.scan().await?.parents;
            return Ok(all.into_iter().filter(|parent| parent.card() == *card).collect());
        };
        let sysfs = self.sysfs();
        let look = move |session: &Session| {
            Look { session, sysfs: sysfs.as_ref(), states: false }.functions(&functions)
        };
        let Listing { scan, broken, .. } = self.link.call(Doing::read(format!("card {card}")), look).await?;
        if let Some(Finding { about, text, .. }) = broken.into_iter().next() {
            return Err(HostError::Unreadable { what: about, why: text });
        }
        let mut parents = scan.parents;
        let sliceable = parents.iter().any(|parent| parent.framework.is_some());
        parents.retain(|parent| sliceable && (parent.framework.is_some() || parent.addr == *card));
        parents.sort_by(|a, b| a.addr.cmp(&b.addr));
        Ok(parents)
    }

    async fn find(&self, uuid: MdevUuid) -> Result<Vec<Mdev>, HostError> {
        self.find_all(uuid).await
    }

    async fn create(&self, new: &NewMdev) -> Result<(), HostError> {
        self.make(new).await
    }

    async fn remove(&self, uuid: MdevUuid, parent: &ParentAddr) -> Result<(), HostError> {
        self.unmake(uuid, parent).await
    }

    async fn scan_kernel(&self) -> Result<HostScan, HostError> {
        self.scan_past_libvirt().await
    }

    async fn find_in_kernel(&self, uuid: MdevUuid) -> Result<Option<Mdev>, HostError> {
        self.find_past_libvirt(uuid).await
    }

    async fn create_in_kernel(&self, new: &NewMdev) -> Result<(), HostError> {
        self.make_past_libvirt(new).await
    }

    fn boot_id(&self) -> Result<Option<String>, HostError> {
        self.sysfs().map_or(Ok(None), |sysfs| sysfs.boot_id())
    }

    fn driver_version(&self, parent: &ParentAddr) -> Result<Option<String>, HostError> {
        let of = self.sysfs().zip(parent.pci());
        of.map_or(Ok(None), |(sysfs, addr)| sysfs.driver_version(addr))
    }

    fn events(&self) -> broadcast::Receiver<HostEvent> {
        self.link.wakes().events()
    }
}

/// Cards with a device that was not there `before`, which is sorted.
fn cards_with_new(before: &[MdevUuid], scan: &HostScan) -> BTreeSet<ParentAddr> {
    let came = scan.mdevs.iter().filter(|mdev| mdev.active && before.binary_search(&mdev.uuid).is_err());
    came.map(|mdev| scan.card_of(&mdev.parent)).collect()
}

/// Whether the URI names no host: `qemu:///system`, `qemu+unix:///system?socket=..`.
fn is_local(uri: &str) -> bool {
    uri.split_once("://").is_some_and(|(_, rest)| rest.is_empty() || rest.starts_with(['/', '?']))
}

/// Reads files where that may take its time.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, HostError> + Send + 'static,
) -> Result<T, HostError> {
    let lost = |err: tokio::task::JoinError| HostError::Unreadable {
        what: "files of this host".to_owned(),
        why: err.to_string(),
    };
    spawn_blocking(work).await.map_err(lost)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_card_of_a_device_that_came_meanwhile_is_read_again() {
        let mdev = |n: u128, active| Mdev {
            uuid: MdevUuid(uuid::Uuid::from_u128(n)),
            parent: "0000:3b:00.0".parse().unwrap(),
            type_id: None,
            active,
            defined: true,
            parent_missing: false,
            iommu_group: None,
        };
        let scan = HostScan { mdevs: vec![mdev(1, true), mdev(2, false)], ..HostScan::default() };
        assert!(cards_with_new(&[mdev(1, true).uuid], &scan).is_empty());
        let card: ParentAddr = "0000:3b:00.0".parse().unwrap();
        assert_eq!(cards_with_new(&[mdev(2, true).uuid], &scan), [card].into());
    }

    #[test]
    fn only_a_local_libvirt_is_compared_with_this_machine() {
        for uri in ["qemu:///system", "test:///default", "test+unix:///default?socket=/x"] {
            assert!(is_local(uri), "{uri}");
        }
        for uri in ["qemu+ssh://root@other/system", "qemu+tcp://127.0.0.1/system", "", "qemu"] {
            assert!(!is_local(uri), "{uri}");
        }
    }
}
