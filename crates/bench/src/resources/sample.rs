//! What was used at one moment.

use serde::{Deserialize, Serialize};

/// What was used at one moment. Times and bytes moved are since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceSample {
    /// Seconds since the start of the run.
    pub elapsed_s: f64,
    /// Processor time of all threads, in user and in system mode, in seconds.
    pub cpu_s: Option<f64>,
    /// Memory in use.
    pub rss_bytes: Option<u64>,
    /// Bytes read from the disk (what the page cache answered is not among them).
    pub read_bytes: Option<u64>,
    /// Bytes written to the disk.
    pub written_bytes: Option<u64>,
    /// Space that the files of the data directory take.
    pub disk_bytes: Option<u64>,
}
