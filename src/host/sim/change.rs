//! A host that changes under way: what a script or a test does to it besides making calls fail.

use std::collections::{BTreeMap, BTreeSet};

use super::SimHost;
use super::nodes::Wanted;
use super::script::{Change, ForeignMdev};
use super::state::{Edit, SimDomain, Table};
use crate::host::{HostError, HostEvent};
use crate::model::{Mdev, ParentAddr, TypeId};

impl SimHost {
    /// Changes the host; listeners are told.
    ///
    /// # Errors
    /// No room for a foreign device, no such parent, or the state file cannot be written.
    pub async fn change(&self, change: Change) -> Result<(), HostError> {
        match change {
            Change::ParentGone(addr) => self.edit_state(|table| self.parent_gone(table, &addr))?,
            Change::ParentBack(addr) => self.parent_back(&addr).await?,
            Change::ForeignMdev(foreign) => self.make_foreign(&foreign).await?,
            Change::MdevLost(uuid) => self.edit_state(|table| {
                table.devices.iter().filter(|d| d.uuid == uuid).filter_map(lost).collect()
            })?,
            Change::Renumber(map) => self.edit_state(|table| renumber(table, &map))?,
            Change::Withdraw(types) => self.edit_state(|_| vec![Edit::Withdrawn(types)])?,
            Change::Reboot => self.reboot().await?,
            Change::Versions(versions) => self.platform().versions = versions,
            Change::Driver(version) => self.platform().driver = Some(version),
            Change::Autostart(uuid) => self.record(uuid, |domain| domain.autostart = true)?,
        }
        self.notify(HostEvent::NodeDevices);
        Ok(())
    }

    fn edit_state(&self, edits: impl FnOnce(&Table) -> Vec<Edit>) -> Result<(), HostError> {
        let mut state = self.state();
        let edits = edits(state.table());
        state.apply(edits)
    }

    async fn reboot(&self) -> Result<(), HostError> {
        let running: Vec<SimDomain> = {
            let _turn = self.domain_turn.lock().await;
            let running: Vec<_> =
                self.state().table().domains.iter().filter(|d| d.live.is_some()).cloned().collect();
            for domain in &running {
                self.base_domains.stop(domain.uuid).await?;
            }
            self.edit_state(|table| booted(table, &running))?;
            running
        };
        running.iter().for_each(|domain| self.notify(HostEvent::Domain(domain.uuid)));
        Ok(())
    }

    fn parent_gone(&self, table: &Table, addr: &ParentAddr) -> Vec<Edit> {
        let on_it = table.devices.iter().filter(|d| self.is_part_of(&d.parent, addr));
        let gone = Edit::Absent { parent: addr.clone(), to: true };
        on_it.filter_map(lost).chain([gone]).collect()
    }

    async fn parent_back(&self, addr: &ParentAddr) -> Result<(), HostError> {
        let functions = self.functions_around(addr).await?;
        self.edit_state(|_| vec![Edit::Absent { parent: addr.clone(), to: false }])?;
        let mut state = self.state();
        let waiting: Vec<Mdev> = state.table().devices.iter().filter(|d| !d.active).cloned().collect();
        for device in waiting.iter().filter(|d| self.is_part_of(&d.parent, addr)) {
            let Some(type_id) = &device.type_id else { continue };
            let (uuid, parent) = (device.uuid, &device.parent);
            let wanted = Wanted { uuid, parent, type_id, defined: device.defined };
            if let Err(error) = self.make(&mut state, functions.clone(), &wanted) {
                tracing::debug!(%uuid, %error, "autostart of a returned parent's device failed");
            }
        }
        Ok(())
    }

    async fn make_foreign(&self, foreign: &ForeignMdev) -> Result<(), HostError> {
        let ForeignMdev { uuid, parent, type_id } = foreign;
        let functions = self.functions_around(parent).await?;
        let wanted = Wanted { uuid: *uuid, parent, type_id, defined: false };
        self.make(&mut self.state(), functions, &wanted).map(|_| ())
    }

    fn is_part_of(&self, parent: &ParentAddr, addr: &ParentAddr) -> bool {
        parent == addr || self.cards.get(parent) == Some(addr)
    }
}

/// A device that vanishes from the kernel: nothing stays of it but its definition.
fn lost(device: &Mdev) -> Option<Edit> {
    let to = device.defined.then(|| Mdev { active: false, iommu_group: None, ..device.clone() });
    device.active.then(|| Edit::Device { uuid: device.uuid, parent: device.parent.clone(), to })
}

fn booted(table: &Table, running: &[SimDomain]) -> Vec<Edit> {
    let off = |d: &SimDomain| Edit::domain(SimDomain { live: None, holds: BTreeSet::new(), ..d.clone() });
    let domains = running.iter().map(off);
    domains.chain(table.devices.iter().filter_map(lost)).chain([Edit::Boot(table.boot + 1)]).collect()
}

fn renumber(table: &Table, map: &BTreeMap<TypeId, TypeId>) -> Vec<Edit> {
    let moved = |device: &&Mdev| -> Option<Mdev> {
        let old = device.type_id.as_ref().filter(|_| device.active)?;
        let in_file = table.numbering.iter().find(|(_, new)| *new == old).map_or(old, |(file, _)| file);
        let type_id = map.get(in_file).unwrap_or(in_file).clone();
        Some(Mdev { type_id: Some(type_id), ..(*device).clone() })
    };
    let devices = table.devices.iter().filter_map(|d| moved(&d)).map(Edit::device);
    devices.chain([Edit::Numbering(map.clone())]).collect()
}
