//! The daemon's start: every open saga of an earlier life goes on, forward or backward, as its journal says.

use super::Service;
use super::launch::beginning;
use crate::model::{Fault, SagaRow, SagaState};
use crate::ops::script;
use crate::store::Entry;

impl Service {
    /// Takes up all open sagas; each runs beside the others and waits by itself for libvirt.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn recover(&self) -> Result<usize, Fault> {
        let open = self.store.open_sagas()?;
        let count = open.len();
        for row in open {
            self.take_up(row)?;
        }
        Ok(count)
    }

    fn take_up(&self, row: SagaRow) -> Result<(), Fault> {
        match script(&self.host, &row) {
            Ok(script) => {
                self.jobs.note(beginning(&row, &script));
                let service = self.clone();
                tokio::spawn(async move { service.drive(row, script, true).await });
            }
            Err(fault) => {
                tracing::error!(job = %row.id, "{fault}");
                let result = serde_json::to_value(&fault).ok();
                self.store.advance(row.id, Entry::new().turn(SagaState::Stuck, result))?;
            }
        }
        Ok(())
    }
}
