//! The record of a run, for its report and for later comparisons.

use crate::resources::ResourceSample;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{ErrorCount, Window};

/// The version of the file format. There is only one so far.
const VERSION: u32 = 1;

/// Everything that a report needs. It is saved as `run.json` in the result directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The version of the file format.
    version: u32,
    /// The name of the run, which is the name of its directory.
    pub name: String,
    /// The origin of the run. `None` if it was not recorded (by basho_bench, or by an older version
    /// of this program).
    #[serde(default)]
    pub origin: Option<Origin>,
    /// The configuration in words or terms, one fact per line.
    pub config: Vec<String>,
    /// What was left out, and which settings had less effect than in basho_bench.
    pub notes: Vec<String>,
    /// The labels of the operations, in the order of the configuration.
    pub operations: Vec<String>,
    /// The terms of the operations, in the same order. Empty if only the labels are known (in a
    /// directory of basho_bench).
    #[serde(default)]
    pub terms: Vec<String>,
    /// The windows, one for each report interval, ordered by time.
    pub windows: Vec<Window>,
    /// Samples of the resources of the measured process, ordered by time. Empty if none were taken.
    pub resources: Vec<ResourceSample>,
    /// The whole run as one window. `None` if only the windows are known (in a directory of
    /// basho_bench).
    pub totals: Option<Window>,
    /// The number of errors for each operation and reason.
    pub errors: Vec<ErrorTotal>,
}

/// What is needed to repeat a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The configuration files, as they were named.
    pub config_files: Vec<String>,
    /// The machine that ran the load generator.
    pub host: String,
    /// The load generator and its version.
    pub program: String,
    /// The server with its version and backend. `None` if it did not say, or if an older version of
    /// this program recorded the run.
    #[serde(default)]
    pub server: Option<String>,
}

/// How often an operation failed for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorTotal {
    /// The name of the operation ([`Run::operation_name`]). Empty if it is part of the reason (in a
    /// directory of basho_bench).
    pub operation: String,
    /// The reason.
    pub reason: String,
    /// The number of failures.
    pub count: u64,
}

/// Why `run.json` could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RunFileError {
    /// The operating system refused.
    #[error("{path}: {error}", path = .path.display())]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        error: io::Error,
    },
    /// The file is invalid.
    #[error("{path}: not a run: {error}", path = .path.display())]
    Json {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        error: serde_json::Error,
    },
    /// The file was written by another version of the program.
    #[error("{path}: version {found}; this program reads version {VERSION}", path = .path.display())]
    Version {
        /// The path of the file.
        path: PathBuf,
        /// The version in the file.
        found: u32,
    },
}

impl Run {
    /// The name of the file.
    pub const FILE: &str = "run.json";

    /// A run that has no windows yet.
    pub fn new(name: impl Into<String>, operations: Vec<String>) -> Self {
        Self { version: VERSION, name: name.into(), operations, ..Self::default() }
    }

    /// The title for people: the names of the configuration files without their endings. It is the
    /// name of the run if they are not known.
    pub fn title(&self) -> String {
        let stem = |file: &String| Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let files = self.origin.iter().flat_map(|origin| &origin.config_files);
        let stems: Vec<String> = files.filter_map(stem).collect();
        if stems.is_empty() { self.name.clone() } else { stems.join(" + ") }
    }

    /// The driver that the configuration names, if it is known.
    pub fn driver(&self) -> Option<&str> {
        self.config.iter().find_map(|line| line.strip_prefix("driver: "))
    }

    /// The name of an operation for people: its term. It is the label if the term is not known, or
    /// if another operation has the same term.
    pub fn operation_name(&self, place: usize) -> &str {
        let label = self.operations.get(place).map_or("", String::as_str);
        match self.terms.get(place) {
            Some(term) if self.terms.iter().filter(|other| *other == term).count() == 1 => term,
            _ => label,
        }
    }

    /// Sets the errors from a tally of the whole run.
    pub fn set_errors(&mut self, errors: &[ErrorCount]) {
        self.errors = errors
            .iter()
            .map(|error| ErrorTotal {
                operation: self.operation_name(error.operation).to_owned(),
                reason: error.reason.to_string(),
                count: error.count,
            })
            .collect();
    }

    /// Writes `run.json` in `dir`.
    pub fn save(&self, dir: &Path) -> Result<(), RunFileError> {
        let path = dir.join(Self::FILE);
        let text = serde_json::to_vec(self).map_err(|error| RunFileError::Json { path: path.clone(), error })?;
        fs::write(&path, text).map_err(|error| RunFileError::Io { path, error })
    }

    /// Reads `run.json` in `dir`.
    pub fn load(dir: &Path) -> Result<Self, RunFileError> {
        let path = dir.join(Self::FILE);
        let text = fs::read(&path).map_err(|error| RunFileError::Io { path: path.clone(), error })?;
        let not_json = |error| RunFileError::Json { path: path.clone(), error };
        // The version is read first, because another version may have other fields.
        let Version { version } = serde_json::from_slice(&text).map_err(not_json)?;
        if version != VERSION {
            return Err(RunFileError::Version { path, found: version });
        }
        serde_json::from_slice(&text).map_err(not_json)
    }
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}
