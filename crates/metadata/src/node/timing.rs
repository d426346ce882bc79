//! How long things take.

use std::time::Duration;

/// The times of a node. All nodes of a cluster should have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How often the leader tells the others that it is there.
    pub heartbeat: Duration,
    /// A voter that hears nothing for so long asks to be elected. Each node draws its own limit
    /// between these two.
    pub election: (Duration, Duration),
    /// How often the leader looks after the members.
    pub maintenance: Duration,
    /// How long a request to another node may take.
    pub request_limit: Duration,
    /// A voter that has not answered for so long is replaced if another member can take its place.
    pub voter_gone: Duration,
    /// A log shorter than this is not replaced by a snapshot.
    pub log_bytes_min: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_millis(250),
            election: (Duration::from_millis(1500), Duration::from_millis(3000)),
            maintenance: Duration::from_secs(1),
            request_limit: Duration::from_secs(2),
            voter_gone: Duration::from_secs(600),
            log_bytes_min: 1 << 20,
        }
    }
}
