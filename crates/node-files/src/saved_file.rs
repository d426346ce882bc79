//! Reads the small files of a node.

use crate::error::NodeFileError;
use crate::saved_json::{self, Formats};
use ombak_storage::fs::{FileSystem, read_file};
use serde::de::DeserializeOwned;
use std::io;
use std::path::PathBuf;

/// Reads what [`saved_json::to_text`] made; `None` when the file does not exist. The error of a
/// file that is damaged ends with `remedy`, which says what to do.
pub fn read_saved<T: DeserializeOwned>(
    fs: &dyn FileSystem,
    path: PathBuf,
    bytes_max: u64,
    formats: Formats,
    remedy: &str,
) -> Result<Option<T>, NodeFileError> {
    let text = match read_file(fs, &path, bytes_max) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        // The file is far longer than any that a node writes.
        Err(e) if e.kind() == io::ErrorKind::InvalidData => Vec::new(),
        Err(source) => return Err(NodeFileError::Io { op: "read", path, source }),
    };
    let unusable = |why| NodeFileError::Unusable { path, what: format!("{why}; {remedy}") };
    saved_json::from_text(text, formats).map(Some).map_err(unusable)
}
