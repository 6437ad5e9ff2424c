//! What callers ask about traits: the list, the lock, the check against it, acceptance, export.

use std::collections::{BTreeMap, BTreeSet};

use super::Service;
use super::api::{
    AcceptRequest, Change, CheckDifference, LeftOut, LocalType, LockView, TraitCheck, TraitView,
};
use super::settings::Settings;
use crate::catalog::accept::{AcceptError, Wish, accept_trait, accept_type};
use crate::catalog::resolve::{Resolution, Resolved};
use crate::catalog::{Acceptance, Export, Lock, TraitState};
use crate::model::{Fault, FaultKind, Lesson, TraitName, TypeIdentity, Word};
use crate::text::write_file;

impl Service {
    pub(super) async fn list_traits(&self) -> Result<Vec<TraitView>, Fault> {
        let (settings, seen) = (self.settings.now(), self.observe().await?);
        let picture = seen.picture(&settings);
        let locked = settings.locked();
        let mut views = Vec::new();
        for (name, resolved) in &picture.resolution {
            let history = self.store.shifts(&Word::of_trait(name))?;
            let bound = settings.catalog.bindings.get(name).map(|b| b.type_key.clone());
            let known = resolved.identity.as_ref().map(|identity| identity.label().to_owned());
            views.push(TraitView {
                name: name.clone(),
                type_name: known.or(bound).unwrap_or_default(),
                identity: resolved.identity.clone(),
                local_types: local_types(resolved),
                state: resolved.state,
                reason: resolved.reason.clone(),
                locked: locked.contains_key(name),
                history: history.into_iter().map(Into::into).collect(),
            });
        }
        Ok(views)
    }

    /// Writes the lock: what is locked stays as it is, what is not and stands well is added.
    pub(super) async fn write_lock(&self) -> Result<LockView, Fault> {
        let _one_at_a_time = self.booking.lock().await;
        let (settings, seen) = (self.settings.now(), self.observe().await?);
        let picture = seen.picture(&settings);
        let (pinned, left_out) = to_pin(&settings, &picture.resolution);
        let lock = Lock::of(settings.lock.as_ref(), &pinned);
        self.put_lock(&settings, &lock)?;
        Ok(view(&settings, &lock, left_out))
    }

    fn put_lock(&self, settings: &Settings, lock: &Lock) -> Result<(), Fault> {
        if settings.lock.as_ref() == Some(lock) {
            return Ok(());
        }
        let path = &settings.config.traits_lock;
        write_file(path, &lock.to_string()).map_err(|err| {
            let text = format!("write {}: {err}; nothing was changed", path.display());
            Fault::new(FaultKind::StoreUnavailable, text)
        })?;
        self.settings.take_lock(lock.clone());
        tracing::info!(revision = lock.revision, traits = lock.traits.len(), "the lock of traits is written");
        self.tell(Change::Inventory);
        Ok(())
    }

    pub(super) async fn check_traits(&self) -> Result<TraitCheck, Fault> {
        let (settings, seen) = (self.settings.now(), self.observe().await?);
        let picture = seen.picture(&settings);
        let locked = settings.locked();
        let mut differences: Vec<CheckDifference> = picture
            .resolution
            .iter()
            .filter_map(|(name, resolved)| difference(name, resolved, settings.lock.as_ref()))
            .collect();
        let unbound = locked.iter().filter(|(name, _)| !settings.catalog.bindings.contains_key(*name));
        differences.extend(unbound.map(|(name, identity)| CheckDifference {
            name: name.clone(),
            state: TraitState::Unavailable,
            locked: Some(identity.clone()),
            found: Vec::new(),
            reason: format!("the lock pins {name}, and traits.toml of this host does not have it"),
        }));
        differences.sort_by(|a, b| a.name.cmp(&b.name));
        let (_, left_out) = to_pin(&settings, &picture.resolution);
        let lock = settings.lock.as_ref().map(|lock| view(&settings, lock, left_out));
        Ok(TraitCheck { agree: differences.is_empty(), lock, differences })
    }

    /// The lock is written before the books: what is accepted there is found again by the next look, whatever ends in between.
    pub(super) async fn accept(&self, request: AcceptRequest) -> Result<Vec<TraitView>, Fault> {
        if request.reason.trim().is_empty() {
            let text =
                format!("accept {}: give a reason, it is kept in the history", request.word.escape_debug());
            return Err(Fault::new(FaultKind::InvalidRequest, text));
        }
        let _one_at_a_time = self.booking.lock().await;
        let (settings, seen) = (self.settings.now(), self.observe().await?);
        let picture = seen.picture(&settings);
        let wish = Wish { parent: request.parent.as_ref(), reason: request.reason.trim() };
        let name = request.word.parse::<TraitName>().ok();
        let bound = name.and_then(|name| settings.catalog.bindings.get_key_value(&name));
        let lesson = match bound {
            Some((name, binding)) => {
                let resolved = &picture.resolution[name];
                let around = (&*seen.memory, &seen.scan);
                let taken =
                    accept_trait(name, binding, resolved, wish, around).map_err(|err| refusal(&err))?;
                self.accept_in_lock(&settings, name, &taken.0, wish.reason)?;
                taken.1
            }
            None if settings.config.enabled.iter().any(|rule| rule.key == request.word) => {
                accept_type(&request.word, wish, &seen.memory, &seen.scan).map_err(|err| refusal(&err))?
            }
            None => {
                let text = format!("accept {:?}: it is neither a trait nor an enabled type", request.word);
                return Err(Fault::new(FaultKind::TraitUnmapped, text));
            }
        };
        self.write_accepted(&lesson, &seen)?;
        self.list_traits().await
    }

