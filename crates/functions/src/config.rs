//! How many threads a pool has, and what it bounds.

use ombak_script::Limits;
use std::time::Duration;

/// What a function is run for. Each lane has threads and a queue of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Map functions of jobs.
    Map,
    /// Reduce functions of jobs.
    Reduce,
    /// Hooks before a put, and tests of functions by an operator.
    PreCommit,
    /// Hooks after a put.
    PostCommit,
}

impl Lane {
    pub(crate) const ALL: [Self; 4] = [Self::Map, Self::Reduce, Self::PreCommit, Self::PostCommit];

    /// Whether functions run here for jobs, which no get or put waits for.
    pub(crate) const fn is_of_jobs(self) -> bool {
        matches!(self, Self::Map | Self::Reduce)
    }

    /// The name in thread names and logs.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Map => "map",
            Self::Reduce => "reduce",
            Self::PreCommit => "precommit",
            Self::PostCommit => "postcommit",
        }
    }
}

/// The bounds of a pool.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// The number of threads for map functions.
    pub map_threads: usize,
    /// The number of threads for reduce functions.
    pub reduce_threads: usize,
    /// The number of threads for pre-commit hooks, and as many again for post-commit hooks.
    pub hook_threads: usize,
    /// How much work may wait in each lane.
    pub waiting_max: usize,
    /// How many more threads a lane may have while some of its functions run for long.
    pub slow_max: usize,
    /// From when on a function runs for long.
    pub slow_after: Duration,
    /// From when on the process of a hook gives way to everything else, and ends after the hook.
    pub gives_way_after: Duration,
    /// How long a function may run at least if others wait and all places are taken.
    pub displaced_after: Duration,
    /// How many sessions one thread keeps. If it needs another one, it ends the one that it has not
    /// used for the longest time.
    pub sessions_max: usize,
    /// The limits of each session.
    pub limits: Limits,
    /// How long a call may be overdue before its process is ended.
    pub overdue_max: Duration,
    /// How long a thread waits for work before it ends.
    pub idle_max: Duration,
}

impl Default for PoolConfig {
    /// The sizes of Riak's pools.
    fn default() -> Self {
        Self {
            map_threads: 8,
            reduce_threads: 6,
            hook_threads: 2,
            waiting_max: 1000,
            slow_max: 8,
            slow_after: Duration::from_millis(20),
            gives_way_after: Duration::from_millis(50),
            displaced_after: Duration::from_millis(500),
            sessions_max: 16,
            limits: Limits::default(),
            overdue_max: Duration::from_millis(250),
            idle_max: Duration::from_secs(60),
        }
    }
}

impl PoolConfig {
    /// The number of threads of a lane.
    pub(crate) fn threads(&self, lane: Lane) -> usize {
        let threads = match lane {
            Lane::Map => self.map_threads,
            Lane::Reduce => self.reduce_threads,
            Lane::PreCommit | Lane::PostCommit => self.hook_threads,
        };
        threads.max(1)
    }
}
