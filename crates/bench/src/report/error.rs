//! What keeps a report from being written.

use crate::stats::RunFileError;
use std::io;
use std::path::{Path, PathBuf};

/// What keeps a report from being written or a directory of results from being read.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The system refused.
    #[error("{path}: {error}", path = .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        #[source]
        error: io::Error,
    },
    /// A file of results is not what it should be.
    #[error("{path}:{line}: {what}", path = .path.display())]
    Csv {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong and what would be right.
        what: String,
    },
    /// A saved run cannot be used.
    #[error(transparent)]
    Run(#[from] RunFileError),
    /// A picture could not be made.
    #[error("{path}: {what}", path = .path.display())]
    Picture {
        /// The file.
        path: PathBuf,
        /// Why.
        what: String,
    },
    /// The request itself makes no sense.
    #[error("{0}")]
    Usage(String),
}

impl ReportError {
    /// For `map_err`: what the system says of `path`.
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io { path, error }
    }
}
