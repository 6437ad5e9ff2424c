//! Whole files: read with a bound, written so that a reader sees the old text or the new one.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::ConfigError;

/// The text of at most `limit` bytes, or `None` if there is no such file. A link to nowhere is an error: somebody meant
/// a file to be there.
///
/// # Errors
/// It cannot be read, is larger, or is not UTF-8.
pub fn read_file(path: &Path, limit: usize) -> Result<Option<String>, ConfigError> {
    let origin = path.display().to_string();
    let bytes = match read_bounded(path, limit) {
        Ok(bytes) => bytes,
        Err(err) if err.kind() == ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => {
            return Ok(None);
        }
        Err(err) => return Err(ConfigError::unreadable(path, &err)),
    };
    if bytes.len() > limit {
        return Err(ConfigError::too_large(&origin, limit));
    }
    String::from_utf8(bytes).map(Some).map_err(|err| {
        let good = err.utf8_error().valid_up_to();
        let line = err.as_bytes().iter().take(good).filter(|b| **b == b'\n').count() + 1;
        ConfigError { line: u32::try_from(line).ok(), ..ConfigError::file(&origin, "not UTF-8 text") }
    })
}

fn read_bounded(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let more = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    File::open(path)?.take(more).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Puts a text in place of what the file held; it is on disk when this returns. A new file has mode 0644, an existing
/// one keeps owner and mode, and a link is followed.
///
/// # Errors
/// Whatever fails on the way; the file is then as it was.
pub fn write_file(path: &Path, text: &str) -> io::Result<()> {
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(err) if err.kind() == ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => {
            path.to_owned()
        }
        Err(err) => return Err(err),
    };
    let directory = match target.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Err(ErrorKind::IsADirectory.into()),
    };
    let beside = directory.join(temporary_name(&target));
    let written = fill(&beside, &target, text).and_then(|()| fs::rename(&beside, &target));
    if written.is_err() {
        // It may not have been made at all; what is said is why the writing failed.
        let _ = fs::remove_file(&beside);
    }
    written.and_then(|()| File::open(directory)?.sync_all())
}

fn fill(beside: &Path, target: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(beside)?;
    file.write_all(text.as_bytes())?;
    let mode = match fs::metadata(target) {
        Ok(before) => {
            let made = file.metadata()?;
            if (before.uid(), before.gid()) != (made.uid(), made.gid()) {
                fchown(&file, Some(before.uid()), Some(before.gid()))?;
            }
            before.mode() & 0o7777
        }
        Err(err) if err.kind() == ErrorKind::NotFound => 0o644,
        Err(err) => return Err(err),
    };
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

/// A hidden name that no other writer has; one that a crash left behind is in nobody's way.
fn temporary_name(target: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}-{count}.new", std::process::id()));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<OsString> {
        let mut names: Vec<OsString> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_made_and_replaced_with_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("traits.lock");
        write_file(&file, "one").unwrap();
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o644);
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        write_file(&file, "two").unwrap();
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o640);
        assert_eq!(read_file(&file, 3).unwrap().as_deref(), Some("two"));
        assert_eq!(names(dir.path()), ["traits.lock"]);
    }

    #[test]
    fn a_link_stays_and_its_target_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        std::os::unix::fs::symlink("real", &link).unwrap();
        assert!(write_file(&link, "x").is_err(), "a link to nowhere");
        write_file(&real, "one").unwrap();
        write_file(&link, "two").unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "two");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn a_failed_write_leaves_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let taken = dir.path().join("taken");
        fs::create_dir(&taken).unwrap();
        fs::write(taken.join("inside"), "x").unwrap();
        assert!(write_file(&taken, "x").is_err());
        assert_eq!(names(dir.path()), ["taken"]);
        assert!(write_file(&dir.path().join("missing/file"), "x").is_err());
        assert!(write_file(Path::new("/"), "x").is_err());
        assert!(write_file(Path::new(""), "x").is_err());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        assert_eq!(read_file(&file, 8).unwrap(), None);
        write_file(&file, "123456789").unwrap();
        assert!(read_file(&file, 8).unwrap_err().text.starts_with("larger than the 8 bytes"));
        fs::write(&file, b"a\n\xff").unwrap();
        assert_eq!(read_file(&file, 8).unwrap_err().line, Some(2));
        assert!(read_file(dir.path(), 8).unwrap_err().text.starts_with("cannot be read"));
    }
}
