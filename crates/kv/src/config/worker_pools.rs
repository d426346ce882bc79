//! The pools of threads for work that no get or put waits for.

/// How work is distributed over pools (`worker_pool_strategy`), and how many threads each has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerPools {
    /// Which pools there are.
    pub strategy: PoolStrategy,
    /// Threads for index queries, and for everything with [`PoolStrategy::None`].
    pub vnode: usize,
    /// Threads for everything but index queries with [`PoolStrategy::Single`].
    pub node: usize,
    /// Threads for walks over all keys of a partition: exchanges, hand-backs, filling.
    pub af1: usize,
    /// Threads for listings.
    pub af2: usize,
    /// Threads for folds that gather trees and clocks.
    pub af3: usize,
    /// Threads for all other folds.
    pub af4: usize,
}

/// Which pools there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolStrategy {
    /// One for each class of work.
    Dscp,
    /// One for index queries, and one for everything else.
    Single,
    /// One for everything.
    None,
}

impl Default for WorkerPools {
    /// Riak's numbers.
    fn default() -> Self {
        Self { strategy: PoolStrategy::Dscp, vnode: 5, node: 4, af1: 2, af2: 1, af3: 4, af4: 1 }
    }
}
