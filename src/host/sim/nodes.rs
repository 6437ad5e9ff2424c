//! [`NodeDevices`] of the simulated host.

use std::collections::BTreeMap;

use async_trait::async_trait;
use tokio::sync::broadcast;

use super::SimHost;
use super::faults::CallSite;
use super::rules;
use super::script::Call;
use super::state::{Edit, State, Table};
use super::types::add_facts;
use crate::host::{HostError, HostEvent, NodeDevices};
use crate::model::{HostScan, Mdev, MdevUuid, NewMdev, Parent, ParentAddr, TypeId};

/// IOMMU groups of made devices count up from here, out of the way of the scenario's.
const FIRST_GROUP: u32 = 500;

#[async_trait]
impl NodeDevices for SimHost {
    async fn scan(&self) -> Result<HostScan, HostError> {
        self.call(site(Call::Scan, None, "looking at the host".to_owned()), async {
            let base = self.base_nodes.scan().await?;
            let state = self.state();
            let parents = self.as_seen(state.table(), base.parents);
            let mdevs = state.table().devices.iter().map(|d| self.as_listed(state.table(), d)).collect();
            Ok(HostScan { parents, mdevs, findings: base.findings }.sorted())
        })
        .await
    }

    async fn scan_card(&self, card: &ParentAddr) -> Result<Vec<Parent>, HostError> {
        self.call(site(Call::Scan, Some(card), format!("looking at card {card}")), async {
            let functions = self.base_nodes.scan_card(card).await?;
            Ok(self.as_seen(self.state().table(), functions))
        })
        .await
    }

    async fn find(&self, uuid: MdevUuid) -> Result<Vec<Mdev>, HostError> {
        self.call(site(Call::Find, None, format!("looking for mdev {uuid}")), async {
            let state = self.state();
            let found = state.table().devices.iter().filter(|d| d.uuid == uuid);
            Ok(found.map(|d| self.as_listed(state.table(), d)).collect())
        })
        .await
    }

    async fn create(&self, new: &NewMdev) -> Result<(), HostError> {
        let what = format!("creating mdev {} on {}", new.uuid, new.parent);
        self.call(site(Call::Create, Some(&new.parent), what), self.create_defined(new)).await
    }

    async fn remove(&self, uuid: MdevUuid, parent: &ParentAddr) -> Result<(), HostError> {
        let what = format!("removing mdev {uuid} on {parent}");
        self.call(site(Call::Remove, Some(parent), what), async {
            let removed = remove_unused(&mut self.state(), uuid, parent)?;
            self.wake_if(removed);
            Ok(())
        })
        .await
    }

    async fn scan_kernel(&self) -> Result<HostScan, HostError> {
        self.call(site(Call::ScanKernel, None, "looking at the kernel".to_owned()), self.seen_by_kernel())
            .await
    }

    async fn find_in_kernel(&self, uuid: MdevUuid) -> Result<Option<Mdev>, HostError> {
        let what = format!("looking for mdev {uuid} in the kernel");
        self.call(site(Call::FindInKernel, None, what), async { Ok(self.kernel_has(uuid)) }).await
    }

    async fn create_in_kernel(&self, new: &NewMdev) -> Result<(), HostError> {
        let what = format!("creating mdev {} on {} in the kernel", new.uuid, new.parent);
        self.call(site(Call::CreateInKernel, Some(&new.parent), what), self.create_undefined(new)).await
    }

    fn events(&self) -> broadcast::Receiver<HostEvent> {
        self.events.subscribe()
    }

    fn boot_id(&self) -> Result<Option<String>, HostError> {
        Ok(Some(format!("simulated-{}", self.state().table().boot)))
    }

    fn driver_version(&self, _parent: &ParentAddr) -> Result<Option<String>, HostError> {
        Ok(self.platform().driver.clone())
    }
}

impl SimHost {
    async fn create_defined(&self, new: &NewMdev) -> Result<(), HostError> {
        let wanted = Wanted { uuid: new.uuid, parent: &new.parent, type_id: &new.type_id, defined: true };
        let functions = self.functions_around(&new.parent).await?;
        let made = self.make(&mut self.state(), functions, &wanted)?;
        self.wake_if(made);
        Ok(())
    }

    /// All functions of the card that the parent is on, as the file has them.
    pub(super) async fn functions_around(&self, parent: &ParentAddr) -> Result<Vec<Parent>, HostError> {
        let card = self.cards.get(parent).ok_or_else(|| HostError::NotFound(format!("parent {parent}")))?;
        self.base_nodes.scan_card(card).await
    }

    /// Makes a device, or makes an existing one what is wanted. False if there was nothing to do.
    pub(super) fn make(
        &self,
        state: &mut State,
        functions: Vec<Parent>,
        wanted: &Wanted<'_>,
    ) -> Result<bool, HostError> {
        let (uuid, parent, type_id) = (wanted.uuid, wanted.parent, wanted.type_id);
        let old = state.table().device(uuid, parent).cloned();
        let defined = wanted.defined || old.as_ref().is_some_and(|d| d.defined);
        refuse_other(state.table(), old.as_ref(), wanted)?;
        if old.as_ref().is_some_and(|d| d.active && d.defined == defined) {
            return Ok(false);
        }
        let iommu_group = match &old {
            Some(device) if device.active => device.iommu_group,
            Some(_) | None => {
                check_room(&self.as_seen(state.table(), functions), parent, type_id)?;
                Some(free_group(state.table()))
            }
        };
        let device = Mdev {
            uuid,
            parent: parent.clone(),
            type_id: Some(type_id.clone()),
            active: true,
            defined,
            parent_missing: false,
            iommu_group,
        };
        state.apply(vec![Edit::device(device)])?;
        Ok(true)
    }

