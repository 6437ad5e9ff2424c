//! The configuration and the traits applied to one look at the host.

use super::observe::Observation;
use super::settings::Settings;
use crate::catalog::TraitState;
use crate::catalog::memory::Memory;
use crate::catalog::resolve::{Resolution, resolve};
use crate::model::{Finding, FindingKind, Lesson, Word, WordKind};
use crate::plan::capacity::{Booked, ParentCapacity, capacity};
use crate::plan::mapping::{Mapping, assign};
use crate::plan::traits::add_traits;

/// What an [`Observation`] means under given settings.
#[derive(Debug)]
pub(super) struct Picture<'a> {
    /// Which type each parent has.
    pub(super) mapping: Mapping<'a>,
    /// What each parent has and can give, traits and quarantine included.
    pub(super) capacity: Vec<ParentCapacity<'a>>,
    /// Where each trait stands.
    pub(super) resolution: Resolution,
    /// What is new about the words of configuration and catalog.
    pub(super) lesson: Lesson,
}

impl Observation {
    /// Applies settings to this look.
    pub(super) fn picture<'a>(&'a self, settings: &'a Settings) -> Picture<'a> {
        let mut mapping = assign(&settings.config, &self.scan, &self.memory);
        let mut lesson = std::mem::take(&mut mapping.lesson);
        let resolution =
            resolve(&settings.catalog, &settings.locked(), &self.memory, &self.scan, &mut lesson);
        let booked = Booked { claims: &self.claims, own: &self.own };
        let mut capacity = capacity(&mapping, &self.scan, booked);
        add_traits(&mut capacity, &resolution, &settings.config.automatic);
        lesson.forgotten.extend(forgotten(&self.memory, settings));
        Picture { mapping, capacity, resolution, lesson }
    }
}

/// Words that neither the configuration nor the catalog has any more.
fn forgotten(memory: &Memory, settings: &Settings) -> Vec<Word> {
    let named = |word: &&Word| match word.kind {
        WordKind::Type => settings.config.enabled.iter().any(|rule| rule.key == word.text),
        WordKind::Trait => settings.catalog.bindings.keys().any(|name| name.as_str() == word.text),
    };
    memory.words().filter(|word| !named(word)).cloned().collect()
}

impl Picture<'_> {
    /// What an operator should see of configuration and traits.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let traits = self.resolution.iter().filter_map(|(name, resolved)| {
            let kind = match resolved.state {
                TraitState::Ok if resolved.reason.is_empty() => return None,
                TraitState::Ok => FindingKind::ConfigWarning,
                TraitState::Drift | TraitState::Ambiguous => FindingKind::Conflict,
                TraitState::Unavailable => FindingKind::ConfigWarning,
            };
            Some(Finding::new(kind, name.as_str(), resolved.reason.clone()))
        });
        self.mapping.findings.iter().cloned().chain(traits).collect()
    }
}
