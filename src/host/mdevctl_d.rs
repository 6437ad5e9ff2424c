//! mdevctl's stored definitions, `/etc/mdevctl.d/<parent>/<uuid>`, below a root directory. Rank 2.
//!
//! 1. libvirt lists definitions through mdevctl, whose listing ends at the first file that it cannot parse, without naming
//!    it. The files are read here to name the bad ones and to see what such a listing leaves out.
//! 2. No file is ever rewritten. One kind of file is removed: a definition of ours whose UUID a second parent defines
//!    too; libvirt's undefine hands mdevctl the UUID alone and both would go.
//! 3. Names read from the directory become path components only after they parsed as what they must be.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::HostError;
use super::sysfs::is_kernel_name_of;
use crate::model::{Finding, FindingKind, Mdev, MdevUuid, NodeName, ParentAddr, TypeId};

/// A definition holds a type, a word and a few attributes.
const FILE_LIMIT: u64 = 64 * 1024;
/// Far more than any host can have.
const COUNT_LIMIT: usize = 65_536;

/// The directory of definitions.
#[derive(Debug, Clone)]
pub struct MdevctlDir {
    root: PathBuf,
}

/// One stored definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Its UUID; with `parent` the key.
    pub uuid: MdevUuid,
    /// The kernel's name of its parent, which is the name of its directory.
    pub parent: String,
    /// Its type; `None` if the file is malformed, so that it cannot be used.
    pub type_id: Option<TypeId>,
}

/// All stored definitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Definitions {
    /// One for each file, in the order of (parent, uuid).
    pub all: Vec<Definition>,
    /// Each malformed file with its path and the reason.
    pub findings: Vec<Finding>,
}

#[derive(Deserialize)]
struct Stored {
    mdev_type: String,
    #[serde(default)]
    attrs: Vec<serde_json::Map<String, serde_json::Value>>,
}

impl MdevctlDir {
    /// The definitions below `root`; there need not be any.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Whether mdevctl keeps definitions here at all.
    pub fn exists(&self) -> bool {
        self.root.join("etc/mdevctl.d").is_dir()
    }

    /// Reads every definition. What is no directory of a parent or has no UUID for a name is passed over: mdevctl keeps
    /// scripts there too, and operators notes.
    ///
    /// # Errors
    /// `Unreadable` if a directory cannot be listed or has too many files; a malformed file is a finding.
    pub fn read(&self) -> Result<Definitions, HostError> {
        let mut all = Definitions::default();
        for parent in names_in(&self.root.join("etc/mdevctl.d"))? {
            if parent.parse::<NodeName>().is_err() || parent == "scripts.d" {
                continue;
            }
            for name in names_in(&self.directory(&parent))? {
                let Ok(uuid) = name.parse::<MdevUuid>() else { continue };
                if all.all.len() == COUNT_LIMIT {
                    return Err(HostError::Unreadable {
                        what: "/etc/mdevctl.d".to_owned(),
                        why: format!("it has more than {COUNT_LIMIT} definitions"),
                    });
                }
                let type_id = read_one(&self.directory(&parent).join(&name));
                all.findings.extend(type_id.as_ref().err().map(|why| bad_file(&parent, &name, why)));
                all.all.push(Definition { uuid, parent: parent.clone(), type_id: type_id.ok() });
            }
        }
        Ok(all)
    }

    fn parents_of(&self, uuid: MdevUuid) -> Result<Vec<String>, HostError> {
        let mut parents = Vec::new();
        for parent in names_in(&self.root.join("etc/mdevctl.d"))? {
            if parent.parse::<NodeName>().is_ok() && self.has_file(&parent, uuid)? {
                parents.push(parent);
            }
        }
        Ok(parents)
    }

    /// The definitions of this UUID, good or malformed, in the order of their parents.
    ///
    /// # Errors
    /// `Unreadable`.
    pub fn of(&self, uuid: MdevUuid) -> Result<Vec<Definition>, HostError> {
        let with_type = |parent: String| {
            let type_id = read_one(&self.directory(&parent).join(uuid.to_string())).ok();
            Definition { uuid, parent, type_id }
        };
        Ok(self.parents_of(uuid)?.into_iter().map(with_type).collect())
    }

    /// Removes the definition under this parent only; one that is not there is no error. The removal is on disk when
    /// this returns.
    ///
    /// # Errors
    /// `Unreadable`, `Refused`.
    pub fn remove(&self, uuid: MdevUuid, parent: &ParentAddr) -> Result<(), HostError> {
        for name in self.parents_of(uuid)?.iter().filter(|name| is_kernel_name_of(name, parent)) {
            let directory = self.directory(name);
            let removed = fs::remove_file(directory.join(uuid.to_string()))
                .and_then(|()| File::open(&directory))
                .and_then(|directory| directory.sync_all());
            removed.map_err(|err| {
                HostError::Refused(format!("cannot remove /etc/mdevctl.d/{name}/{uuid}: {err}"))
            })?;
        }
        Ok(())
    }

    fn directory(&self, parent: &str) -> PathBuf {
        self.root.join("etc/mdevctl.d").join(parent)
    }

    fn has_file(&self, parent: &str, uuid: MdevUuid) -> Result<bool, HostError> {
        let path = self.directory(parent).join(uuid.to_string());
        match fs::symlink_metadata(&path) {
            Ok(_) => Ok(true),
            Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
            Err(err) => Err(unreadable(&path, &err)),
        }
    }
}

impl Definition {
    /// Whether this is the definition of that device.
    pub fn is_of(&self, mdev: &Mdev) -> bool {
        mdev.uuid == self.uuid && is_kernel_name_of(&self.parent, &mdev.parent)
    }
}

/// The type of a definition, or why it is none.
fn read_one(path: &Path) -> Result<TypeId, String> {
    let mut text = Vec::new();
    File::open(path)
        .and_then(|f| f.take(FILE_LIMIT + 1).read_to_end(&mut text))
        .map_err(|err| err.to_string())?;
    if text.len() as u64 > FILE_LIMIT {
        return Err(format!("it is longer than {FILE_LIMIT} bytes"));
    }
    parse(&text)
}

/// # Source
/// mdevctl's file format: `{"mdev_type": .., "start": .., "attrs": [{name: value}, ..]}`; values are strings.
fn parse(text: &[u8]) -> Result<TypeId, String> {
    let stored: Stored = serde_json::from_slice(text).map_err(|err| err.to_string())?;
    for (name, value) in stored.attrs.iter().flatten() {
        if !name.split('/').all(|part| part.parse::<NodeName>().is_ok()) {
            return Err(format!("attribute {name:?} is no path below the device"));
        }
        if !value.is_string() {
            return Err(format!("attribute {name:?} has a value that is no text"));
        }
    }
    stored.mdev_type.parse::<TypeId>().map_err(|err| err.to_string())
}

fn bad_file(parent: &str, name: &str, why: &str) -> Finding {
    Finding::new(
        FindingKind::MalformedInput,
        format!("/etc/mdevctl.d/{parent}/{name}"),
        format!("{why}; it is left as it is: repair or remove it, then restart libvirtd"),
    )
}

/// Entries in text order, without those whose name is not UTF-8; none if it is no directory.
fn names_in(path: &Path) -> Result<Vec<String>, HostError> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(err) => return Err(unreadable(path, &err)),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry.map_err(|err| unreadable(path, &err))?.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}

fn unreadable(path: &Path, err: &std::io::Error) -> HostError {
    HostError::Unreadable { what: path.display().to_string(), why: err.to_string() }
}
