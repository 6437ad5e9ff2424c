//! `org.mdevirt1.Manager`: every call of the daemon, and its signals.
//!
//! A method here reads its arguments, asks the authority if it changes something, calls the service and converts the
//! answer; nothing else.

mod begin;

use std::sync::Arc;

use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::{ObjectPath, OwnedObjectPath};

use super::authority::Authority;
use super::fault::WireFault;
use super::health::Health;
use super::json::{self, Record, clean};
use super::mirror::JobMirror;
use super::options;
use crate::model::{Fault, JobId, OpKind};
use crate::service::api::UseCases;

/// The manager object.
#[derive(Debug)]
pub struct Manager {
    service: Arc<dyn UseCases>,
    authority: Arc<dyn Authority>,
    jobs: Arc<JobMirror>,
    health: Arc<Health>,
}

impl Manager {
    pub(super) fn new(
        service: Arc<dyn UseCases>,
        authority: Arc<dyn Authority>,
        jobs: Arc<JobMirror>,
        health: Arc<Health>,
    ) -> Self {
        Self { service, authority, jobs, health }
    }
}

/// An answer, or the refusal.
type Result<T> = std::result::Result<T, WireFault>;

// One call is one line, else nobody sees the list for its lines.
#[rustfmt::skip]
/// Methods, properties and signals.
#[zbus::interface(
    name = "org.mdevirt1.Manager",
    introspection_docs = false,
    proxy(default_service = "org.mdevirt1", default_path = "/org/mdevirt1", async_name = "ManagerProxy")
)]
impl Manager {
    /// Books, makes, writes, defines and starts. Options `domain_xml`, `flavor`, `display`, `operation_id`.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn spawn(&self, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        let request = options::spawn_request(&options, false)?;
        self.authority.check(&header).await?;
        self.accepted(self.service.spawn(request).await).await
    }

    /// What `Spawn` would do; nothing is done.
    #[zbus(out_args("result"))]
    async fn preview_spawn(&self, options: Record) -> Result<Record> {
        let request = options::spawn_request(&options, true)?;
        Ok(json::to_record(&self.service.preview_spawn(request).await?)?)
    }

    /// Books and makes devices for a domain of the caller. Options `instance`, `name`, `flavor`, `operation_id`.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn claim(&self, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        let request = options::claim_request(&options)?;
        self.authority.check(&header).await?;
        self.accepted(self.service.claim(request).await).await
    }

    /// Gives the devices of `Claim` back. Option `operation_id`, here and below.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn release(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::Release, instance, &options, &header).await
    }

    /// Stops and undefines the domain and gives the devices back.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn destroy(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::Destroy, instance, &options, &header).await
    }

    /// Starts the domain.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn start(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::Start, instance, &options, &header).await
    }

    /// Stops the domain; its devices stay booked.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn stop(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::Stop, instance, &options, &header).await
    }

    /// Stops and starts it at once, the hard way; a device that is lost is made again.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn reboot(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::Reboot, instance, &options, &header).await
    }

    /// Saves the guest's memory and switches it off; its devices stay booked.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn suspend(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::Suspend, instance, &options, &header).await
    }

    /// Goes on where it was suspended.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn resume(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::Resume, instance, &options, &header).await
    }

    /// Starts the domain of option `domain_xml` with the same devices, until `Unrescue`.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn rescue(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::Rescue, instance, &options, &header).await
    }

    /// Back to the definition before the rescue.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn unrescue(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::Unrescue, instance, &options, &header).await
    }

    /// Takes option `domain_xml` as its definition for good; its devices stay.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn rebuild(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::Rebuild, instance, &options, &header).await
    }

    /// One more device, as option `flavor` says, also into a running guest.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn attach(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::Attach, instance, &options, &header).await
    }

    /// Takes the device with the UUID of option `device` out, also of a running guest.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn detach(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::Detach, instance, &options, &header).await
    }

    /// Makes the devices of option `flavor` beside the old ones; option `display`.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn resize_prepare(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::ResizePrepare, instance, &options, &header).await
    }

    /// Changes over to them; the guest is stopped and started for it.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn resize_finish(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::ResizeFinish, instance, &options, &header).await
    }

    /// Gives the old devices back.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn resize_confirm(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::ResizeConfirm, instance, &options, &header).await
    }

    /// Goes back to the old ones, exactly.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn resize_revert(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::ResizeRevert, instance, &options, &header).await
    }

    /// Source: switches the guest off and holds it for `InstanceExport`. Option `peer`.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn migrate_begin(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::MigrateBegin, instance, &options, &header).await
    }

    /// Target: defines the domain, and starts it if it ran on the source.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn migrate_finish(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::MigrateFinish, instance, &options, &header).await
    }

    /// Both: the instance stays on the target; the source gives everything back.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn migrate_confirm(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::MigrateConfirm, instance, &options, &header).await
    }

    /// Both, the target first: it stays on the source; the target gives everything back.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn migrate_revert(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::MigrateRevert, instance, &options, &header).await
    }

    /// Makes the lost devices of an instance again.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn restore(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::Restore, instance, &options, &header).await
    }

    /// The document that `MigratePrepare` takes; it has the guest's secrets, so not everybody gets it.
    #[zbus(out_args("document"), proxy(allow_interactive_auth))]
    async fn instance_export(&self, instance: &str, #[zbus(header)] header: Header<'_>) -> Result<String> {
        self.authority.check(&header).await?;
        Ok(self.service.export_instance(options::instance(instance)?).await?)
    }

    /// Target: books and makes devices for an instance that comes from another host. Options `document`, `flavor`,
    /// `allow_type_change`, `evacuate`, `operation_id`.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn migrate_prepare(&self, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        let request = options::prepare_request(&options)?;
        self.authority.check(&header).await?;
        self.accepted(self.service.migrate_prepare(request).await).await
    }

    /// Source of a live migration: the document for `LiveCheckTarget` and `LivePrepare`, of a guest that can go while it runs.
    #[zbus(out_args("document"), proxy(allow_interactive_auth))]
    async fn live_check_source(&self, instance: &str, #[zbus(header)] header: Header<'_>) -> Result<String> {
        self.authority.check(&header).await?;
        Ok(self.service.live_check_source(options::instance(instance)?).await?)
    }

    /// Target of a live migration: what it would do; nothing is done. Option `document`.
    #[zbus(out_args("check"))]
    async fn live_check_target(&self, options: Record) -> Result<Record> {
        Ok(json::to_record(&self.service.live_check_target(&options::document(&options)?).await?)?)
    }

    /// Target: books and makes devices for a guest that comes running. Options `document`, `operation_id`.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn live_prepare(&self, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        let request = options::live_prepare_request(&options)?;
        self.authority.check(&header).await?;
        self.accepted(self.service.migrate_prepare(request).await).await
    }

    /// Source: the running guest goes. Target: it has come. Options, for the source: `document` (of the result of `LivePrepare`),
    /// `uri`, `bandwidth_mib`, `downtime_ms`, `peer`, `operation_id`.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn live_commit(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::LiveCommit, instance, &options, &header).await
    }

    /// Target: what was made for the guest goes. Source: the migration under way is broken off, and its job is the answer.
    #[zbus(out_args("job"), proxy(allow_interactive_auth))]
    async fn live_rollback(&self, instance: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<OwnedObjectPath> {
        self.verb(OpKind::LiveRollback, instance, &options, &header).await
    }

    /// Writes the instance's host devices into a domain XML. Option `display`.
    #[zbus(out_args("domain_xml"))]
    async fn render_domain(&self, instance: &str, xml: &str, options: Record) -> Result<String> {
        let (instance, xml) = (options::instance(instance)?, options::domain_xml(xml)?);
        let display = options::display(&options)?;
        Ok(clean(&self.service.render_domain(instance, xml, display).await?))
    }

    /// For libvirt's qemu hook, with its arguments and input: what it prints, the domain's XML with other devices or nothing. An
    /// error refuses the start.
    #[zbus(out_args("domain_xml"))]
    async fn hook(&self, arguments: Vec<String>, xml: &str, #[zbus(header)] header: Header<'_>) -> Result<String> {
        let call = options::hook_call(&arguments, xml)?;
        self.authority.check(&header).await?;
        Ok(self.service.hook(call).await?)
    }

    /// Writes into the definition of a domain of libvirt's own what it wants, option `flavor`, and host devices for it; without the
    /// option the wish is taken out. The UUIDs that its devices will have.
    #[zbus(out_args("devices"), proxy(allow_interactive_auth))]
    async fn domain_request(&self, domain: &str, options: Record, #[zbus(header)] header: Header<'_>) -> Result<Vec<String>> {
        let (domain, flavor) = (options::instance(domain)?, options::flavor(&options)?);
        self.authority.check(&header).await?;
        let devices = self.service.request_for_domain(domain, flavor.as_deref()).await?;
        Ok(devices.iter().map(ToString::to_string).collect())
    }

    /// One record per provider with a total above 0; keys as in `inventory --json`.
    #[zbus(out_args("records"))]
    async fn inventory(&self) -> Result<Vec<Record>> {
        Ok(json::to_records(&self.service.inventory().await?)?)
    }

    /// Parents with types and devices; keys as in `device list --json`.
    #[zbus(out_args("devices"))]
    async fn devices(&self) -> Result<Vec<Record>> {
        Ok(json::to_records(&self.service.devices().await?)?)
    }

    /// The books; keys as in `instance list --json`.
    #[zbus(out_args("instances"))]
    async fn instances(&self) -> Result<Vec<Record>> {
        Ok(json::to_records(&self.service.instances().await?)?)
    }

    /// Jobs under way and ended ones.
    #[zbus(out_args("jobs"))]
    async fn jobs(&self) -> Result<Vec<Record>> {
        Ok(json::to_records(&self.service.jobs().await?)?)
    }

    /// One job, also one whose object is gone from the bus.
    #[zbus(out_args("job"))]
    async fn get_job(&self, id: &str) -> Result<Record> {
        let id: JobId = id.parse().map_err(Fault::from)?;
        Ok(json::to_record(&self.service.job(id).await?)?)
    }

    /// Health in one record.
    #[zbus(out_args("status"))]
    async fn status(&self) -> Result<Record> {
        Ok(json::to_record(&self.service.status().await?)?)
    }

    /// Reads the configuration again; the warnings of a good one. A bad one is the error and changes nothing.
    #[zbus(out_args("findings"), proxy(allow_interactive_auth))]
    async fn reload(&self, #[zbus(header)] header: Header<'_>) -> Result<Vec<Record>> {
        self.authority.check(&header).await?;
        Ok(json::to_records(&self.service.reload().await?)?)
    }

    /// Compares books, hardware and domains and does what is safe; nothing with option `dry_run`. Keys as in `reconcile --json`.
    #[zbus(out_args("differences"), proxy(allow_interactive_auth))]
    async fn reconcile(&self, options: Record, #[zbus(header)] header: Header<'_>) -> Result<Vec<Record>> {
        let dry_run = options::dry_run(&options)?;
        if !dry_run {
            self.authority.check(&header).await?;
        }
        Ok(json::to_records(&self.service.reconcile(dry_run).await?)?)
    }

    /// The configuration in force, as TOML.
    #[zbus(out_args("toml"))]
    async fn config(&self) -> Result<String> {
        Ok(clean(&self.service.config_text().await?))
    }

    /// What the configuration in option `config`, or without it the files as they are now, would change; nothing is touched.
    #[zbus(out_args("plan"))]
    async fn plan(&self, options: Record) -> Result<Record> {
        let config = options::plan_config(&options)?;
        Ok(json::to_record(&self.service.plan(config).await?)?)
    }

    /// Every trait of `traits.toml`; keys as in `trait list --json`.
    #[zbus(out_args("traits"))]
    async fn traits(&self) -> Result<Vec<Record>> {
        Ok(json::to_records(&self.service.traits().await?)?)
    }

    /// Writes the lock; what it pins.
    #[zbus(out_args("lock"), proxy(allow_interactive_auth))]
    async fn trait_lock(&self, #[zbus(header)] header: Header<'_>) -> Result<Record> {
        self.authority.check(&header).await?;
        Ok(json::to_record(&self.service.trait_lock().await?)?)
    }

    /// This host against its lock; keys as in `trait check --json`.
    #[zbus(out_args("check"))]
    async fn trait_check(&self) -> Result<Record> {
        Ok(json::to_record(&self.service.trait_check().await?)?)
    }

    /// Takes what a drifted trait or enabled type is now. Options `reason`, and `parent` where parents differ. The traits
    /// afterwards.
    #[zbus(out_args("traits"), proxy(allow_interactive_auth))]
    async fn trait_accept(
        &self,
        word: &str,
        options: Record,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<Vec<Record>> {
        let request = options::accept_request(word, &options)?;
        self.authority.check(&header).await?;
        Ok(json::to_records(&self.service.trait_accept(request).await?)?)
    }

    /// What the traits of this host are bound to, as a JSON document for other hosts.
    #[zbus(out_args("document"))]
    async fn trait_export(&self) -> Result<String> {
        Ok(self.service.trait_export().await?)
    }

    /// Compares documents of `TraitExport`, of this host or others; keys as in `trait verify --json`.
    #[zbus(out_args("verdict"))]
    async fn trait_verify(&self, documents: Vec<String>) -> Result<Record> {
        Ok(json::to_record(&options::verdict(&documents)?)?)
    }

    /// Version of the daemon.
    #[zbus(property(emits_changed_signal = "const"))]
    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    /// Which libvirt.
    #[zbus(property)]
    fn libvirt_uri(&self) -> String {
        self.health.get().0
    }

    /// Whether libvirt can be reached.
    #[zbus(property)]
    fn connected(&self) -> bool {
        self.health.get().1
    }

    /// A job began.
    #[zbus(signal)]
    pub(super) async fn job_new(
        emitter: &SignalEmitter<'_>,
        id: &str,
        path: ObjectPath<'_>,
    ) -> zbus::Result<()>;

    /// A job ended: `done`, `failed` or `stuck`.
    #[zbus(signal)]
    pub(super) async fn job_removed(
        emitter: &SignalEmitter<'_>,
        id: &str,
        path: ObjectPath<'_>,
        result: &str,
    ) -> zbus::Result<()>;

    /// The inventory is not what it was.
    #[zbus(signal)]
    pub(super) async fn inventory_changed(emitter: &SignalEmitter<'_>) -> zbus::Result<()>;

    /// A trait or an enabled type has become something else on a parent; nothing new is given out there.
    #[zbus(signal)]
    pub(super) async fn drift_detected(
        emitter: &SignalEmitter<'_>,
        word: &str,
        parent: &str,
        text: &str,
    ) -> zbus::Result<()>;

    /// The claims of an instance are not what they were.
    #[zbus(signal)]
    pub(super) async fn claim_changed(emitter: &SignalEmitter<'_>, instance: &str) -> zbus::Result<()>;
}
