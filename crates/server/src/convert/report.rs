//! What a conversion did.

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
    /// What `storage_backend` has to say from now on, or the name of one of several.
    pub backend: String,
    /// The same of the one that it replaces.
    pub replaces: String,
    /// Partitions that had something.
    pub partitions: u64,
    /// Keys written.
    pub keys: u64,
    /// Bytes of their keys, heads and values.
    pub bytes: u64,
}

impl Report {
    /// For a person.
    pub fn to_text(&self) -> String {
        if !self.complete {
            return "Interrupted: the node is as it was. The same command begins anew.".into();
        }
        let (from, to, replaces) = (self.from.display(), self.to.display(), &self.replaces);
        let name = if SINGLE_BACKENDS.contains(&replaces.as_str()) {
            String::new()
        } else {
            format!(", under the name {replaces} that buckets know")
        };
        format!(
            "Converted {} keys of {} partitions, {} bytes: {to} has what {from} has.\n\
             Start the node with {} in place of {replaces}{name}; then remove {from} when you like.",
            self.keys, self.partitions, self.bytes, self.backend
        )
    }
}
