//! The directory of a run's results (spec/basho-bench.md §1).

use super::runner::RunError;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The link to the latest results.
const CURRENT: &str = "current";

/// `<results-dir>/<name>`, with `<results-dir>/current` pointing at it.
pub(super) struct Results {
    pub(super) dir: PathBuf,
    console: File,
}

impl Results {
    /// Makes the directory and copies the configuration into it.
    pub(super) fn create(base: &Path, name: &str, files: &[PathBuf]) -> Result<Self, RunError> {
        let dir = base.join(name);
        fs::create_dir_all(&dir).map_err(|error| failed(&dir, error))?;
        for file in files {
            let Some(name) = file.file_name() else { continue };
            let text = fs::read(file).map_err(|error| failed(file, error))?;
            let copy = dir.join(name);
            // A file that is in the directory already may be the very one that is to be copied.
            if fs::read(&copy).ok().as_ref() != Some(&text) {
                fs::write(&copy, text).map_err(|error| failed(&copy, error))?;
            }
        }
        point_at(base, name).map_err(|error| failed(&base.join(CURRENT), error))?;
        let path = dir.join("console.log");
        let console = File::create(&path).map_err(|error| failed(&path, error))?;
        Ok(Self { dir, console })
    }

    /// A line of `console.log`.
    pub(super) fn log(&mut self, line: &str) -> Result<(), RunError> {
        writeln!(self.console, "{line}").map_err(|error| failed(&self.dir.join("console.log"), error))
    }
}

fn failed(path: &Path, error: io::Error) -> RunError {
    RunError::Results { path: path.to_owned(), error }
}

/// Replaces the link in one step: whoever follows it finds the old results or the new ones.
#[cfg(unix)]
fn point_at(base: &Path, name: &str) -> io::Result<()> {
    let new = base.join(format!(".{CURRENT}.{}", std::process::id()));
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::os::unix::fs::symlink(name, &new)?;
    fs::rename(&new, base.join(CURRENT))
}

#[cfg(not(unix))]
fn point_at(_base: &Path, _name: &str) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_results_are_current_and_hold_their_configuration() {
        let base = tempfile::tempdir().unwrap();
        let config = base.path().join("some.config");
        fs::write(&config, "{mode, max}.").unwrap();
        for name in ["first", "second"] {
            let mut results = Results::create(base.path(), name, std::slice::from_ref(&config)).unwrap();
            results.log("begun").unwrap();
            assert_eq!(fs::read_to_string(base.path().join("current/some.config")).unwrap(), "{mode, max}.");
            assert_eq!(fs::read_link(base.path().join("current")).unwrap(), Path::new(name));
            assert_eq!(fs::read_to_string(results.dir.join("console.log")).unwrap(), "begun\n");
        }
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let base = tempfile::NamedTempFile::new().unwrap();
        let error = Results::create(base.path(), "run", &[]).err().unwrap().to_string();
        assert!(error.contains(&base.path().display().to_string()), "{error}");
    }
}
