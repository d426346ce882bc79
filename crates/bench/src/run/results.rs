//! The directory with the results of a run (docs/riak/basho-bench.md §1).

use super::runner::RunError;
use crate::stats::Run;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The extensions of the files that a run writes.
const WRITTEN: [&str; 5] = ["csv", "json", "html", "png", "log"];

/// The name of the symbolic link to the latest results.
const CURRENT: &str = "current";

/// The directory `<results-dir>/<name>`. The link `<results-dir>/current` points to it.
pub(super) struct Results {
    pub(super) dir: PathBuf,
    console: File,
}

impl Results {
    /// Creates the directory and copies the configuration files to it.
    pub(super) fn create(base: &Path, name: &str, files: &[PathBuf]) -> Result<Self, RunError> {
        let dir = base.join(name);
        fs::create_dir_all(&dir).map_err(|error| failed(&dir, error))?;
        // All files are read before anything is removed, because one of them may be the copy in
        // this directory.
        let texts: Vec<_> =
            files.iter().map(|file| fs::read(file).map_err(|error| failed(file, error))).collect::<Result<_, _>>()?;
        remove_earlier(&dir).map_err(|error| failed(&dir, error))?;
        for (name, text) in copy_names(files).iter().zip(texts) {
            let copy = dir.join(name);
            fs::write(&copy, text).map_err(|error| failed(&copy, error))?;
        }
        point_at(base, name).map_err(|error| failed(&base.join(CURRENT), error))?;
        let path = dir.join("console.log");
        let console = File::create(&path).map_err(|error| failed(&path, error))?;
        Ok(Self { dir, console })
    }

    /// Appends a line to `console.log`.
    pub(super) fn log(&mut self, line: &str) -> Result<(), RunError> {
        writeln!(self.console, "{line}").map_err(|error| failed(&self.dir.join("console.log"), error))
    }
}

/// Removes the files of an earlier run with the same name, so that the directory has the files of
/// one run only. Other files stay.
fn remove_earlier(dir: &Path) -> io::Result<()> {
    if !dir.join(Run::FILE).is_file() {
        return Ok(());
    }
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if path.is_file() && WRITTEN.contains(&ending) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// The names of the copies: the name of the file, preceded by its number if an earlier file has the
/// same name.
fn copy_names(files: &[PathBuf]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(files.len());
    for (place, file) in files.iter().enumerate() {
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
        let taken = names.iter().any(|taken| *taken == name);
        names.push(if taken { format!("{}-{name}", place + 1) } else { name.into_owned() });
    }
    names
}

fn failed(path: &Path, error: io::Error) -> RunError {
    RunError::Results { path: path.to_owned(), error }
}

/// Replaces the link atomically: a program that follows it finds either the old or the new results.
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
    fn files_of_the_same_name_are_both_kept_and_earlier_results_are_not() {
        let base = tempfile::tempdir().unwrap();
        let files = ["a", "b"].map(|dir| base.path().join(dir).join("some.config"));
        for file in &files {
            fs::create_dir(file.parent().unwrap()).unwrap();
            fs::write(file, format!("% {}", file.display())).unwrap();
        }
        let dir = Results::create(base.path(), "run", &files).unwrap().dir;
        for (name, file) in [("some.config", &files[0]), ("2-some.config", &files[1])] {
            assert_eq!(fs::read(dir.join(name)).unwrap(), fs::read(file).unwrap());
        }
        for name in ["run.json", "get_latencies.csv", "throughput.png", "notes.txt"] {
            fs::write(dir.join(name), "earlier").unwrap();
        }
        // This repeats the copy, with the copy itself as the source.
        Results::create(base.path(), "run", &[dir.join("some.config")]).unwrap();
        let mut left: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["2-some.config", "console.log", "notes.txt", "some.config"]);
        assert_eq!(fs::read(dir.join("some.config")).unwrap(), fs::read(&files[0]).unwrap());
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let base = tempfile::NamedTempFile::new().unwrap();
        let error = Results::create(base.path(), "run", &[]).err().unwrap().to_string();
        assert!(error.contains(&base.path().display().to_string()), "{error}");
    }
}
