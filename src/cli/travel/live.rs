//! `migrate --live`: a running guest to another host.
//!
//! The target checks, books and makes before anything happens to the guest; then the two libvirts carry it. Whatever fails before
//! libvirt's success leaves the guest on the source and nothing on the target.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{Side, again, is_over, moving, undone};
use crate::cli::operation_args::{LiveArgs, MigrateArgs};
use crate::cli::output::{Output, Stop};
use crate::cli::session::Session;
use crate::dbus::Bus;
use crate::model::{Fault, FaultKind, InstanceUuid, OpKind};
use crate::service::api::{InstanceView, LiveOptions, OperateWith, PrepareRequest};

/// How often the target is asked whether it has the guest.
const LOOK_AGAIN: Duration = Duration::from_millis(300);

/// What the books of this side say of a guest that is being sent.
const SENDING: &str = "live-out prepared";
/// And those of the target.
const EXPECTED: &str = "live-in prepared";

/// `migrate --live`.
///
/// # Errors
/// The refusal of either side, or the failure of the job; the guest runs on the source then.
pub(super) async fn migrate(
    here: &Side<'_>,
    there: &Side<'_>,
    args: &MigrateArgs,
    output: Output,
) -> Result<(), Stop> {
    let instance = args.of.instance.as_str();
    let uuid = match (here.find(instance).await?, there.find(instance).await?) {
        (Some(view), _) if moving(&view) == SENDING => {
            go_on(here, &view).await?;
            view.uuid
        }
        // An earlier command has got that far.
        (None, Some(arrived)) if matches!(moving(&arrived), "" | EXPECTED) => arrived.uuid,
        _ => {
            let uuid = here.get(instance).await?.uuid;
            if let Err(fault) = send(here, there, uuid, args).await {
                if !is_over(&fault) {
                    return Err(again(fault).into());
                }
                return Err(undone(fault, give_up(there, uuid).await).into());
            }
            uuid
        }
    };
    settle(there, uuid).await?;
    output.print(&there.stage("live migration done", &uuid.to_string(), "").await?)
}

async fn send(
    here: &Side<'_>,
    there: &Side<'_>,
    uuid: InstanceUuid,
    args: &MigrateArgs,
) -> Result<(), Fault> {
    let instance = uuid.to_string();
    let uri = uri(&there.name, &args.way)?;
    let document = here.session.client().live_check_source(&instance).await?;
    // What an earlier command has left there was made for the guest as it was then.
    give_up(there, uuid).await?;
    there.session.client().live_check_target(&document).await?;
    let request = PrepareRequest { document, live: true, ..PrepareRequest::default() };
    let prepared = there.prepare(&request).await?;
    let pairs = prepared.result.and_then(|result| result.get("document").map(ToString::to_string));
    let live = LiveOptions {
        document: pairs,
        uri: Some(uri),
        bandwidth_mib: args.way.bandwidth,
        downtime_ms: args.way.downtime,
    };
    let with = OperateWith { peer: Some(there.name.clone()), live, ..OperateWith::default() };
    here.run(OpKind::LiveCommit, uuid, with).await
}

/// How libvirt reaches libvirt there.
fn uri(peer: &str, way: &LiveArgs) -> Result<String, Fault> {
    match (&way.uri, Bus::of_peer(peer)) {
        (Some(uri), _) => Ok(uri.clone()),
        (None, Bus::Host(host)) => Ok(format!("qemu+ssh://{host}/system")),
        (None, Bus::System | Bus::Session | Bus::Address(_)) => {
            let text =
                format!("{peer:?} is the address of a bus; say with --uri how libvirt reaches libvirt there");
            Err(Fault::new(FaultKind::InvalidRequest, text))
        }
    }
}

/// A sending that is under way is watched to its end; one that got stuck is gone on with.
async fn go_on(here: &Side<'_>, view: &InstanceView) -> Result<(), Fault> {
    let jobs = here.session.client().jobs().await?;
    let running = |job: &&crate::model::Job| {
        job.op == OpKind::LiveCommit && job.instance == view.uuid && job.state.is_open()
    };
    match jobs.iter().find(running).map(|job| job.id) {
        None => here.plain(OpKind::LiveCommit, view.uuid).await,
        Some(id) => {
            let begin = async |_: &crate::dbus::Client| Ok(id);
            here.session.carry_out(&Session::to_its_end(), begin).await.map(|_| ())
        }
    }
}

/// Waits until the target has the guest for its own; it finds out by itself, at the latest when it is asked.
async fn settle(there: &Side<'_>, uuid: InstanceUuid) -> Result<(), Fault> {
    let deadline = Instant::now() + there.session.patience();
    loop {
        let view = there.get(&uuid.to_string()).await?;
        if moving(&view) != EXPECTED {
            return Ok(());
        }
        match there.plain(OpKind::LiveCommit, uuid).await {
            Err(fault) if fault.kind == FaultKind::InstanceBusy && Instant::now() < deadline => {
                sleep(LOOK_AGAIN).await;
            }
            // It may have found out in between.
            Err(fault) if moving(&there.get(&uuid.to_string()).await?) == EXPECTED => return Err(fault),
            Ok(()) | Err(_) => return Ok(()),
        }
    }
}

/// Takes back what the target has made, if it has made something. Another command, or the target itself, may be at that, too.
async fn give_up(there: &Side<'_>, uuid: InstanceUuid) -> Result<(), Fault> {
    let deadline = Instant::now() + there.session.patience();
    loop {
        match there.find(&uuid.to_string()).await? {
            Some(view) if moving(&view) == EXPECTED => {}
            Some(_) | None => return Ok(()),
        }
        match there.plain(OpKind::LiveRollback, uuid).await {
            Err(fault) if is_outrun(&fault) && Instant::now() < deadline => sleep(LOOK_AGAIN).await,
            outcome => return outcome,
        }
    }
}

fn is_outrun(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::InstanceBusy | FaultKind::NoSuchInstance)
}

/// Breaks off a sending that is under way, and then takes back what the target has made.
///
/// # Errors
/// It could not be broken off any more, or either side failed.
pub(super) async fn back(here: &Side<'_>, there: &Side<'_>, uuid: InstanceUuid) -> Result<(), Fault> {
    // The job that is answered with is the one that was broken off: that it failed is what was wanted.
    let broken_off = here.plain(OpKind::LiveRollback, uuid).await;
    match here.find(&uuid.to_string()).await? {
        Some(view) if moving(&view).is_empty() => give_up(there, uuid).await,
        Some(_) => broken_off,
        None => {
            let text = format!("the guest has gone to {} already; migrate it back from there", there.name);
            Err(Fault::new(FaultKind::InvalidRequest, text))
        }
    }
}
