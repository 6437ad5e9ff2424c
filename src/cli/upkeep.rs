//! `reconcile`, and `restore` of one instance or of all.

use super::args::{Instance, JobArgs, RestoreArgs, VerbArgs};
use super::operate;
use super::output::{Output, Show, Stop, text};
use super::session::Session;
use super::table::Table;
use crate::model::{ClaimState, OpKind};
use crate::service::api::{ClaimView, OperateWith, ReconcileView};

impl Show for Vec<ReconcileView> {
    fn text(&self) -> String {
        if self.is_empty() {
            return "books, hardware and domains agree\n".to_owned();
        }
        let mut table = Table::new(&["KIND", "DEVICE", "PARENT", "INSTANCE", "ACTION", "DONE", "TEXT"]);
        for one in self {
            table.row(vec![
                one.kind.to_string(),
                one.uuid.map(|uuid| uuid.to_string()).unwrap_or_default(),
                one.parent.as_ref().map(ToString::to_string).unwrap_or_default(),
                one.instance.map(|uuid| uuid.to_string()).unwrap_or_default(),
                one.action.to_string(),
                if one.done { "yes" } else { "no" }.to_owned(),
                one.text.clone(),
            ]);
        }
        table.to_string()
    }
}

/// `restore`. Without an instance every one that lacks a device is tried; the first failure is told at the end.
///
/// # Errors
/// The refusal, or the failure of a job.
pub(super) async fn restore(session: &Session, args: RestoreArgs, output: Output) -> Result<(), Stop> {
    let RestoreArgs { instance, job } = args;
    if let Some(instance) = instance {
        let args = VerbArgs { of: Instance { instance }, job };
        return operate::verb(session, OpKind::Restore, &args, OperateWith::default(), output).await;
    }
    let all = session.client().instances().await?;
    let gone = |claim: &ClaimView| matches!(claim.state, ClaimState::Missing | ClaimState::Lost);
    let (mut done, mut failed) = (Vec::new(), None);
    for lacking in all.iter().filter(|i| i.claims.iter().any(gone)) {
        // An operation id is one operation's: the second instance would be refused with it.
        let job = JobArgs { operation_id: None, no_wait: job.no_wait };
        let args = VerbArgs { of: Instance { instance: lacking.uuid.to_string() }, job };
        match operate::operation(session, OpKind::Restore, &args, OperateWith::default()).await {
            Ok(one) => done.push(one),
            Err(stop) => drop(failed.get_or_insert(stop)),
        }
    }
    if done.is_empty() && failed.is_none() && !output.json {
        return text("no instance lacks a device\n");
    }
    output.print(&done)?;
    failed.map_or(Ok(()), Err)
}
