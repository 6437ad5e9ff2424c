//! The simulated host past libvirt: what the kernel says and does, also while libvirt is away or waits.

use super::SimHost;
use super::faults::{CallSite, Verdict};
use super::nodes::Wanted;
use super::script::Call;
use crate::host::HostError;
use crate::model::{HostScan, Mdev, MdevUuid, NewMdev};

impl SimHost {
    pub(super) async fn seen_by_kernel(&self) -> Result<HostScan, HostError> {
        self.past_libvirt(Call::ScanKernel, "looking at the kernel's devices".to_owned(), async {
            let base = self.base_nodes.scan().await?;
            let state = self.state();
            let parents = self.as_seen(state.table(), base.parents);
            let active = state.table().devices.iter().filter(|d| d.active).map(in_kernel).collect();
            Ok(HostScan { parents, mdevs: active, findings: Vec::new() }.sorted())
        })
        .await
    }

    pub(super) async fn found_by_kernel(&self, uuid: MdevUuid) -> Result<Option<Mdev>, HostError> {
        self.past_libvirt(Call::ScanKernel, format!("looking for mdev {uuid} in the kernel"), async {
            Ok(self.state().table().devices.iter().find(|d| d.active && d.uuid == uuid).map(in_kernel))
        })
        .await
    }

    pub(super) async fn made_by_kernel(&self, new: &NewMdev) -> Result<(), HostError> {
        let what = format!("creating mdev {} on {} in the kernel", new.uuid, new.parent);
        self.past_libvirt(Call::CreateInKernel, what, async {
            let wanted =
                Wanted { uuid: new.uuid, parent: &new.parent, type_id: &new.type_id, defined: false };
            let functions = self.functions_around(&new.parent).await?;
            let made = self.make(&mut self.state(), functions, &wanted)?;
            self.wake_if(made);
            Ok(())
        })
        .await
    }

    /// Runs one call under its own rules of failure; whether libvirt is there says nothing about it.
    async fn past_libvirt<T>(
        &self,
        call: Call,
        what: String,
        work: impl Future<Output = Result<T, HostError>> + Send,
    ) -> Result<T, HostError> {
        match self.faults.begin(&CallSite { call, parent: None, instance: None, what }) {
            Verdict::Go => work.await,
            Verdict::LoseAnswer(error) => work.await.and(Err(error)),
            Verdict::Fail(error) | Verdict::Away { error, .. } => Err(error),
        }
    }
}

/// The kernel knows nothing of definitions.
fn in_kernel(device: &Mdev) -> Mdev {
    Mdev { defined: false, ..device.clone() }
}
