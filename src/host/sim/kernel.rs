//! The kernel of the simulated host: what is there without libvirt and mdevctl, that is, without definitions.

use super::SimHost;
use super::nodes::{check_room, free_group, taken_by};
use super::state::{Edit, State, Table};
use crate::host::HostError;
use crate::model::{HostScan, Mdev, MdevUuid, NewMdev, Parent};

impl SimHost {
    pub(super) async fn seen_by_kernel(&self) -> Result<HostScan, HostError> {
        // The scenario is the hardware; it is read through the test driver, which is not the libvirt that may be away.
        let base = self.base_nodes.scan().await?;
        let state = self.state();
        let parents = self.as_seen(state.table(), base.parents);
        let mdevs = active(state.table()).map(undefined).collect();
        Ok(HostScan { parents, mdevs, findings: Vec::new() }.sorted())
    }

    pub(super) fn kernel_has(&self, uuid: MdevUuid) -> Option<Mdev> {
        active(self.state().table()).find(|d| d.uuid == uuid).map(undefined)
    }

    pub(super) async fn create_undefined(&self, new: &NewMdev) -> Result<(), HostError> {
        let functions = self.functions_around(&new.parent).await?;
        let made = self.make_undefined(&mut self.state(), functions, new)?;
        self.wake_if(made);
        Ok(())
    }

    /// False if there was nothing to do.
    fn make_undefined(
        &self,
        state: &mut State,
        functions: Vec<Parent>,
        new: &NewMdev,
    ) -> Result<bool, HostError> {
        let is_it = |d: &Mdev| d.parent == new.parent && d.type_id.as_ref() == Some(&new.type_id);
        if let Some(there) = active(state.table()).find(|d| d.uuid == new.uuid) {
            return if is_it(there) { Ok(false) } else { Err(taken_by(there)) };
        }
        check_room(&self.as_seen(state.table(), functions), &new.parent, &new.type_id)?;
        let device = made(state.table(), new);
        state.apply(vec![Edit::device(device)])?;
        Ok(true)
    }
}

fn active(table: &Table) -> impl Iterator<Item = &Mdev> {
    table.devices.iter().filter(|d| d.active)
}

fn undefined(device: &Mdev) -> Mdev {
    Mdev { defined: false, ..device.clone() }
}

/// A definition that waited for the device stays; the kernel knows nothing of it.
fn made(table: &Table, new: &NewMdev) -> Mdev {
    Mdev {
        uuid: new.uuid,
        parent: new.parent.clone(),
        type_id: Some(new.type_id.clone()),
        active: true,
        defined: table.device(new.uuid, &new.parent).is_some_and(|d| d.defined),
        parent_missing: false,
        iommu_group: Some(free_group(table)),
    }
}
