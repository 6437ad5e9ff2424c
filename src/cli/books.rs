//! `instance` and `job` as text.

use super::output::Show;
use super::table::{Sheet, Table, printable_lines};
use crate::model::{Fault, FaultKind, InstanceUuid, Job};
use crate::service::api::{ClaimView, InstanceView};
use crate::text::utc;

impl Show for Vec<InstanceView> {
    fn text(&self) -> String {
        let mut table = Table::new(&["UUID", "NAME", "DEVICE", "TYPE", "PARENT", "STATE"]);
        for instance in self {
            let mut head = vec![instance.uuid.to_string(), instance.name.clone()];
            if instance.claims.is_empty() {
                head.resize(6, String::new());
                table.row(head);
                continue;
            }
            for claim in &instance.claims {
                let mut cells = head.clone();
                cells.extend([claim.address.clone().unwrap_or_else(|| claim.uuid.to_string())]);
                cells.extend([claim.type_name.clone(), claim.parent.to_string(), claim.state.to_string()]);
                table.row(cells);
            }
        }
        table.to_string()
    }
}

impl Show for InstanceView {
    fn text(&self) -> String {
        let mut sheet = Sheet::default();
        sheet.line("uuid", self.uuid.to_string());
        sheet.line("name", &self.name);
        sheet.line("owner", self.owner.to_string());
        sheet.line("flavor", self.flavor.as_deref().unwrap_or_default());
        if let Some(moving) = &self.moving {
            let peer = self.peer.as_ref().map(|peer| format!(", {peer}")).unwrap_or_default();
            sheet.line("moving", format!("{moving}{peer}"));
        }
        format!("{sheet}\n{}", claims(&self.claims))
    }
}

/// Devices of an instance.
pub(super) fn claims(list: &[ClaimView]) -> Table {
    let mut table = Table::new(&["DEVICE", "TYPE ID", "TYPE", "PARENT", "TRAIT", "STATE", "ROLE"]);
    for claim in list {
        table.row(vec![
            claim.address.clone().unwrap_or_else(|| claim.uuid.to_string()),
            claim.mdev_type.to_string(),
            claim.type_name.clone(),
            claim.parent.to_string(),
            claim.trait_name.as_ref().map(ToString::to_string).unwrap_or_default(),
            claim.state.to_string(),
            claim.role.to_string(),
        ]);
    }
    table
}

impl Show for Vec<Job> {
    fn text(&self) -> String {
        let mut table = Table::new(&["ID", "OPERATION", "INSTANCE", "STATE", "STEPS", "STEP", "BEGAN"]);
        for job in self {
            table.row(vec![
                job.id.to_string(),
                job.op.to_string(),
                job.instance.to_string(),
                job.state.to_string(),
                steps(job),
                job.step.clone(),
                utc(job.created_usec),
            ]);
        }
        table.to_string()
    }
}

impl Show for Job {
    fn text(&self) -> String {
        let mut sheet = Sheet::default();
        sheet.line("id", self.id.to_string());
        sheet.line("operation", self.op.to_string());
        sheet.line("instance", self.instance.to_string());
        sheet.line("state", self.state.to_string());
        sheet.line("steps", steps(self));
        sheet.line("step", &self.step);
        sheet.line("began", utc(self.created_usec));
        let mut text = sheet.to_string();
        if let Some(result) = &self.result {
            let shown = serde_json::to_string_pretty(result).unwrap_or_default();
            text += &format!("\nResult:\n{}\n", printable_lines(&shown));
        }
        text
    }
}

fn steps(job: &Job) -> String {
    format!("{}/{}", job.steps_done, job.steps_total)
}

/// The instance of a name or a UUID.
///
/// # Errors
/// `NoSuchInstance`, or `InvalidRequest` if several have the name.
pub fn find_instance(instances: Vec<InstanceView>, wanted: &str) -> Result<InstanceView, Fault> {
    let uuid: Option<InstanceUuid> = wanted.parse().ok();
    let mut fits: Vec<InstanceView> =
        instances.into_iter().filter(|view| Some(view.uuid) == uuid || view.name == wanted).collect();
    let shown = wanted.escape_debug();
    match (fits.pop(), fits.is_empty()) {
        (Some(one), true) => Ok(one),
        (Some(_), false) => {
            let message = format!("{} instances are called {shown}: give the UUID", fits.len() + 1);
            Err(Fault::new(FaultKind::InvalidRequest, message))
        }
        (None, _) => {
            let message = format!("no instance {shown}; mdevirtctl instance list shows those in the books");
            Err(Fault::new(FaultKind::NoSuchInstance, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(uuid: &str, name: &str) -> InstanceView {
        InstanceView {
            uuid: uuid.parse().unwrap(),
            name: name.to_owned(),
            owner: crate::model::DomainOwner::Mdevirt,
            flavor: None,
            moving: None,
            new_flavor: None,
            peer: None,
            claims: Vec::new(),
        }
    }

    #[test]
    fn an_instance_is_found_by_either_name_and_never_guessed() {
        let (a, b) = ("11111111-2222-4333-8444-555555555555", "21111111-2222-4333-8444-555555555555");
        let all = || vec![instance(a, "one"), instance(b, "two"), instance(b, "two")];
        assert_eq!(find_instance(all(), "one").unwrap().name, "one");
        assert_eq!(find_instance(all(), &a.replace('-', "").to_uppercase()).unwrap().name, "one");
        assert_eq!(find_instance(all(), "two").unwrap_err().kind, FaultKind::InvalidRequest);
        assert_eq!(find_instance(all(), "three").unwrap_err().kind, FaultKind::NoSuchInstance);
    }
}
