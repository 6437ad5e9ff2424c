//! The configuration of this host: `mdevirt.toml`, then `mdevirt.toml.d/*.toml`.
//!
//! Drop-ins are read in the order of their names (bytes, so `10-` before `9-`); names that begin with a dot are
//! left out. A later file wins key by key, also inside `[mdev."X"]`; a list replaces the list before it, it is never
//! joined to it.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::model::{Finding, FindingKind};
use crate::text::{ConfigError, ConfigErrors, MAX_FILE_BYTES, Problems, read_file};

use super::check::{Checked, check};
use super::layer::Layer;
use super::{Loaded, document};

/// Most files in the drop-in directory.
const MAX_DROP_INS: usize = 1000;

/// Reads and checks a file and its drop-ins. Without any file everything is at its default, no type is enabled, and
/// a warning says so.
///
/// # Errors
/// Everything that is wrong with any of the files, or the path that cannot be read.
pub fn load(file: &Path) -> Result<Loaded, ConfigErrors> {
    let mut problems = Problems::default();
    let mut layer = Layer::default();
    let mut files = Vec::new();
    let mut missing = false;
    let paths = std::iter::once(file.to_owned()).chain(drop_ins(file, &mut problems));
    for path in paths {
        let origin = path.display().to_string();
        match read_file(&path, MAX_FILE_BYTES) {
            Ok(Some(text)) => {
                layer = layer.under(document::read(&text, &origin, &mut problems));
                files.push(path);
            }
            Ok(None) => missing |= path == file,
            Err(error) => problems.push(error),
        }
    }
    let Checked { config, mut warnings, .. } = check(layer, &file.display().to_string(), &mut problems);
    if missing {
        warnings.push(not_there(file, config.enabled.is_empty()));
    }
    problems.or(Loaded { config, warnings, files })
}

fn not_there(file: &Path, nothing_enabled: bool) -> Finding {
    let effect = if nothing_enabled { "no mdev type is enabled" } else { "its drop-ins alone are in force" };
    let text = format!("there is no {}: {effect}", file.display().to_string().escape_debug());
    Finding::new(FindingKind::ConfigWarning, file.display().to_string(), text)
}

/// The `*.toml` of the directory `FILE.d`, in order; no directory is no drop-ins.
fn drop_ins(file: &Path, problems: &mut Problems) -> Vec<PathBuf> {
    let mut dir = file.as_os_str().to_owned();
    dir.push(".d");
    match list(Path::new(&dir)) {
        Ok(paths) if paths.len() > MAX_DROP_INS => {
            let text = format!("{} files are more than the {MAX_DROP_INS} that are allowed", paths.len());
            problems.push(ConfigError::file(&dir.to_string_lossy(), text));
            Vec::new()
        }
        Ok(paths) => paths,
        Err(err) => {
            problems.push(ConfigError::unreadable(Path::new(&dir), &err));
            Vec::new()
        }
    }
}

