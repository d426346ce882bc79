//! The report of a conversion.

use crate::config::SINGLE_BACKENDS;
use serde::Serialize;
use std::path::PathBuf;

/// What a conversion did.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Whether the node can start on the new backend.
    pub complete: bool,
    /// The old directory, which stays.
    pub from: PathBuf,
    /// The new directory.
    pub to: PathBuf,
    /// The new backend: a word for `storage_backend`, or the name of one of several backends.
    pub backend: String,
    /// The old backend, in the same form. The name in the JSON report is `replaces`.
    #[serde(rename = "replaces")]
    pub replaced: String,
    /// The number of partitions that had files.
    pub partitions: u64,
    /// The number of keys that were written.
    pub keys: u64,
    /// The size of their keys, heads and values, in bytes.
    pub bytes: u64,
}

impl Report {
    /// The report as text for people.
    pub fn to_text(&self) -> String {
        if !self.complete {
            return "Interrupted: nothing was changed. The same command starts the conversion again.".into();
        }
        let (from, to, replaced) = (self.from.display(), self.to.display(), &self.replaced);
        let name = if SINGLE_BACKENDS.contains(&replaced.as_str()) {
            String::new()
        } else {
            format!(", under the name {replaced}, which buckets use")
        };
        format!(
            "Converted {} keys of {} partitions, {} bytes: {to} has the data of {from}.\n\
             Start the node with {} in place of {replaced}{name}. After that, {from} is no longer needed and may be removed.",
            self.keys, self.partitions, self.bytes, self.backend
        )
    }
}
