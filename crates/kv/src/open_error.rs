//! Why an engine fails to start.

use ombak_node_files::NodeFileError;
use ombak_storage::StorageError;

/// Why an engine fails to start. The text names what is wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A setting is invalid.
    #[error("{0}")]
    Config(String),
    /// A consumer of changes has a name with which it cannot keep its place.
    #[error("a consumer of changes is named '{name}': {why}")]
    ConsumerName {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A file of the node cannot be used.
    #[error(transparent)]
    Files(#[from] NodeFileError),
    /// The store of a partition cannot be opened.
    #[error("partition {partition}: {source}")]
    Store {
        /// Number of the partition.
        partition: u32,
        /// The error of the store.
        source: StorageError,
    },
    /// The operating system provides no threads or no random bytes.
    #[error("the operating system refuses {what}: {source}")]
    System {
        /// What the node asked for.
        what: &'static str,
        /// The error of the operating system.
        source: std::io::Error,
    },
}
