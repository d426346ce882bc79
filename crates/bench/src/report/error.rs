//! Errors in writing reports and reading results.

use crate::stats::RunFileError;
use std::io;
use std::path::{Path, PathBuf};

/// Why a report cannot be written or a result directory cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The operating system refused.
    #[error("{path}: {error}", path = .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        error: io::Error,
    },
    /// A CSV file of results is invalid.
    #[error("{path}:{line}: {what}", path = .path.display())]
    Csv {
        /// The path of the file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// A saved run cannot be used.
    #[error(transparent)]
    Run(#[from] RunFileError),
    /// A picture could not be made.
    #[error("{path}: {what}", path = .path.display())]
    Picture {
        /// The path of the file.
        path: PathBuf,
        /// The reason.
        what: String,
    },
    /// The request itself is invalid.
    #[error("{0}")]
    Usage(String),
}

impl ReportError {
    /// Creates an error about `path`, for use with `map_err`.
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io { path, error }
    }
}
