//! `resize`, `migrate`, `confirm`, `revert` and `evacuate`: operations of several steps, on one host or between two.
//!
//! Nothing is kept here: where an instance stands is in the books of both hosts, so that a command that was interrupted is
//! given again and goes on. The daemons never call each other; what travels is carried by this program.

mod live;

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::books::find_instance;
use super::input::read_text;
use super::operation_args::{EvacuateArgs, Instance, MigrateArgs, ResizeArgs};
use super::output::{Output, Show, Stop};
use super::session::{Carried, Session};
use crate::dbus::{Bus, MAX_HANDOVER_BYTES};
use crate::model::{Fault, FaultKind, InstanceUuid, Job, OpKind};
use crate::service::api::{ClaimView, InstanceView, Operate, OperateWith, PrepareRequest};

/// One side of a move.
#[derive(Debug)]
pub(super) struct Side<'a> {
    session: &'a Session,
    /// `here`, or how the other side is reached.
    name: String,
}

/// Where a move stands at the end of a command.
#[derive(Debug, Serialize)]
struct Stage {
    instance: InstanceUuid,
    name: String,
    /// `finished`, `confirmed`, `reverted`.
    stage: String,
    /// Where the guest is now.
    host: String,
    /// What it has there.
    devices: Vec<ClaimView>,
    /// What is left to do, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    next: String,
}

impl Show for Stage {
    fn text(&self) -> String {
        let devices = super::books::claims(&self.devices);
        let next = if self.next.is_empty() { String::new() } else { format!("\n{}\n", self.next) };
        format!("{} of instance {} on {}\n\n{devices}{next}", self.stage, self.name, self.host)
    }
}

impl<'a> Side<'a> {
    /// The side that the global options name.
    pub(super) fn here(session: &'a Session, host: Option<&str>) -> Self {
        Self { session, name: host.unwrap_or("this host").to_owned() }
    }

