//! The state from which counting generators continue after a run was stopped
//! (docs/riak/basho-bench.md §2, "Resume").

use crate::config::ConfigError;
use ombak_types::etf;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The setting that names the directory.
pub(super) const SETTING: &str = "sequential_int_state_dir";

/// The directory with one state file for each worker.
#[derive(Debug)]
pub(super) struct StateDir {
    dir: PathBuf,
    failure: Arc<OnceLock<String>>,
}

/// The state file of one worker: the integer that it had reached, in Erlang's external term format.
#[derive(Debug)]
pub(super) struct ResumeFile {
    file: PathBuf,
    temporary: PathBuf,
    bytes: Vec<u8>,
    failure: Arc<OnceLock<String>>,
}

impl StateDir {
    /// Opens the directory, and creates it if it does not exist.
    pub(super) fn open(dir: &Path) -> Result<Self, ConfigError> {
        std::fs::create_dir_all(dir).map_err(|error| {
            let dir = dir.display();
            ConfigError::setting(SETTING, format!("{dir} must be a directory that can be written to: {error}"))
        })?;
        Ok(Self { dir: dir.to_owned(), failure: Arc::default() })
    }

    /// The state file of a worker.
    pub(super) fn file(&self, worker: usize) -> ResumeFile {
        let name = |ending| self.dir.join(format!("{worker}{ending}"));
        ResumeFile { file: name(""), temporary: name(".tmp"), bytes: Vec::new(), failure: Arc::clone(&self.failure) }
    }

    /// Why a state could not be written.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }
}

impl ResumeFile {
    /// Reads the last state; `None` if there is none.
    pub(super) fn read(&self) -> Result<Option<u64>, ConfigError> {
        let file = self.file.display();
        let bytes = match std::fs::read(&self.file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ConfigError::setting(SETTING, format!("{file} cannot be read: {error}"))),
        };
        match etf::decode(&bytes) {
            Ok(etf::Term::Int(n)) if n >= 0 => Ok(Some(n.unsigned_abs())),
            _ => Err(ConfigError::setting(
                SETTING,
                format!("{file} must be an integer in Erlang's external format; remove it to begin at the beginning"),
            )),
        }
    }

    /// Records that the worker has reached `n`. The state is written once in 500 numbers, when `n`
    /// modulo 500 is 400. This call blocks on the file system, as it does in basho_bench.
    pub(super) fn passed(&mut self, n: u64) {
        if n % 500 != 400 || self.failure.get().is_some() {
            return;
        }
        if let Err(error) = self.write(n) {
            let file = self.file.display();
            self.failure
                .get_or_init(|| format!("{SETTING}: {file} could not be written, nothing can be resumed: {error}"));
        }
    }

    fn write(&mut self, n: u64) -> io::Result<()> {
        self.bytes.clear();
        let n = i64::try_from(n).map_err(io::Error::other)?;
        etf::encode_to(&etf::Term::Int(n), &mut self.bytes);
        std::fs::write(&self.temporary, &self.bytes)?;
        std::fs::rename(&self.temporary, &self.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_states_that_basho_bench_writes_are_written() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(&dir.path().join("made/here")).unwrap();
        let mut file = state.file(3);
        assert_eq!(file.read(), Ok(None));
        (0..400).for_each(|n| file.passed(n));
        assert_eq!(file.read(), Ok(None));
        (400..900).for_each(|n| file.passed(n));
        assert_eq!(file.read(), Ok(Some(400)));
        file.passed(900);
        assert_eq!(std::fs::read(dir.path().join("made/here/3")).unwrap(), [131, 98, 0, 0, 3, 132]);
        assert_eq!(state.failure(), None);
    }

    #[test]
    fn a_file_that_is_no_state_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        std::fs::write(dir.path().join("1"), b"400").unwrap();
        let error = state.file(1).read().unwrap_err().to_string();
        assert!(error.contains("sequential_int_state_dir") && error.contains("remove it"), "{error}");
    }

    #[test]
    fn a_state_that_cannot_be_written_is_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(&dir.path().join("gone")).unwrap();
        std::fs::remove_dir(dir.path().join("gone")).unwrap();
        let mut file = state.file(1);
        file.passed(400);
        assert!(state.failure().unwrap().contains("could not be written"));
    }
}
