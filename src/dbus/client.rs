//! The client's side: typed calls over the generated proxy, and waiting for a job without polling.

mod moves;
mod traits;

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use zbus::OwnedObjectPath;
use zbus::fdo::DBusProxy;
use zbus::proxy::CacheProperties;

use super::connect::{Bus, connect};
use super::event::{BusEvent, Watch};
use super::fault::WireFault;
use super::json::{self, Record};
use super::proxy::ManagerProxy;
use super::{options, path};
use crate::model::{DisplayWish, Fault, FaultKind, Finding, InventoryRecord, Job, JobId, OpKind};
use crate::service::api::{
    ClaimRequest, DeviceView, HookCall, InstanceView, Operate, OperateWith, PlanView, ReconcileView,
    SpawnRequest, SpawnResult, StatusView,
};

/// A connection to the daemon. The daemon itself need not be there until a call is made.
#[derive(Debug, Clone)]
pub struct Client {
    manager: ManagerProxy<'static>,
}

impl Client {
    /// Connects; no call waits longer than `timeout` for its answer.
    ///
    /// # Errors
    /// `HostUnreachable` without the bus.
    pub async fn connect(bus: &Bus, timeout: Duration) -> Result<Self, Fault> {
        let connection = connect(bus, Some(timeout)).await.map_err(|err| {
            Fault::new(FaultKind::HostUnreachable, format!("cannot connect to {}: {err}", bus.describe()))
        })?;
        let manager = ManagerProxy::builder(&connection).cache_properties(CacheProperties::No).build().await;
        Ok(Self { manager: manager.map_err(WireFault::from)? })
    }

    /// Whether the daemon is there, without starting it.
    ///
    /// # Errors
    /// `HostUnreachable` without the bus.
    pub async fn is_there(&self) -> Result<bool, Fault> {
        let asked = async {
            let bus = DBusProxy::new(self.manager.inner().connection()).await?;
            Ok::<_, zbus::Error>(bus.name_has_owner(super::NAME.try_into()?).await?)
        };
        Ok(asked.await.map_err(WireFault::from)?)
    }

    /// Health.
    ///
    /// # Errors
    /// What the daemon answers; `HostUnreachable` without it. So in every call below.
    pub async fn status(&self) -> Result<StatusView, Fault> {
        one(self.manager.status().await)
    }

    /// Parents with types and devices.
    ///
    /// # Errors
    /// As [`Client::status`].
    pub async fn devices(&self) -> Result<Vec<DeviceView>, Fault> {
        list(self.manager.devices().await)
    }

    /// Providers.
    ///
    /// # Errors
    /// As [`Client::status`].
    pub async fn inventory(&self) -> Result<Vec<InventoryRecord>, Fault> {
        list(self.manager.inventory().await)
    }

    /// The books.
    ///
    /// # Errors
    /// As [`Client::status`].
    pub async fn instances(&self) -> Result<Vec<InstanceView>, Fault> {
        list(self.manager.instances().await)
    }

    /// Jobs under way and ended ones.
    ///
    /// # Errors
    /// As [`Client::status`].
    pub async fn jobs(&self) -> Result<Vec<Job>, Fault> {
        list(self.manager.jobs().await)
    }

    /// One job.
    ///
    /// # Errors
    /// `NoSuchJob`.
    pub async fn job(&self, id: JobId) -> Result<Job, Fault> {
        one(self.manager.get_job(&id.to_string()).await)
    }

    /// Begins a spawn.
    ///
    /// # Errors
    /// The refusal.
    pub async fn spawn(&self, request: &SpawnRequest) -> Result<JobId, Fault> {
        accepted(self.manager.spawn(spawn_options(request)?).await)
    }

    /// What [`Client::spawn`] would do.
    ///
    /// # Errors
    /// The refusal.
    pub async fn preview_spawn(&self, request: &SpawnRequest) -> Result<SpawnResult, Fault> {
        one(self.manager.preview_spawn(spawn_options(request)?).await)
    }

    /// Begins a claim.
    ///
    /// # Errors
    /// The refusal.
    pub async fn claim(&self, request: &ClaimRequest) -> Result<JobId, Fault> {
        let mut options = operation(request.operation_id.as_deref());
        options.insert("instance".to_owned(), json!(request.instance));
        options.insert("name".to_owned(), json!(request.name));
        options.insert("flavor".to_owned(), json!(request.flavor));
        accepted(self.manager.claim(sent(&options)?).await)
    }