fn list(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(err) if err.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(err) => return Err(err),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && path.extension().is_some_and(|end| end == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Etc(tempfile::TempDir);

    impl Etc {
        fn with(files: &[(&str, &str)]) -> Self {
            let etc = Self(tempfile::tempdir().unwrap());
            for (name, text) in files {
                let path = etc.0.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            etc
        }

        fn main(&self) -> PathBuf {
            self.0.path().join("m.toml")
        }

        fn load(&self) -> Result<Loaded, String> {
            let dir = format!("{}/", self.0.path().display());
            load(&self.main()).map_err(|errors| errors.to_string().replace(&dir, ""))
        }
    }

    #[test]
    fn a_later_file_wins_key_by_key() {
        let etc = Etc::with(&[
            (
                "m.toml",
                "[devices]\nenabled_mdev_types = [\"a1\", \"b1\"]\nunlisted = \"ignore\"\n[mdev.a1]\nreserved = 1\n\
                 device_addresses = [\"0000:01:00.0\", \"0000:02:00.0\"]\n",
            ),
            ("m.toml.d/20-b.toml", "[mdev.a1]\nreserved = 3\n"),
            ("m.toml.d/10-a.toml", "[mdev.a1]\nreserved = 2\ndevice_addresses = [\"0000:03:00.0\"]\n"),
            ("m.toml.d/.hidden.toml", "nonsense"),
            ("m.toml.d/10-a.toml~", "nonsense"),
        ]);
        let Loaded { config, warnings, files } = etc.load().unwrap();
        let names: Vec<_> = files.iter().filter_map(|f| f.file_name()?.to_str()).collect();
        assert_eq!(names, ["m.toml", "10-a.toml", "20-b.toml"]);
        assert_eq!(config.unlisted, super::super::Unlisted::Ignore);
        assert_eq!(config.enabled.len(), 2);
        assert_eq!(config.enabled[0].reserved, 3);
        assert_eq!(config.enabled[0].addresses, ["0000:03:00.0".parse().unwrap()]);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
    }

    #[test]
    fn errors_of_all_files_come_together() {
        let etc = Etc::with(&[
            (
                "m.toml",
                "[devices]\nenabled_mdev_types = [\"a1\", \"b1\"]\n[mdev.a1]\ndevice_addresses = [\"0000:01:00.0\"]\n",
            ),
            ("m.toml.d/1.toml", "[mdev.b1]\ndevice_addresses = [\"0000:01:00.0\"]\n"),
            ("m.toml.d/2.toml", "[mdev.b1]\nmax_instances = 0\n"),
        ]);
        fs::write(etc.0.path().join("m.toml.d/3.toml"), b"# \n# \xff\n").unwrap();
        fs::create_dir(etc.0.path().join("m.toml.d/4.toml")).unwrap();
        std::os::unix::fs::symlink("nowhere", etc.0.path().join("m.toml.d/5.toml")).unwrap();
        fs::write(etc.0.path().join("m.toml.d/6.toml"), " ".repeat(MAX_FILE_BYTES + 1)).unwrap();
        let text = etc.load().unwrap_err();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 6, "{text}");
        assert!(
            lines[0]
                .starts_with("m.toml.d/1.toml:2: mdev.\"b1\".device_addresses: 0000:01:00.0 has two types")
        );
        assert!(lines[0].contains("m.toml:4"), "{text}");
        assert!(lines[1].starts_with("m.toml.d/2.toml:2: mdev.\"b1\".max_instances"), "{text}");
        assert_eq!(lines[2], "m.toml.d/3.toml:2: not UTF-8 text");
        assert!(lines[3].starts_with("m.toml.d/4.toml: cannot be read"), "{text}");
        assert!(lines[4].starts_with("m.toml.d/5.toml: cannot be read"), "{text}");
        assert!(lines[5].starts_with("m.toml.d/6.toml: larger than"), "{text}");
    }

    #[test]
    fn no_file_is_the_default_and_is_said() {
        let Loaded { config, warnings, files } = Etc::with(&[]).load().unwrap();
        assert_eq!((config, files), (super::super::Config::default(), Vec::new()));
        assert!(warnings[0].text.ends_with("m.toml: no mdev type is enabled"), "{warnings:?}");
        let etc = Etc::with(&[("m.toml.d/a.toml", "[devices]\nenabled_mdev_types = [\"a1\"]\n")]);
        let Loaded { config, warnings, .. } = etc.load().unwrap();
        assert_eq!(config.enabled.len(), 1);
        assert!(warnings[0].text.ends_with("its drop-ins alone are in force"), "{warnings:?}");
    }

    #[test]
    fn a_drop_in_directory_that_is_none_is_named() {
        let etc = Etc::with(&[("m.toml", ""), ("m.toml.d", "")]);
        assert!(etc.load().unwrap_err().starts_with("m.toml.d: cannot be read"));
    }
}
