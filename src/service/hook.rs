//! libvirt's qemu hook: libvirt waits for the answer with the domain locked, so it is given from the books and the kernel.
//!
//! 1. libvirt is not asked, neither here nor by anything that this waits for.
//! 2. What an instance holds goes to no other guest, whoever starts it.
//! 3. When the guest runs or is gone nothing is refused: the books follow by events.

use super::Service;
use super::api::HookCall;
use crate::model::{Fault, FaultKind, InstanceUuid, MdevUuid};
use crate::xml::domain::{DomainDoc, DomainHostdev};

impl Service {
    /// [`super::api::UseCases::hook`].
    pub(super) async fn answer_hook(&self, call: HookCall) -> Result<String, Fault> {
        if !matches!(call.operation.as_str(), "prepare" | "migrate" | "restore") {
            return Ok(String::new());
        }
        let doc = DomainDoc::parse(&call.domain_xml)?;
        for device in doc.hostdevs.iter().filter_map(DomainHostdev::mdev_uuid) {
            self.refuse_held_by_another(&call.name, doc.uuid, device)?;
        }
        Ok(String::new())
    }

    /// A clone carries the devices of its model.
    fn refuse_held_by_another(
        &self,
        name: &str,
        asker: Option<InstanceUuid>,
        device: MdevUuid,
    ) -> Result<(), Fault> {
        let books = self.store.books();
        let Some(claim) = books.claims().find(|c| c.uuid == device && Some(c.instance) != asker) else {
            return Ok(());
        };
        let owner = books.instance(claim.instance).map_or_else(String::new, |i| i.name.clone());
        let text = format!(
            "domain {name:?} names mdev {device}, which instance {owner:?} ({}) holds; give {name:?} a device of its own",
            claim.instance
        );
        Err(Fault::new(FaultKind::DeviceInUse, text))
    }
}