    /// Begins an operation on an instance that is in the books.
    ///
    /// # Errors
    /// The refusal.
    pub async fn operate(&self, request: &Operate) -> Result<JobId, Fault> {
        let (m, instance, options) = (&self.manager, request.instance.as_str(), operate_options(request)?);
        accepted(match request.op {
            OpKind::Release => m.release(instance, options).await,
            OpKind::Destroy => m.destroy(instance, options).await,
            OpKind::Start => m.start(instance, options).await,
            OpKind::Stop => m.stop(instance, options).await,
            OpKind::Reboot => m.reboot(instance, options).await,
            OpKind::Suspend => m.suspend(instance, options).await,
            OpKind::Resume => m.resume(instance, options).await,
            OpKind::Rescue => m.rescue(instance, options).await,
            OpKind::Unrescue => m.unrescue(instance, options).await,
            OpKind::Rebuild => m.rebuild(instance, options).await,
            OpKind::Attach => m.attach(instance, options).await,
            OpKind::Detach => m.detach(instance, options).await,
            OpKind::ResizePrepare => m.resize_prepare(instance, options).await,
            OpKind::ResizeFinish => m.resize_finish(instance, options).await,
            OpKind::ResizeConfirm => m.resize_confirm(instance, options).await,
            OpKind::ResizeRevert => m.resize_revert(instance, options).await,
            OpKind::MigrateBegin => m.migrate_begin(instance, options).await,
            OpKind::MigrateFinish => m.migrate_finish(instance, options).await,
            OpKind::MigrateConfirm => m.migrate_confirm(instance, options).await,
            OpKind::MigrateRevert => m.migrate_revert(instance, options).await,
            OpKind::LiveCommit => m.live_commit(instance, options).await,
            OpKind::LiveRollback => m.live_rollback(instance, options).await,
            OpKind::Restore => m.restore(instance, options).await,
            OpKind::Spawn | OpKind::Claim | OpKind::MigratePrepare | OpKind::LivePrepare => {
                let text = format!("{} needs more than an instance", request.op);
                return Err(Fault::new(FaultKind::NotSupported, text));
            }
        })
    }

    /// Begins a release. `instance` is a name or a UUID, here and below.
    ///
    /// # Errors
    /// The refusal.
    pub async fn release(&self, instance: &str, operation_id: Option<&str>) -> Result<JobId, Fault> {
        self.plain(OpKind::Release, instance, operation_id).await
    }

    /// Begins a destroy.
    ///
    /// # Errors
    /// The refusal.
    pub async fn destroy(&self, instance: &str, operation_id: Option<&str>) -> Result<JobId, Fault> {
        self.plain(OpKind::Destroy, instance, operation_id).await
    }

    /// Begins a start.
    ///
    /// # Errors
    /// The refusal.
    pub async fn start(&self, instance: &str, operation_id: Option<&str>) -> Result<JobId, Fault> {
        self.plain(OpKind::Start, instance, operation_id).await
    }

    /// Begins a stop.
    ///
    /// # Errors
    /// The refusal.
    pub async fn stop(&self, instance: &str, operation_id: Option<&str>) -> Result<JobId, Fault> {
        self.plain(OpKind::Stop, instance, operation_id).await
    }

    async fn plain(&self, op: OpKind, instance: &str, operation_id: Option<&str>) -> Result<JobId, Fault> {
        self.operate(&Operate::plain(op, instance, operation_id.map(str::to_owned))).await
    }

    /// Writes the instance's host devices into a domain XML.
    ///
    /// # Errors
    /// The refusal.
    pub async fn render_domain(
        &self,
        instance: &str,
        xml: &str,
        display: DisplayWish,
    ) -> Result<String, Fault> {
        let options = Map::from_iter([("display".to_owned(), json!(display))]);
        Ok(self.manager.render_domain(instance, options::domain_xml(xml)?, sent(&options)?).await?)
    }

    /// Has written what a domain of libvirt's own wants; the UUIDs that its devices will have.
    ///
    /// # Errors
    /// The refusal.
    pub async fn request_for_domain(&self, domain: &str, flavor: Option<&str>) -> Result<Vec<String>, Fault> {
        let options = flavor.map(|flavor| ("flavor".to_owned(), json!(flavor))).into_iter().collect();
        Ok(self.manager.domain_request(domain, sent(&options)?).await?)
    }

    /// What libvirt's qemu hook is to print.
    ///
    /// # Errors
    /// Why the guest must not start.
    pub async fn hook(&self, call: &HookCall) -> Result<String, Fault> {
        let HookCall { name, operation, sub_operation, extra, domain_xml } = call.clone();
        let arguments = vec![name, operation, sub_operation, extra];
        Ok(self.manager.hook(arguments, options::domain_xml(&domain_xml)?).await?)
    }

    /// Has the configuration read again; its warnings.
    ///
    /// # Errors
    /// `InvalidMdevConfig` with what is wrong; the running configuration stays in force.
    pub async fn reload(&self) -> Result<Vec<Finding>, Fault> {
        list(self.manager.reload().await)
    }

    /// Differences between books, hardware and domains; what is safe is done about them, in a dry run nothing.
    ///
    /// # Errors
    /// As [`Client::status`].
    pub async fn reconcile(&self, dry_run: bool) -> Result<Vec<ReconcileView>, Fault> {
        let options = Map::from_iter([("dry_run".to_owned(), json!(dry_run))]);
        list(self.manager.reconcile(sent(&options)?).await)
    }

