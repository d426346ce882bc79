//! What keeps this node from leaving its cluster although it holds no copies any more.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Counts the jobs that have not ended.
pub type CountJobs = Box<dyn Fn() -> u64 + Send + Sync>;

/// Whether this node leaves, and the jobs that it has to end before.
#[derive(Default)]
pub(crate) struct Leaving {
    is_leaving: AtomicBool,
    count_jobs: OnceLock<CountJobs>,
}

impl fmt::Debug for Leaving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaving").field("is_leaving", &self.is_leaving).finish_non_exhaustive()
    }
}

impl Leaving {
    pub(crate) fn set(&self, is_leaving: bool) {
        self.is_leaving.store(is_leaving, Ordering::SeqCst);
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::SeqCst)
    }

    /// The first one who counts stays.
    pub(crate) fn count_with(&self, count_jobs: CountJobs) {
        // A node has its jobs in one place.
        let _ = self.count_jobs.set(count_jobs);
    }

    pub(crate) fn jobs(&self) -> u64 {
        self.count_jobs.get().map_or(0, |count| count())
    }
}
