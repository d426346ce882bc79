//! What a node says about its search.

use std::path::PathBuf;
use std::time::Duration;

/// What a node says about its search.
#[derive(Clone, Debug)]
pub struct SearchConfig {
    /// The directory of the indexes.
    pub dir: PathBuf,
    /// The memory in which documents wait to be written, for all indexes of the node together.
    pub writer_memory_bytes: usize,
    /// A query finds everything that the replicas which it asks had stored so long before it.
    pub freshness: Duration,
}

impl SearchConfig {
    /// Indexes in this directory, and defaults.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir, writer_memory_bytes: 64 << 20, freshness: Duration::from_millis(500) }
    }
}
