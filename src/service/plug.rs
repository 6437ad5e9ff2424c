//! One device more for an instance, or one less.

use super::Service;
use super::api::OperateWith;
use super::book::Asked;
use super::lifecycle::{Booking, Subject};
use crate::model::{ClaimRole, Fault, FaultKind, Request};
use crate::ops::Params;
use crate::xml::domain::DomainDoc;

impl Service {
    /// Chooses further devices; the guest gets them at once if it runs.
    pub(super) async fn plan_attach(&self, subject: &Subject, with: &OperateWith) -> Result<Booking, Fault> {
        let request = Request::parse(with.flavor()?)?;
        let doc = DomainDoc::parse(self.definition(&subject.instance).await?)?;
        let asked = Asked {
            instance: subject.instance.uuid,
            request: &request,
            domain: Some(&doc),
            role: ClaimRole::Primary,
        };
        let chosen = self.choose(&asked).await?;
        let hostdevs = chosen.claims.iter().map(|c| self.plain_hostdev(c)).collect::<Result<Vec<_>, _>>()?;
        let params = Params {
            others: subject.plans.clone(),
            moving: None,
            hostdevs,
            start: self.runs(subject.instance.uuid).await?,
            ..subject.params_of(chosen.devices)
        };
        Ok(Booking { params, new: chosen.claims, basis: chosen.basis })
    }

    /// Takes one device out, of the guest too if it runs.
    pub(super) async fn plan_detach(&self, subject: &Subject, with: &OperateWith) -> Result<Params, Fault> {
        let device = with.device()?;
        let (leaving, staying): (Vec<_>, Vec<_>) =
            subject.plans.iter().cloned().partition(|plan| plan.claim.uuid == device);
        if leaving.is_empty() {
            let text = format!(
                "detach from instance {:?}: it has no device {device}; look at `mdevirtctl instance show {}`",
                subject.instance.name, subject.instance.uuid
            );
            return Err(Fault::new(FaultKind::InvalidRequest, text));
        }
        let xml = self.definition(&subject.instance).await?;
        let hostdevs = self.hostdevs(&xml, &leaving)?;
        let keep_devices = subject.keeps;
        let bare = subject.bare || staying.is_empty();
        let old_xml = Some(xml);
        Ok(Params { others: staying, hostdevs, keep_devices, bare, old_xml, ..subject.params_of(leaving) })
    }
}