    /// The configuration in force, as TOML.
    ///
    /// # Errors
    /// As [`Client::status`].
    pub async fn config_text(&self) -> Result<String, Fault> {
        Ok(self.manager.config().await?)
    }

    /// What a configuration, or the daemon's files as they are now, would change.
    ///
    /// # Errors
    /// `InvalidMdevConfig`.
    pub async fn plan(&self, config: Option<&str>) -> Result<PlanView, Fault> {
        let options = config.map(|text| ("config".to_owned(), json!(text))).into_iter().collect();
        one(self.manager.plan(sent(&options)?).await)
    }

    /// Events from now on: to be called before the call whose job is waited for.
    ///
    /// # Errors
    /// The bus is lost.
    pub async fn watch(&self) -> Result<Watch, Fault> {
        Ok(Watch::start(self.manager.inner().connection()).await.map_err(WireFault::from)?)
    }

    /// Waits for the end of a job; `step` sees it each time it moves.
    ///
    /// # Errors
    /// `HostUnreachable`, with the job in the details, if the daemon or the bus goes away.
    pub async fn finished(
        &self,
        id: JobId,
        watch: &mut Watch,
        mut step: impl FnMut(&Job),
    ) -> Result<Job, Fault> {
        loop {
            let job = self.job(id).await.map_err(|fault| if is_away(&fault) { gone(id) } else { fault })?;
            if !job.state.is_open() {
                return Ok(job);
            }
            step(&job);
            loop {
                match watch.next().await {
                    Some(BusEvent::DaemonGone) | None => return Err(gone(id)),
                    Some(event) if event.concerns(id) => break,
                    Some(_) => {}
                }
            }
        }
    }
}

fn is_away(fault: &Fault) -> bool {
    fault.kind == FaultKind::HostUnreachable
}

fn gone(id: JobId) -> Fault {
    let message = format!(
        "mdevirtd went away while job {id} was under way; it goes on when mdevirtd is back: mdevirtctl job show {id}"
    );
    Fault::new(FaultKind::HostUnreachable, message).with_details(json!({ "job": id }))
}

fn spawn_options(request: &SpawnRequest) -> Result<Record, Fault> {
    // Here too: a message that is too large for the bus would end the connection.
    options::domain_xml(&request.domain_xml)?;
    let mut options = operation(request.operation_id.as_deref());
    options.insert("domain_xml".to_owned(), json!(request.domain_xml));
    options.insert("flavor".to_owned(), json!(request.flavor));
    options.insert("display".to_owned(), json!(request.display));
    sent(&options)
}

fn operate_options(request: &Operate) -> Result<Record, Fault> {
    let OperateWith { flavor, domain_xml, display, device, peer, live } = &request.with;
    let mut options = operation(request.operation_id.as_deref());
    if let Some(xml) = domain_xml {
        options.insert("domain_xml".to_owned(), json!(options::domain_xml(xml)?));
    }
    options.extend(flavor.as_ref().map(|flavor| ("flavor".to_owned(), json!(flavor))));
    options.extend(device.map(|device| ("device".to_owned(), json!(device))));
    options.extend(peer.as_ref().map(|peer| ("peer".to_owned(), json!(peer))));
    options.extend(live.document.as_ref().map(|document| ("document".to_owned(), json!(document))));
    options.extend(live.uri.as_ref().map(|uri| ("uri".to_owned(), json!(uri))));
    options.extend(live.bandwidth_mib.map(|mib| ("bandwidth_mib".to_owned(), json!(mib))));
    options.extend(live.downtime_ms.map(|ms| ("downtime_ms".to_owned(), json!(ms))));
    if request.op == OpKind::ResizePrepare {
        options.insert("display".to_owned(), json!(display));
    }
    sent(&options)
}

fn operation(id: Option<&str>) -> Map<String, Value> {
    id.map(|id| ("operation_id".to_owned(), json!(id))).into_iter().collect()
}

fn sent(options: &Map<String, Value>) -> Result<Record, Fault> {
    json::to_record(options).map_err(|err| Fault::new(FaultKind::InvalidRequest, err.to_string()))
}

fn accepted(answer: Result<OwnedObjectPath, WireFault>) -> Result<JobId, Fault> {
    let path = answer?;
    path::job_of(&path).ok_or_else(|| strange(&format!("{path:?} is no job")))
}

fn one<T: DeserializeOwned>(answer: Result<Record, WireFault>) -> Result<T, Fault> {
    json::read(&answer?).map_err(|err| strange(&err))
}

fn list<T: DeserializeOwned>(answer: Result<Vec<Record>, WireFault>) -> Result<Vec<T>, Fault> {
    answer?.iter().map(|record| json::read(record).map_err(|err| strange(&err))).collect()
}

fn strange(err: &dyn std::fmt::Display) -> Fault {
    let message = format!("the answer of mdevirtd is not understood: {err}; is it of another version?");
    Fault::new(FaultKind::Internal, message)
}
