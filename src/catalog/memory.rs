//! What the operator's words meant so far on each parent.

use std::collections::BTreeMap;

use crate::model::{Lesson, Meaning, ParentAddr, Word};

/// Every meaning that is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    by_word: BTreeMap<Word, BTreeMap<ParentAddr, Meaning>>,
}

impl Memory {
    /// From what the books hold.
    pub fn new(meanings: impl IntoIterator<Item = Meaning>) -> Self {
        let mut memory = Self::default();
        meanings.into_iter().for_each(|meaning| memory.put(meaning));
        memory
    }

    /// What a word meant on one parent.
    pub fn on(&self, word: &Word, parent: &ParentAddr) -> Option<&Meaning> {
        self.by_word.get(word)?.get(parent)
    }

    /// What a word meant, parent by parent.
    pub fn of(&self, word: &Word) -> impl Iterator<Item = &Meaning> {
        self.by_word.get(word).into_iter().flat_map(BTreeMap::values)
    }

    /// Every word with a meaning.
    pub fn words(&self) -> impl Iterator<Item = &Word> {
        self.by_word.keys()
    }

    /// The memory after a lesson.
    pub fn after(&self, lesson: &Lesson) -> Self {
        let mut memory = self.clone();
        for word in &lesson.forgotten {
            memory.by_word.remove(word);
        }
        lesson.meanings.iter().for_each(|meaning| memory.put(meaning.clone()));
        memory
    }

    fn put(&mut self, meaning: Meaning) {
        self.by_word.entry(meaning.word.clone()).or_default().insert(meaning.parent.clone(), meaning);
    }
}
