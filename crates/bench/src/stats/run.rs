//! A run as it was, for its report and for comparisons later.

use crate::resources::ResourceSample;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{ErrorCount, Window};

/// The version that is written, and the only one so far.
const VERSION: u32 = 1;

/// All that a report needs. In the directory of results it is `run.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The version of the file.
    version: u32,
    /// What the run is called: its directory.
    pub name: String,
    /// What ran where; `None` when nobody noted it (a directory of basho_bench, or of a version that did not).
    #[serde(default)]
    pub origin: Option<Origin>,
    /// The configuration in words or terms, one thing a line.
    pub config: Vec<String>,
    /// What was left out, and what meant less here than in basho_bench.
    pub notes: Vec<String>,
    /// The labels of the operations, in the order of the configuration.
    pub operations: Vec<String>,
    /// The terms of the operations, in the same order; empty when only their labels are known (a directory of basho_bench).
    #[serde(default)]
    pub terms: Vec<String>,
    /// One for each report interval, in the order of time.
    pub windows: Vec<Window>,
    /// What the process that was measured used, in the order of time; empty when nobody looked.
    pub resources: Vec<ResourceSample>,
    /// All of the run as one window; `None` when only the windows are known (a directory of basho_bench).
    pub totals: Option<Window>,
    /// Errors by operation and reason.
    pub errors: Vec<ErrorTotal>,
}

/// What a run was made of: who wants to repeat it has to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The files of the configuration, as they were named.
    pub config_files: Vec<String>,
    /// The machine that the load came from.
    pub host: String,
    /// The load generator and its version.
    pub program: String,
}

/// How often an operation failed for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorTotal {
    /// What the operation is called ([`Run::operation_name`]); empty when it is part of the reason (a directory of basho_bench).
    pub operation: String,
    /// Why.
    pub reason: String,
    /// How often.
    pub count: u64,
}

/// `run.json` could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RunFileError {
    /// The system refused.
    #[error("{path}: {error}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        error: io::Error,
    },
    /// The file is not what it should be.
    #[error("{path}: not a run: {error}", path = .path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        error: serde_json::Error,
    },
    /// The file is of a newer program.
    #[error("{path}: version {found}; this program reads version {VERSION}", path = .path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version in it.
        found: u32,
    },
}

impl Run {
    /// The name of the file.
    pub const FILE: &str = "run.json";

    /// A run without windows so far.
    pub fn new(name: impl Into<String>, operations: Vec<String>) -> Self {
        Self { version: VERSION, name: name.into(), operations, ..Self::default() }
    }

    /// What people know an operation by: its term. Its label where that is all that is known, or where another operation
    /// has the same term.
    pub fn operation_name(&self, place: usize) -> &str {
        let label = self.operations.get(place).map_or("", String::as_str);
        match self.terms.get(place) {
            Some(term) if self.terms.iter().filter(|other| *other == term).count() == 1 => term,
            _ => label,
        }
    }

    /// Takes over the errors of a tally of the whole run.
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
        // The version first: another one may have other fields.
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