    /// Parents of the file as callers see them now: absent ones left out, types numbered anew, room as the rules say.
    pub(super) fn as_seen(&self, table: &Table, parents: Vec<Parent>) -> Vec<Parent> {
        let mut cards: BTreeMap<ParentAddr, Vec<Parent>> = BTreeMap::new();
        for mut parent in parents.into_iter().filter(|p| !is_absent(table, &p.addr, &p.card())) {
            add_facts(&mut parent);
            parent.types.retain(|t| !table.withdrawn.contains(&t.id));
            for mdev_type in &mut parent.types {
                mdev_type.id = renumbered(table, &mdev_type.id);
            }
            parent.types.sort_by(|a, b| a.id.cmp(&b.id));
            cards.entry(parent.card()).or_default().push(parent);
        }
        let mut file = self.file_devices.clone();
        for device in &mut file {
            device.type_id = device.type_id.take().map(|id| renumbered(table, &id));
        }
        for functions in cards.values_mut() {
            rules::offer(functions, &file, &table.devices);
        }
        let mut seen: Vec<Parent> = cards.into_values().flatten().collect();
        seen.sort_by(|a, b| a.addr.cmp(&b.addr));
        seen
    }

    fn as_listed(&self, table: &Table, device: &Mdev) -> Mdev {
        let there =
            self.cards.get(&device.parent).is_some_and(|card| !is_absent(table, &device.parent, card));
        Mdev { parent_missing: !there, ..device.clone() }
    }

    pub(super) fn wake_if(&self, changed: bool) {
        if changed {
            self.notify(HostEvent::NodeDevices);
        }
    }
}

/// A device as it is to be.
pub(super) struct Wanted<'a> {
    pub(super) uuid: MdevUuid,
    pub(super) parent: &'a ParentAddr,
    pub(super) type_id: &'a TypeId,
    /// With a persistent definition.
    pub(super) defined: bool,
}

fn site(call: Call, parent: Option<&ParentAddr>, what: String) -> CallSite {
    CallSite { call, parent: parent.cloned(), instance: None, what }
}

fn is_absent(table: &Table, parent: &ParentAddr, card: &ParentAddr) -> bool {
    table.absent.contains(parent) || table.absent.contains(card)
}

fn renumbered(table: &Table, id: &TypeId) -> TypeId {
    table.numbering.get(id).unwrap_or(id).clone()
}

/// The UUID may belong to a device of another type or, once it is active or if there is nothing here, on another parent.
fn refuse_other(table: &Table, here: Option<&Mdev>, wanted: &Wanted<'_>) -> Result<(), HostError> {
    let is_same = |d: &Mdev| d.type_id.as_ref() == Some(wanted.type_id);
    if here.is_some_and(|d| d.active && is_same(d)) {
        return Ok(());
    }
    let elsewhere = |d: &&Mdev| d.uuid == wanted.uuid && d.parent != *wanted.parent;
    let taken = |d: &&Mdev| elsewhere(d) && (d.active || here.is_none());
    let other = here.filter(|d| !is_same(d)).or_else(|| table.devices.iter().find(taken));
    other.map_or(Ok(()), |other| Err(taken_by(other)))
}

pub(super) fn taken_by(other: &Mdev) -> HostError {
    let its_type = other.type_id.as_ref().map_or("an unknown type", TypeId::as_str);
    HostError::Refused(format!("mdev {} exists on {} as {its_type}", other.uuid, other.parent))
}

pub(super) fn check_room(
    functions: &[Parent],
    parent: &ParentAddr,
    type_id: &TypeId,
) -> Result<(), HostError> {
    let function = functions
        .iter()
        .find(|p| p.addr == *parent)
        .ok_or_else(|| HostError::NotFound(format!("parent {parent}")))?;
    let mdev_type = function
        .mdev_type(type_id)
        .ok_or_else(|| HostError::Refused(format!("parent {parent} does not support mdev type {type_id}")))?;
    if mdev_type.available_instances == 0 {
        return Err(HostError::NoRoom(format!("no available instances of {type_id} on {parent}")));
    }
    Ok(())
}

pub(super) fn free_group(table: &Table) -> u32 {
    let taken: std::collections::BTreeSet<u32> = table.devices.iter().filter_map(|d| d.iommu_group).collect();
    (FIRST_GROUP..).find(|group| !taken.contains(group)).unwrap_or(FIRST_GROUP)
}

/// False if there was nothing to remove.
fn remove_unused(state: &mut State, uuid: MdevUuid, parent: &ParentAddr) -> Result<bool, HostError> {
    let Some(device) = state.table().device(uuid, parent) else { return Ok(false) };
    if let Some(holder) = state.table().holder(uuid).filter(|_| device.active) {
        let name = holder.name.escape_debug();
        return Err(HostError::InUse(format!("mdev {uuid} on {parent}, held by domain {name},")));
    }
    state.apply(vec![Edit::Device { uuid, parent: parent.clone(), to: None }])?;
    Ok(true)
}
