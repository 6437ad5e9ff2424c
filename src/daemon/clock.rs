//! The real clock and the real source of ids.

use std::time::{SystemTime, UNIX_EPOCH};

use uuid::Uuid;

use crate::model::{Clock, Ids, Usec};

/// The system's time.
#[derive(Debug)]
pub(super) struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one injected source of time")]
    fn now_usec(&self) -> Usec {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Usec::try_from(since.as_micros()).unwrap_or(Usec::MAX)
    }
}

/// Random UUIDs.
#[derive(Debug)]
pub(super) struct RandomIds;

impl Ids for RandomIds {
    #[expect(clippy::disallowed_methods, reason = "this is the one injected source of ids")]
    fn fresh(&self) -> Uuid {
        Uuid::new_v4()
    }
}
