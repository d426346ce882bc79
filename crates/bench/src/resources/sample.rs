//! The resources that a process has used at one moment.

use serde::{Deserialize, Serialize};

/// The resources that a process has used at one moment. Processor time and bytes are counted from
/// the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceSample {
    /// Seconds since the start of the run.
    pub elapsed_s: f64,
    /// Processor time of all threads, in user and in system mode, in seconds.
    pub cpu_s: Option<f64>,
    /// Resident memory, in bytes.
    pub rss_bytes: Option<u64>,
    /// Bytes read from the disk, without those that came from the page cache.
    pub read_bytes: Option<u64>,
    /// Bytes written to the disk.
    pub written_bytes: Option<u64>,
    /// The disk space of the files in the data directory, in bytes.
    pub disk_bytes: Option<u64>,
}
