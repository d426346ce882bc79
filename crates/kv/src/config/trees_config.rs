//! The configuration of kept trees.

use std::time::Duration;

/// For which n_vals a node keeps trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepTrees {
    /// For none: each tree is made when it is asked for.
    Never,
    /// For those whose root or branches were asked for within [`TreesConfig::idle`].
    WhenAsked,
    /// For all.
    Always,
}

/// Which of Riak's trees a node keeps, and how fast it makes them. Partitions that keep no sums
/// keep no trees ([`KvConfig::keeps_sums`](super::KvConfig)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreesConfig {
    /// For which n_vals. The default is none, so that a node in a test reads only what it is asked
    /// for.
    pub keep: KeepTrees,
    /// How long a tree is kept that nobody asks for.
    pub idle: Duration,
    /// Bound for the memory of all trees. A class whose tree has no room has none.
    pub memory_bytes_max: u64,
    /// How many versions are read in a second to make trees.
    pub versions_per_second: u64,
    /// How long after it was made a tree is made anew, and compared.
    pub rebuild_wait: Duration,
    /// Over how long the rebuilds of trees are spread that are due.
    pub rebuild_delay: Duration,
}

impl Default for TreesConfig {
    fn default() -> Self {
        Self {
            keep: KeepTrees::Never,
            idle: Duration::from_secs(86_400),
            memory_bytes_max: 512 << 20,
            versions_per_second: 50_000,
            rebuild_wait: Duration::from_secs(336 * 3_600),
            rebuild_delay: Duration::from_secs(345_600),
        }
    }
}
