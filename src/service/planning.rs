//! What another configuration would change; nothing is touched.

use super::Service;
use super::api::{PlanChange, PlanView};
use super::settings::Settings;
use crate::config;
use crate::model::Fault;
use crate::plan::changes::{Difference, Facts};

impl Service {
    /// Compares what is in force with this configuration, or with what the files say now.
    pub(super) async fn compare(&self, text: Option<&str>) -> Result<PlanView, Fault> {
        let now = self.settings.now();
        let other = match text {
            Some(text) => Settings::new(config::parse(text, "the given configuration")?)?,
            None => self.settings.read()?,
        };
        let seen = self.observe().await?;
        let facts = |settings: &Settings| {
            let picture = seen.picture(settings);
            let records: Vec<_> =
                picture.capacity.iter().filter_map(|cap| cap.record(&self.host_name)).collect();
            (Facts::new(&records, &picture.resolution), picture.findings())
        };
        let ((from, _), (to, findings)) = (facts(&now), facts(&other));
        let changes = from.differences(&to).into_iter().map(change).collect();
        Ok(PlanView { changes, findings: other.warnings.iter().cloned().chain(findings).collect() })
    }
}

fn change(difference: Difference) -> PlanChange {
    let Difference { kind, name, field, from, to } = difference;
    PlanChange { kind: kind.as_str().to_owned(), name, field: field.to_owned(), from, to }
}