    fn write_accepted(&self, lesson: &Lesson, seen: &super::observe::Observation) -> Result<(), Fault> {
        if !self.keep(lesson, &seen.memory)? {
            let text = "what the types of this host mean changed in this moment; look and accept again";
            return Err(Fault::new(FaultKind::InstanceBusy, text));
        }
        self.tell(Change::Inventory);
        self.tell(Change::Status);
        Ok(())
    }

    fn accept_in_lock(
        &self,
        settings: &Settings,
        name: &TraitName,
        identity: &TypeIdentity,
        reason: &str,
    ) -> Result<(), Fault> {
        let locked = settings.lock.as_ref().filter(|lock| lock.traits.contains_key(name));
        let Some(lock) = locked.filter(|lock| lock.traits[name].identity != *identity) else { return Ok(()) };
        let how = Acceptance { reason, at: self.clock.now_usec(), by: Some(&self.host_name) };
        self.put_lock(settings, &lock.accept(name, identity, how)?)
    }

    pub(super) async fn export_traits(&self) -> Result<String, Fault> {
        let (settings, seen) = (self.settings.now(), self.observe().await?);
        let picture = seen.picture(&settings);
        let traits: BTreeMap<TraitName, (TraitState, Option<TypeIdentity>)> = picture
            .resolution
            .iter()
            .map(|(name, resolved)| (name.clone(), (resolved.state, resolved.identity.clone())))
            .collect();
        let export = Export::of(&self.host_name, settings.lock.as_ref(), &traits);
        let text = serde_json::to_string_pretty(&export);
        text.map(|text| text + "\n").map_err(|err| Fault::new(FaultKind::Internal, err.to_string()))
    }
}

fn refusal(err: &AcceptError) -> Fault {
    let kind = match err {
        AcceptError::NotDrifted(..) | AcceptError::Several { .. } => FaultKind::InvalidRequest,
        AcceptError::NotThere { .. } => FaultKind::NoSuchParent,
    };
    Fault::new(kind, err.to_string())
}

/// What a lock pins, and what it leaves out with the reason. A locked trait stays, however it stands here.
fn to_pin(settings: &Settings, resolution: &Resolution) -> (BTreeMap<TraitName, TypeIdentity>, Vec<LeftOut>) {
    let (mut pinned, mut left_out) = (settings.locked(), Vec::new());
    pinned.retain(|name, _| settings.catalog.bindings.contains_key(name));
    for (name, resolved) in resolution.iter().filter(|(name, _)| !settings.locked().contains_key(*name)) {
        match (&resolved.identity, resolved.state) {
            (Some(identity), TraitState::Ok) => {
                pinned.insert(name.clone(), identity.clone());
            }
            (Some(_) | None, _) => {
                left_out.push(LeftOut { name: name.clone(), reason: resolved.reason.clone() });
            }
        }
    }
    (pinned, left_out)
}

fn view(settings: &Settings, lock: &Lock, left_out: Vec<LeftOut>) -> LockView {
    LockView {
        path: settings.config.traits_lock.clone(),
        revision: lock.revision,
        digest: lock.digest().to_string(),
        traits: lock.traits.len(),
        left_out,
    }
}

fn difference(name: &TraitName, resolved: &Resolved, lock: Option<&Lock>) -> Option<CheckDifference> {
    let locked = lock.and_then(|lock| lock.traits.get(name)).map(|locked| locked.identity.clone());
    let reason = match (resolved.state, &locked) {
        (TraitState::Ok, Some(_)) => return None,
        (TraitState::Ok, None) if lock.is_none() => return None,
        (TraitState::Ok, None) => format!("{name} is not in the lock; add it with `mdevirtctl trait lock`"),
        (TraitState::Drift | TraitState::Unavailable | TraitState::Ambiguous, _) => resolved.reason.clone(),
    };
    let found: BTreeSet<TypeIdentity> = resolved.instead.values().cloned().collect();
    let found = found.into_iter().collect();
    Some(CheckDifference { name: name.clone(), state: resolved.state, locked, found, reason })
}

fn local_types(resolved: &Resolved) -> Vec<LocalType> {
    let local = |(parent, id): (&crate::model::ParentAddr, &crate::model::TypeId)| LocalType {
        parent: parent.clone(),
        id: id.clone(),
    };
    resolved.local.iter().map(local).collect()
}
