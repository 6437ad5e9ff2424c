//! What a domain of libvirt's own wants, written into its definition: our element of its metadata, and a host device for each
//! slice. Nothing is booked before the domain starts.

use super::Service;
use crate::model::{DeviceApi, Fault, FaultKind, Hostdev, InstanceUuid, MdevUuid, Request};
use crate::ops::host_fault;
use crate::plan::pick::{Wishes, pick};
use crate::xml::domain::{DomainDoc, Vgpu, with_vgpu, write_hostdevs};

impl Service {
    /// [`super::api::UseCases::request_for_domain`].
    pub(super) async fn domain_request(
        &self,
        domain: &str,
        flavor: Option<&str>,
    ) -> Result<Vec<MdevUuid>, Fault> {
        let (uuid, xml) = self.plain_definition(domain).await?;
        let wish = flavor.map(|flavor| Vgpu { flavor: Some(flavor.trim().to_owned()), held: None });
        let xml = with_vgpu(&xml, wish.as_ref())?;
        let xml = match flavor {
            Some(flavor) => self.with_wanted(&xml, &Request::parse(flavor)?).await?,
            None => xml,
        };
        let what = format!("define domain {domain:?}");
        self.host.hypervisor.define(&xml).await.map_err(|e| host_fault(&what, &e))?;
        tracing::info!(instance = %uuid, flavor, "its definition says what it wants");
        Ok(DomainDoc::parse(&xml)?.mdevs().collect())
    }

    /// The definition of a domain that no operation of ours looks after.
    async fn plain_definition(&self, domain: &str) -> Result<(InstanceUuid, String), Fault> {
        let what = format!("look for domain {domain:?}");
        // A UUID is meant as one, whatever another domain is called; no domain has the nil one.
        let by_uuid = domain.parse().unwrap_or(InstanceUuid(uuid::Uuid::nil()));
        let found = self.host.hypervisor.find_domain(by_uuid, domain).await;
        let found = found.map_err(|e| host_fault(&what, &e))?;
        let missing = |why: &str| Fault::new(FaultKind::NoSuchInstance, format!("{what}: {why}"));
        let found = found.ok_or_else(|| missing("libvirt has none of that name or UUID"))?;
        if self.store.books().instance(found).is_some() && !self.is_plain(found) {
            let text = format!(
                "domain {domain:?} is an instance of mdevirt already; `mdevirtctl resize` gives it another flavor"
            );
            return Err(Fault::new(FaultKind::InvalidRequest, text));
        }
        let xml = self.host.hypervisor.definition(found).await.map_err(|e| host_fault(&what, &e))?;
        Ok((
            found,
            xml.ok_or_else(|| missing("it is transient, so that there is no definition to write into"))?,
        ))
    }

    /// The document with as many mediated devices as the request has; those that it names already are among them.
    async fn with_wanted(&self, xml: &str, request: &Request) -> Result<String, Fault> {
        let doc = DomainDoc::parse(xml)?;
        let named: Vec<MdevUuid> = doc.mdevs().collect();
        let wanted = usize::try_from(request.device_count()).unwrap_or(usize::MAX);
        if named.len() > wanted {
            let list: Vec<String> = named.iter().map(ToString::to_string).collect();
            let text = format!(
                "domain {:?} names {} mediated devices ({}), the flavor asks for {wanted}; take the others out of its definition",
                doc.name,
                named.len(),
                list.join(", ")
            );
            return Err(Fault::new(FaultKind::InvalidRequest, text));
        }
        let models = self.models(request, wanted).await;
        let fresh = models.into_iter().skip(named.len()).map(|model| {
            let uuid = MdevUuid(self.ids.fresh());
            self.templates.hostdev(&Hostdev { uuid, model, display: false, ramfb: false })
        });
        Ok(write_hostdevs(xml, None, &fresh.collect::<Result<Vec<_>, _>>()?)?)
    }

    /// What each slice is to the guest. Where nothing here serves the request at present it is a PCI device, as nearly all are;
    /// the start says it if that is wrong.
    async fn models(&self, request: &Request, wanted: usize) -> Vec<DeviceApi> {
        let settings = self.settings.now();
        let seen = self.observe().await.ok();
        let choices = seen.as_ref().and_then(|seen| {
            let picture = seen.picture(&settings);
            pick(request, &picture.capacity, &picture.mapping.without, &Wishes::default()).ok()
        });
        let models = choices.map(|all| all.iter().map(|choice| choice.device_api).collect());
        models.unwrap_or_else(|| vec![DeviceApi::VfioPci; wanted])
    }
}
