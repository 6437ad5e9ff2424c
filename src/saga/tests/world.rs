//! A host of files, which outlive a crash, and an operation on it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::model::{ClaimEvent, Fault, FaultKind, OpKind};
use crate::saga::{Part, Script, Seen, Step, StepError};
use crate::store::Change;
use crate::store::tests::fixture::{claim, device, instance_uuid};

/// The steps of the operation, and the one after which there is no return.
pub(super) const STEPS: [&str; 5] = ["create_device.0", "create_device.1", "define", "start", "publish"];
pub(super) const POINT: usize = 3;

/// Effects are files.
#[derive(Debug)]
pub(super) struct World {
    dir: PathBuf,
    /// The host cannot be reached.
    pub(super) away: AtomicBool,
    /// Overrides what a look says, once.
    pub(super) next_seen: Mutex<HashMap<String, Seen>>,
    /// Every call, in order.
    pub(super) log: Mutex<Vec<String>>,
}

impl World {
    pub(super) fn new(dir: &Path) -> Self {
        std::fs::create_dir_all(dir).unwrap();
        Self {
            dir: dir.to_owned(),
            away: AtomicBool::new(false),
            next_seen: Mutex::default(),
            log: Mutex::default(),
        }
    }

    pub(super) fn effects(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.dir).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_by_key(|name| STEPS.iter().position(|step| step == name));
        names
    }

    pub(super) fn put(&self, key: &str, owner: &str) {
        std::fs::write(self.dir.join(key), owner).unwrap();
    }

    pub(super) fn count(&self, call: &str) -> usize {
        self.log.lock().unwrap().iter().filter(|line| *line == call).count()
    }

    fn call(&self, what: &str, key: &str) -> Result<(), StepError> {
        self.log.lock().unwrap().push(format!("{what} {key}"));
        if self.away.load(Ordering::Relaxed) {
            return Err(StepError::Unknown("the host is away".into()));
        }
        Ok(())
    }

    fn owner(&self, key: &str) -> Option<String> {
        std::fs::read_to_string(self.dir.join(key)).ok()
    }
}

#[derive(Debug)]
pub(super) struct FakeStep {
    pub(super) world: Arc<World>,
    pub(super) name: &'static str,
    pub(super) part: Option<Part>,
    pub(super) done: Vec<Change>,
    pub(super) undone: Vec<Change>,
}

impl FakeStep {
    fn key(&self) -> String {
        self.part.map_or_else(|| self.name.to_owned(), |part| format!("{}.{}", self.name, part.index))
    }
}

#[async_trait]
impl Step for FakeStep {
    fn name(&self) -> &'static str {
        self.name
    }

    fn part(&self) -> Option<Part> {
        self.part
    }

    async fn seen(&self) -> Result<Seen, StepError> {
        let key = self.key();
        self.world.call("seen", &key)?;
        if let Some(seen) = self.world.next_seen.lock().unwrap().remove(&key) {
            return Ok(seen);
        }
        Ok(match self.world.owner(&key).as_deref() {
            None => Seen::Absent,
            Some("ours") => Seen::Done(json!(key)),
            Some(other) => Seen::Foreign(format!("{key} belongs to {other}")),
        })
    }

    async fn run(&self) -> Result<Value, StepError> {
        let key = self.key();
        self.world.call("run", &key)?;
        match self.world.owner(&key).as_deref() {
            None | Some("ours") => {
                self.world.put(&key, "ours");
                Ok(json!(key))
            }
            Some(_) => Err(Fault::new(FaultKind::HostRefused, format!("{key} is taken")).into()),
        }
    }

    async fn undo(&self, out: Option<&Value>) -> Result<(), StepError> {
        let key = self.key();
        self.world.call("undo", &key)?;
        assert_eq!(out, Some(&json!(key)), "an undo is given what the step returned");
        assert_ne!(self.world.owner(&key).as_deref(), Some("others"), "{key} is not ours");
        let _ = std::fs::remove_file(self.world.dir.join(&key));
        Ok(())
    }

    fn done_changes(&self, out: &Value) -> Vec<Change> {
        assert_eq!(out, &json!(self.key()));
        self.done.clone()
    }

    fn undone_changes(&self) -> Vec<Change> {
        self.undone.clone()
    }
}

fn claim_moves(n: u32, event: ClaimEvent) -> Change {
    Change::Claim { claim: claim(1, n).id, event }
}

/// Two devices, a domain with them, a word about it.
pub(super) fn script(world: &Arc<World>) -> Script {
    let step = |name, part, done, undone| -> Box<dyn Step> {
        Box::new(FakeStep { world: Arc::clone(world), name, part, done, undone })
    };
    let create = |n: u32| {
        let part = Some(Part { index: n, of: 2 });
        let undone = vec![claim_moves(n, ClaimEvent::Uncreated)];
        step("create_device", part, vec![claim_moves(n, ClaimEvent::Created)], undone)
    };
    let both = |event| vec![claim_moves(0, event), claim_moves(1, event)];
    let steps = vec![
        create(0),
        create(1),
        step("define", None, vec![], vec![]),
        // Never done and undone: its way back would spoil that of the devices.
        step("start", None, both(ClaimEvent::Started), both(ClaimEvent::Stopped)),
        step("publish", None, vec![], vec![]),
    ];
    let mut script = Script::new(OpKind::Spawn, 1, steps);
    script.point_of_no_return = Some(POINT);
    script.on_failed = [0, 1].into_iter().flat_map(release).collect();
    script.on_failed.push(Change::InstanceGone(instance_uuid(1)));
    script.result = Box::new(|outs| json!({ "made": outs }));
    script
}

pub(super) fn release(n: u32) -> [Change; 3] {
    let device = device(n);
    [
        claim_moves(n, ClaimEvent::Release),
        Change::ClaimGone(claim(1, n).id),
        Change::DeviceForgotten { uuid: device.uuid, parent: device.parent },
    ]
}
