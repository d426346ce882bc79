//! Why the files of a node cannot be used.

use std::io;
use std::path::PathBuf;

/// Why the files of a node cannot be used. The text names what is wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum NodeFileError {
    /// Another process uses this directory.
    #[error("{0} is in use by another ombak process; stop that one, or start this one with another data directory")]
    InUse(PathBuf),
    /// A file cannot be read or written.
    #[error("cannot {op} {path}: {source}")]
    Io {
        /// `read`, `write`, `create`…
        op: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file has invalid content.
    #[error("{path}: {what}")]
    Unusable {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// The node's ring has another size than the configuration says.
    #[error(
        "the data in {dir} is laid out for ring_size {found}, and the configuration says {configured}; set \
         ring_size = {found} or use another data directory"
    )]
    OtherRingSize {
        /// The directory of the node.
        dir: PathBuf,
        /// The size of the node's ring.
        found: u32,
        /// The size in the configuration.
        configured: u32,
    },
    /// The operating system provides no random bytes for the identity of a new node.
    #[error("the operating system refuses random bytes: {0}")]
    NoRandomBytes(String),
}