    /// The instance as its books have it; `None` if they do not.
    async fn find(&self, instance: &str) -> Result<Option<InstanceView>, Fault> {
        match find_instance(self.session.client().instances().await?, instance) {
            Ok(view) => Ok(Some(view)),
            Err(fault) if fault.kind == FaultKind::NoSuchInstance => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    async fn get(&self, instance: &str) -> Result<InstanceView, Fault> {
        find_instance(self.session.client().instances().await?, instance)
    }

    async fn run(&self, op: OpKind, instance: InstanceUuid, with: OperateWith) -> Result<(), Fault> {
        let request = Operate { op, instance: instance.to_string(), operation_id: None, with };
        let begin = async |client: &crate::dbus::Client| client.operate(&request).await;
        self.session.carry_out(&Session::to_its_end(), begin).await.map(|_| ())
    }

    async fn plain(&self, op: OpKind, instance: InstanceUuid) -> Result<(), Fault> {
        self.run(op, instance, OperateWith::default()).await
    }

    /// The job, ended.
    async fn prepare(&self, request: &PrepareRequest) -> Result<Job, Fault> {
        let begin = async |client: &crate::dbus::Client| client.migrate_prepare(request).await;
        match self.session.carry_out(&Session::to_its_end(), begin).await? {
            Carried::Begun(job) | Carried::Done(job) => Ok(job),
        }
    }

    async fn stage(&self, stage: &str, instance: &str, next: &str) -> Result<Stage, Fault> {
        let view = self.get(instance).await?;
        Ok(Stage {
            instance: view.uuid,
            name: view.name,
            stage: stage.to_owned(),
            host: self.name.clone(),
            devices: view.claims,
            next: next.to_owned(),
        })
    }
}

fn moving(view: &InstanceView) -> &str {
    view.moving.as_deref().unwrap_or_default()
}

/// How long the other side may take to be reached and to answer.
async fn reach(peer: &str, patience: Duration) -> Result<Session, Fault> {
    Session::connect(&Bus::of_peer(peer), patience, false).await
}

/// `resize` on this host.
///
/// # Errors
/// The refusal, or the failure of a job; what was prepared is reverted then.
pub(super) async fn resize(here: &Side<'_>, args: &ResizeArgs, output: Output) -> Result<(), Stop> {
    let view = here.get(&args.of.instance).await?;
    if moving(&view).starts_with("resize ") {
        if view.new_flavor.as_deref() != Some(args.flavor.trim()) {
            let text = format!(
                "instance {:?} is under way to the flavor {:?}: confirm or revert that first",
                view.name,
                view.new_flavor.unwrap_or_default()
            );
            return Err(Fault::new(FaultKind::InstanceBusy, text).into());
        }
    } else {
        let with = OperateWith {
            flavor: Some(args.flavor.clone()),
            display: args.display.into(),
            ..OperateWith::default()
        };
        here.run(OpKind::ResizePrepare, view.uuid, with).await?;
    }
    let view = here.get(&args.of.instance).await?;
    if moving(&view) != "resize finished"
        && let Err(fault) = here.plain(OpKind::ResizeFinish, view.uuid).await
    {
        if !is_over(&fault) {
            return Err(again(fault).into());
        }
        return Err(undone(fault, here.plain(OpKind::ResizeRevert, view.uuid).await).into());
    }
    let next = "confirm it with `mdevirtctl confirm`, or go back with `mdevirtctl revert`";
    output.print(&here.stage("resize finished", &args.of.instance, next).await?)
}

/// `migrate`, and `resize` to another host.
///
/// # Errors
/// The refusal of either side, or the failure of a job; the instance is on the source then, as it was.
pub(super) async fn migrate(here: &Side<'_>, args: &MigrateArgs, output: Output) -> Result<(), Stop> {
    let instance = args.of.instance.as_str();
    let session = reach(&args.to, here.session.patience()).await?;
    let there = Side { session: &session, name: args.to.clone() };
    if args.live {
        return live::migrate(here, &there, args, output).await;
    }
    let uuid = match here.get(instance).await? {
        view if moving(&view) == "out prepared" => view.uuid,
        view => {
            let with = OperateWith { peer: Some(args.to.clone()), ..OperateWith::default() };
            here.run(OpKind::MigrateBegin, view.uuid, with).await?;
            view.uuid
        }
    };
    if let Err(fault) = arrive(here, &there, uuid, args).await {
        if !is_over(&fault) {
            return Err(again(fault).into());
        }
        return Err(undone(fault, back(here, &there, uuid).await).into());
    }
    if args.confirm {
        settle(here, &there, uuid).await?;
        return output.print(&there.stage("migration confirmed", &uuid.to_string(), "").await?);
    }
    let next = "confirm it with `mdevirtctl confirm`, or go back with `mdevirtctl revert`";
    output.print(&there.stage("migration finished", &uuid.to_string(), next).await?)
}

async fn arrive(
    here: &Side<'_>,
    there: &Side<'_>,
    uuid: InstanceUuid,
    args: &MigrateArgs,
) -> Result<(), Fault> {
    let instance = uuid.to_string();
    if there.find(&instance).await?.is_none() {
        let request = PrepareRequest {
            document: here.session.client().export_instance(&instance).await?,
            flavor: args.flavor.clone(),
            allow_type_change: args.allow_type_change,
            ..PrepareRequest::default()
        };
        there.prepare(&request).await?;
    }
    match moving(&there.get(&instance).await?) {
        "in prepared" => there.plain(OpKind::MigrateFinish, uuid).await,
        "in finished" => Ok(()),
        other => {
            let text =
                format!("instance {uuid} is on {} already, and not on its way ({other:?})", there.name);
            Err(Fault::new(FaultKind::InstanceExists, text))
        }
    }
}

/// The source first: it must not keep what runs on the target.
async fn settle(here: &Side<'_>, there: &Side<'_>, uuid: InstanceUuid) -> Result<(), Fault> {
    let arrived = there.find(&uuid.to_string()).await?;
    if arrived.as_ref().is_none_or(|view| moving(view) != "in finished") {
        let text = format!("instance {uuid} has not arrived on {}: migrate it again, or revert", there.name);
        return Err(Fault::new(FaultKind::InvalidRequest, text));
    }
    here.plain(OpKind::MigrateConfirm, uuid).await?;
    there.plain(OpKind::MigrateConfirm, uuid).await
}

/// The target first: the guest must not run in two places.
async fn back(here: &Side<'_>, there: &Side<'_>, uuid: InstanceUuid) -> Result<(), Fault> {
    match there.find(&uuid.to_string()).await? {
        Some(view) if moving(&view).starts_with("in ") => there.plain(OpKind::MigrateRevert, uuid).await?,
        // Whatever has this UUID there did not come by this move.
        Some(_) | None => {}
    }
    here.plain(OpKind::MigrateRevert, uuid).await
}

/// Whether the failure says that the operation came to nothing. One whose daemon went away goes on with it.
fn is_over(fault: &Fault) -> bool {
    !matches!(fault.kind, FaultKind::HostUnreachable | FaultKind::Timeout)
}

/// The same command goes on where the move is.
fn again(fault: Fault) -> Fault {
    let text = format!("{}; then give the same command again, or `mdevirtctl revert`", fault.message);
    Fault { message: text, ..fault }
}

/// The reason, and what came of going back.
fn undone(fault: Fault, outcome: Result<(), Fault>) -> Fault {
    let text = match outcome {
        Ok(()) => format!("{}; the instance is as it was", fault.message),
        Err(err) => format!(
            "{}; and it could not be reverted: {}; give `mdevirtctl revert`",
            fault.message, err.message
        ),
    };
    Fault { message: text, ..fault }
}

/// `confirm`.
///
/// # Errors
/// There is nothing to confirm, or the other side cannot be reached.
pub(super) async fn confirm(here: &Side<'_>, of: &Instance, output: Output) -> Result<(), Stop> {
    let view = here.get(&of.instance).await?;
    let uuid = view.uuid.to_string();
    match moving(&view) {
        "out prepared" => {
            let (session, name) = other_side(here, &view).await?;
            let there = Side { session: &session, name };
            settle(here, &there, view.uuid).await?;
            output.print(&there.stage("migration confirmed", &uuid, "").await?)
        }
        "in finished" => {
            here.plain(OpKind::MigrateConfirm, view.uuid).await?;
            let next = "the source, if it still has the instance, is to be confirmed there";
            output.print(&here.stage("migration confirmed", &uuid, next).await?)
        }
        _ => {
            here.plain(OpKind::ResizeConfirm, view.uuid).await?;
            output.print(&here.stage("resize confirmed", &uuid, "").await?)
        }
    }
}

/// `revert`.
///
/// # Errors
/// There is nothing to revert, or the other side cannot be reached.
pub(super) async fn revert(here: &Side<'_>, of: &Instance, output: Output) -> Result<(), Stop> {
    let view = here.get(&of.instance).await?;
    let uuid = view.uuid.to_string();
    match moving(&view) {
        "out prepared" => {
            let (session, name) = other_side(here, &view).await?;
            back(here, &Side { session: &session, name }, view.uuid).await?;
            output.print(&here.stage("migration reverted", &uuid, "").await?)
        }
        "live-out prepared" => {
            let (session, name) = other_side(here, &view).await?;
            live::back(here, &Side { session: &session, name }, view.uuid).await?;
            output.print(&here.stage("live migration reverted", &uuid, "").await?)
        }
        "in prepared" | "in finished" | "live-in prepared" => {
            let source = view.peer.as_deref().unwrap_or("its source");
            let text =
                format!("instance {:?} came from {source}: revert it there, which brings it back", view.name);
            Err(Fault::new(FaultKind::InvalidRequest, text).into())
        }
        _ => {
            here.plain(OpKind::ResizeRevert, view.uuid).await?;
            output.print(&here.stage("resize reverted", &uuid, "").await?)
        }
    }
}

async fn other_side(here: &Side<'_>, view: &InstanceView) -> Result<(Session, String), Fault> {
    let unknown = || {
        let text = format!("where instance {:?} went is not recorded; migrate it again with --to", view.name);
        Fault::new(FaultKind::InvalidRequest, text)
    };
    let peer = view.peer.clone().ok_or_else(unknown)?;
    Ok((reach(&peer, here.session.patience()).await?, peer))
}

/// `evacuate`: the instance of a document, whose host is dead, here.
///
/// # Errors
/// The refusal, or the failure of a job; nothing is left here then.
pub(super) async fn evacuate(here: &Side<'_>, args: &EvacuateArgs, output: Output) -> Result<(), Stop> {
    let document = read_text(&args.document, MAX_HANDOVER_BYTES, FaultKind::InvalidRequest)?;
    let uuid = crate::plan::handover::Handover::parse(&document)?.instance;
    if here.find(&uuid.to_string()).await?.is_none() {
        let request = PrepareRequest {
            document,
            allow_type_change: args.allow_type_change,
            evacuate: true,
            ..PrepareRequest::default()
        };
        here.prepare(&request).await?;
    }
    if moving(&here.get(&uuid.to_string()).await?) == "in prepared"
        && let Err(fault) = here.plain(OpKind::MigrateFinish, uuid).await
    {
        if !is_over(&fault) {
            return Err(again(fault).into());
        }
        return Err(undone(fault, here.plain(OpKind::MigrateRevert, uuid).await).into());
    }
    if moving(&here.get(&uuid.to_string()).await?) == "in finished" {
        here.plain(OpKind::MigrateConfirm, uuid).await?;
    }
    let next = "when its old host is back: mdevirtctl --host HOST instance forget";
    output.print(&here.stage("evacuation", &uuid.to_string(), next).await?)
}

/// `instance forget`: what is left here of an instance that lives elsewhere.
///
/// # Errors
/// The refusal, or the failure of the job.
pub(super) async fn forget(here: &Side<'_>, of: &Instance, output: Output) -> Result<(), Stop> {
    let view = here.get(&of.instance).await?;
    let op = if moving(&view) == "out prepared" { OpKind::MigrateConfirm } else { OpKind::Destroy };
    match here.plain(op, view.uuid).await {
        // Its domain is an orchestrator's, which has taken it away itself.
        Err(fault) if fault.kind == FaultKind::InvalidRequest => {
            here.plain(OpKind::Release, view.uuid).await?;
        }
        outcome => outcome?,
    }
    output.print_document(&format!("instance {} is forgotten on {}\n", view.uuid, here.name))
}

/// `instance export`: the document for `evacuate`, kept somewhere else than on the host.
///
/// # Errors
/// The refusal, or the file cannot be written.
pub(super) async fn export(
    here: &Side<'_>,
    of: &Instance,
    file: Option<&Path>,
    output: Output,
) -> Result<(), Stop> {
    let document = here.session.client().export_instance(&of.instance).await? + "\n";
    let Some(file) = file else { return output.print_document(&document) };
    crate::text::write_file(file, &document)
        .map_err(|err| Fault::new(FaultKind::Internal, format!("write {}: {err}", file.display())).into())
}
