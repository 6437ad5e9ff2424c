//! `spawn`, `claim` and every operation on one instance of one host.

use serde::{Deserialize, Serialize};

use super::args::{ClaimArgs, SpawnArgs, VerbArgs};
use super::books::claims;
use super::input::read_text;
use super::output::{Output, Show, Stop};
use super::session::{Carried, Session};
use super::table::printable_lines;
use crate::dbus::MAX_DOMAIN_XML_BYTES;
use crate::model::JobId;
use crate::model::{Fault, FaultKind, InstanceUuid, InvalidName, Job, OpKind, SagaState};
use crate::service::api::{ClaimRequest, ClaimView, Operate, OperateWith, SpawnRequest, SpawnResult};

/// `spawn`.
///
/// # Errors
/// Bad input, the refusal, or the failure of the job.
pub async fn spawn(session: &Session, args: SpawnArgs, output: Output) -> Result<(), Stop> {
    let request = SpawnRequest {
        domain_xml: read_text(&args.domain, MAX_DOMAIN_XML_BYTES, FaultKind::InvalidDomainXml)?,
        flavor: args.flavor,
        display: args.display.into(),
        operation_id: args.job.operation_id.clone(),
        dry_run: args.dry_run,
    };
    if request.dry_run {
        return output.print(&session.client().preview_spawn(&request).await?);
    }
    match session.carry_out(&args.job, async |client| client.spawn(&request).await).await? {
        Carried::Begun(job) => output.print(&Operation::of(&job)),
        Carried::Done(job) => {
            let made = made(&job)?;
            let (id, domain_xml) = (job.id, made.domain_xml.unwrap_or_default());
            output.print(&SpawnResult {
                job: Some(id),
                instance: job.instance,
                devices: made.devices,
                domain_xml,
            })
        }
    }
}

/// `domain request`.
#[derive(Debug, Serialize)]
pub struct Wanted {
    /// Name or UUID, as given.
    pub domain: String,
    /// What it wants from now on; `null` for nothing.
    pub flavor: Option<String>,
    /// The UUIDs that its devices will have.
    pub devices: Vec<String>,
}

impl Show for Wanted {
    fn text(&self) -> String {
        match &self.flavor {
            None => format!("domain {} wants nothing any more\n", self.domain),
            Some(flavor) => {
                format!(
                    "domain {} gets {flavor} when it starts, as {}\n",
                    self.domain,
                    self.devices.join(", ")
                )
            }
        }
    }
}

/// `claim create`.
///
/// # Errors
/// As [`spawn`].
pub async fn claim(session: &Session, args: ClaimArgs, output: Output) -> Result<(), Stop> {
    let request = ClaimRequest {
        instance: args.instance.parse().map_err(|err: InvalidName| Fault::from(err))?,
        name: args.name,
        flavor: args.flavor,
        operation_id: args.job.operation_id.clone(),
    };
    match session.carry_out(&args.job, async |client| client.claim(&request).await).await? {
        Carried::Begun(job) => output.print(&Operation::of(&job)),
        Carried::Done(job) => {
            let devices = made(&job)?.devices;
            output.print(&Claimed { job: job.id, instance: job.instance, devices })
        }
    }
}

/// An operation on an instance, with what it needs besides.
///
/// # Errors
/// As [`spawn`].
pub async fn verb(
    session: &Session,
    op: OpKind,
    args: &VerbArgs,
    with: OperateWith,
    output: Output,
) -> Result<(), Stop> {
    output.print(&operation(session, op, args, with).await?)
}

/// As [`verb`], without printing.
pub(super) async fn operation(
    session: &Session,
    op: OpKind,
    args: &VerbArgs,
    with: OperateWith,
) -> Result<Operation, Stop> {
    let (instance, operation_id) = (args.of.instance.clone(), args.job.operation_id.clone());
    let request = Operate { op, instance, operation_id, with };
    match session.carry_out(&args.job, async |client| client.operate(&request).await).await? {
        Carried::Begun(job) | Carried::Done(job) => Ok(Operation::of(&job)),
    }
}

/// A domain XML as `rescue` and `rebuild` take it.
///
/// # Errors
/// It cannot be read.
pub fn with_domain(file: &str) -> Result<OperateWith, Fault> {
    let domain_xml = read_text(file, MAX_DOMAIN_XML_BYTES, FaultKind::InvalidDomainXml)?;
    Ok(OperateWith { domain_xml: Some(domain_xml), ..OperateWith::default() })
}

/// What an operation that made devices left as its result.
#[derive(Debug, Deserialize)]
struct Made {
    devices: Vec<ClaimView>,
    #[serde(default)]
    domain_xml: Option<String>,
}

fn made(job: &Job) -> Result<Made, Fault> {
    serde_json::from_value(job.result.clone().unwrap_or_default()).map_err(|err| {
        let message = format!("job {} is done, but its result is not understood: {err}", job.id);
        Fault::new(FaultKind::Internal, message)
    })
}

/// An operation that has nothing more to tell.
#[derive(Debug, Serialize)]
pub(super) struct Operation {
    job: JobId,
    instance: InstanceUuid,
    operation: OpKind,
    state: SagaState,
}

impl Operation {
    fn of(job: &Job) -> Self {
        Self { job: job.id, instance: job.instance, operation: job.op, state: job.state }
    }
}

impl Show for Operation {
    fn text(&self) -> String {
        format!("{} of instance {}: {}, job {}\n", self.operation, self.instance, self.state, self.job)
    }
}

impl Show for Vec<Operation> {
    fn text(&self) -> String {
        self.iter().map(Show::text).collect()
    }
}

impl Show for SpawnResult {
    fn text(&self) -> String {
        let (instance, devices) = (self.instance, claims(&self.devices));
        match self.job {
            Some(job) => format!("spawn of instance {instance}: done, job {job}\n\n{devices}"),
            None => {
                let xml = printable_lines(&self.domain_xml);
                format!("spawn of instance {instance} would take\n\n{devices}\nand define\n\n{xml}\n")
            }
        }
    }
}

/// `claim create`.
#[derive(Debug, Serialize)]
struct Claimed {
    job: JobId,
    instance: InstanceUuid,
    devices: Vec<ClaimView>,
}

impl Show for Claimed {
    fn text(&self) -> String {
        let (instance, job) = (self.instance, self.job);
        format!("claim of instance {instance}: done, job {job}\n\n{}", claims(&self.devices))
    }
}
