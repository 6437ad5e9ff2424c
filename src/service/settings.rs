//! The configuration in force, and how it is replaced.
//!
//! A file that does not parse or check leaves the running configuration in force; the caller gets the error.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use crate::catalog::{Catalog, Lock};
use crate::config::{self, Config, ConfigErrors, Loaded};
use crate::model::{Finding, TraitName, TypeIdentity};

/// A checked configuration with the warnings of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The configuration.
    pub config: Config,
    /// What in the files has no effect.
    pub warnings: Vec<Finding>,
    /// Traits.
    pub catalog: Catalog,
    /// The lock, if there is one.
    pub lock: Option<Lock>,
}

impl Settings {
    /// The identity that each locked trait is pinned to.
    pub fn locked(&self) -> BTreeMap<TraitName, TypeIdentity> {
        self.lock.as_ref().map(Lock::identities).unwrap_or_default()
    }
}

impl Settings {
    /// Reads the traits that a configuration names.
    ///
    /// # Errors
    /// Everything that is wrong with the traits, or with the lock.
    pub fn new(loaded: Loaded) -> Result<Self, ConfigErrors> {
        let Loaded { config, warnings, .. } = loaded;
        let catalog = Catalog::load(&config.traits_file)?;
        let lock = Lock::load(&config.traits_lock)?;
        Ok(Self { config, warnings, catalog, lock })
    }
}

/// Holds the settings in force.
#[derive(Debug)]
pub struct SettingsCell {
    path: PathBuf,
    now: RwLock<Arc<Settings>>,
}

impl SettingsCell {
    /// Reads the files for the first time.
    ///
    /// # Errors
    /// All errors of the files together.
    pub fn load(path: PathBuf) -> Result<Self, ConfigErrors> {
        let settings = Settings::new(config::load(&path)?)?;
        Ok(Self { path, now: RwLock::new(Arc::new(settings)) })
    }

    /// The settings in force.
    pub fn now(&self) -> Arc<Settings> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Has another lock in force, which is on disk already.
    pub(super) fn take_lock(&self, lock: Lock) {
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        *now = Arc::new(Settings { lock: Some(lock), ..Settings::clone(&now) });
    }

    /// What the files say now; nothing is taken over.
    ///
    /// # Errors
    /// All errors of the files together.
    pub fn read(&self) -> Result<Settings, ConfigErrors> {
        Settings::new(config::load(&self.path)?)
    }

    /// Reads the files again. `[libvirt] uri` is only taken up by a restart; changing it is a warning.
    ///
    /// # Errors
    /// All errors of the files together; the settings in force stay.
    pub fn reload(&self) -> Result<Arc<Settings>, ConfigErrors> {
        let fresh = Arc::new(self.read()?);
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&fresh);
        Ok(fresh)
    }
}
