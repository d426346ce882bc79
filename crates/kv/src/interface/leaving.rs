//! Jobs of this node that belong to no other node, and its leave.

use crate::engine::{CountJobs, Kv};

impl Kv {
    /// Says who counts the jobs that have not ended, once. A member does not leave its cluster
    /// before there are none.
    pub fn count_jobs_with(&self, count: CountJobs) {
        self.engine.leaving.count_with(count);
    }

    /// How many jobs of this node have not ended.
    pub fn jobs_not_ended(&self) -> u64 {
        self.engine.leaving.jobs()
    }

    /// Says whether this node leaves its cluster. Then nobody begins a job on it.
    pub fn set_leaving(&self, is_leaving: bool) {
        self.engine.leaving.set(is_leaving);
    }

    /// Whether this node leaves its cluster.
    pub fn is_leaving(&self) -> bool {
        self.engine.leaving.is_leaving()
    }
}
