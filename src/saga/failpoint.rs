//! Named points at which a test makes an operation fail, forget, stop or die. Compiled in, no-op unless armed.
//!
//! A point is `<op>.<step>[.<part>].<moment>`, for example `spawn.create_device.0.after_effect`. Points are armed in
//! code, or by [`FailPoints::VARIABLE`] in the environment: `point=action` joined by `;`, `action@2` for the second
//! time only.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use crate::model::claim::text_enum;
use crate::model::{InvalidName, OpKind};
use serde::{Deserialize, Serialize};

text_enum!(
    /// The places in a step.
    Moment, "fail point moment" {
        /// `Started` is on disk, nothing else happened.
        BeforeEffect = "before_effect",
        /// The effect happened; nobody knows yet.
        AfterEffect = "after_effect",
        /// `UndoStarted` is on disk.
        BeforeUndo = "before_undo",
        /// The effect is gone; nobody knows yet.
        AfterUndo = "after_undo",
        /// The outcome of the step is known and not on disk.
        BeforeCommit = "before_commit",
        /// It is on disk.
        AfterCommit = "after_commit",
    }
);

impl Moment {
    /// Whether it belongs to the way back.
    pub fn is_undo(self) -> bool {
        matches!(self, Self::BeforeUndo | Self::AfterUndo)
    }
}

text_enum!(
    /// What happens at an armed point.
    Action, "fail point action" {
        /// The process dies at once, as by SIGKILL.
        Abort = "abort",
        /// The step fails for sure; at a commit, the store cannot write.
        Error = "error",
        /// The outcome is lost; at a commit, as `error`.
        Unknown = "unknown",
        /// The runner waits there until [`FailPoints::release`].
        Pause = "pause",
    }
);

/// What an armed point did to the step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Injected {
    Error(String),
    Unknown(String),
}

#[derive(Debug)]
struct Armed {
    action: Action,
    /// Which time only, counted from 1.
    only: Option<u32>,
    hits: u32,
}

/// The points of one runner.
#[derive(Debug)]
pub struct FailPoints {
    any: AtomicBool,
    armed: Mutex<HashMap<String, Armed>>,
    paused: watch::Sender<BTreeSet<String>>,
}

impl Default for FailPoints {
    fn default() -> Self {
        Self {
            any: AtomicBool::new(false),
            armed: Mutex::default(),
            paused: watch::Sender::new(BTreeSet::new()),
        }
    }
}

/// The name of a point.
pub(super) fn point_name(op: OpKind, step: &str, moment: Moment) -> String {
    format!("{op}.{step}.{moment}")
}

impl FailPoints {
    /// The environment variable that the daemon reads at its start.
    pub const VARIABLE: &'static str = "MDEVIRT_FAILPOINTS";

    /// What [`FailPoints::VARIABLE`] arms; nothing if it is not set.
    ///
    /// # Errors
    /// The part that is not understood.
    pub fn from_environment() -> Result<Self, InvalidName> {
        std::env::var_os(Self::VARIABLE)
            .map_or_else(|| Ok(Self::default()), |text| text.to_string_lossy().parse())
    }

    /// Arms a point: at every hit, or at the `only`-th alone.
    pub fn arm(&self, point: &str, action: Action, only: Option<u32>) {
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        armed.insert(point.to_owned(), Armed { action, only, hits: 0 });
        self.any.store(true, Ordering::Release);
    }

    /// Disarms a point that was not come to.
    pub fn disarm(&self, point: &str) {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner).remove(point);
    }

    /// Returns once a runner waits at this point.
    pub async fn reached(&self, point: &str) {
        // It cannot fail: the sender is `self`.
        let _ = self.paused.subscribe().wait_for(|paused| paused.contains(point)).await;
    }

    /// Lets the runner that waits at this point go on.
    pub fn release(&self, point: &str) {
        self.paused.send_modify(|paused| {
            paused.remove(point);
        });
    }

    /// Passes a point.
    pub(super) async fn hit(&self, op: OpKind, step: &str, moment: Moment) -> Result<(), Injected> {
        if !self.any.load(Ordering::Acquire) {
            return Ok(());
        }
        let point = point_name(op, step, moment);
        let Some(action) = self.due(&point) else { return Ok(()) };
        tracing::warn!(point, %action, "fail point");
        match action {
            Action::Abort => std::process::abort(),
            Action::Error => Err(Injected::Error(format!("fail point {point}"))),
            Action::Unknown => Err(Injected::Unknown(format!("fail point {point}"))),
            Action::Pause => {
                self.pause(point).await;
                Ok(())
            }
        }
    }

    fn due(&self, point: &str) -> Option<Action> {
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        let armed = armed.get_mut(point)?;
        armed.hits = armed.hits.saturating_add(1);
        armed.only.is_none_or(|only| only == armed.hits).then_some(armed.action)
    }

    async fn pause(&self, point: String) {
        let mut paused = self.paused.subscribe();
        self.paused.send_modify(|set| {
            set.insert(point.clone());
        });
        // It cannot fail: the sender is `self`.
        let _ = paused.wait_for(|set| !set.contains(&point)).await;
    }
}

impl FromStr for FailPoints {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let points = Self::default();
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let invalid = |reason| InvalidName::new("fail point", part, reason);
            let (point, action) = part.split_once('=').ok_or_else(|| invalid("expected point=action"))?;
            let (action, only) = match action.split_once('@') {
                None => (action, None),
                Some((action, count)) => {
                    let count = count.parse().ok().filter(|n| *n > 0);
                    (action, Some(count.ok_or_else(|| invalid("expected a number from 1 after @"))?))
                }
            };
            let (_, moment) = point.rsplit_once('.').ok_or_else(|| invalid("expected op.step.moment"))?;
            moment.trim().parse::<Moment>()?;
            points.arm(point.trim(), action.trim().parse()?, only);
        }
        Ok(points)
    }
}
